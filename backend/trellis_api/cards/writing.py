"""Writes a card: YAML for hubs, then Markdown for people. What is generated stands between two marks."""

from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from trellis_api.cards.licences import describe_for_hubs
from trellis_api.cards.schemas import CardFacts, ScoreFacts, TrainingFacts
from trellis_api.cards.uses import find_use, name_library, write_loading

BEGIN, END = (
    "<!-- trellis: written from runs, checked by `trellis models card --verify` -->",
    "<!-- /trellis -->",
)
#: Under this name the front matter states everything once more, for the check.
STATEMENTS = "trellis"
_NOT_KNOWN = "not known"


class _WithoutAliases(yaml.SafeDumper):
    """Writes a list that occurs twice out twice: the check takes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Disable aliases for all values."""
        del data
        return True


def write(facts: CardFacts, *, base_url: str) -> str:
    """Write the whole card."""
    matter = yaml.dump(
        _describe(facts, base_url), Dumper=_WithoutAliases, sort_keys=False, allow_unicode=True, width=1000
    )
    return f"---\n{matter}---\n\n{write_body(facts, base_url=base_url)}\n"


def write_body(facts: CardFacts, *, base_url: str) -> str:
    """Write the part that people read, between its marks. Every number, or its curve, links to its run."""
    parts = [
        BEGIN,
        f"# {_plain(facts.name)}",
        _introduce(facts, base_url),
        _table(("", ""), _list_properties(facts, base_url)),
        *_write_trainings(facts, base_url),
        *_write_scores(facts, base_url),
        "## How to use it",
        f"```python\n{write_loading(facts)}\n```",
        *_explain_reproduction(facts),
        "## Licences",
        _explain_licences(facts),
        END,
    ]
    return "\n\n".join(parts)


def _describe(facts: CardFacts, base_url: str) -> dict[str, Any]:
    recipes = [each.recipe for each in facts.trainings if each.recipe]
    described: dict[str, Any] = dict(describe_for_hubs(facts.licence))
    if facts.base_repository:
        described["base_model"] = facts.base_repository
    described |= {
        "library_name": name_library(facts),
        "pipeline_tag": find_use(facts).task,
        "tags": ["trellis", *dict.fromkeys(recipes)],
    }
    datasets = [each.dataset_repository for each in facts.trainings if each.dataset_repository]
    if datasets:
        described["datasets"] = list(dict.fromkeys(datasets))
    if facts.scores:
        described["model-index"] = [
            {
                "name": facts.name,
                "results": [_as_result(score, find_use(facts).task, base_url) for score in facts.scores],
            }
        ]
    described[STATEMENTS] = facts.model_dump(mode="json")
    return described


def _as_result(score: ScoreFacts, task: str, base_url: str) -> dict[str, Any]:
    return {
        "task": {"type": task},
        "dataset": {"name": score.dataset or score.label, "type": score.benchmark},
        "metrics": [{"type": score.metric, "value": score.value, "name": score.metric, "verified": False}],
        "source": {"name": score.evaluation, "url": f"{base_url}/evaluations/{score.evaluation}"},
    }


def _introduce(facts: CardFacts, base_url: str) -> str:
    if not facts.trainings:
        return "Weights that were registered on the platform and not trained there."
    first = facts.trainings[0]
    base = f"from **{_plain(facts.base)}** " if facts.base else ""
    return (
        f"Trained {base}with the recipe `{first.recipe}` by "
        f"[{_plain(first.name or first.job)}]({base_url}/jobs/{first.job}), step {first.step}."
    )


def _list_properties(facts: CardFacts, base_url: str) -> list[tuple[str, str]]:
    size = f"{facts.parameters:,}" if facts.parameters is not None else _NOT_KNOWN
    kind = " (sampled)" if facts.weights_sha256_kind == "sampled" else ""
    return [
        ("Model", f"[`{facts.model}`]({base_url}/models/{facts.model})"),
        ("Form", "adapter of its base model" if facts.form == "adapter" else "whole model"),
        ("Architecture", facts.architecture or _NOT_KNOWN),
        ("Parameters", size),
        ("Type of weights", facts.dtype or _NOT_KNOWN),
        ("Longest sequence", f"{facts.context_length:,} tokens" if facts.context_length else _NOT_KNOWN),
        ("SHA-256 of the weights", f"`{facts.weights_sha256}`{kind}" if facts.weights_sha256 else _NOT_KNOWN),
    ]


def _write_trainings(facts: CardFacts, base_url: str) -> Iterable[str]:
    if not facts.trainings:
        return
    yield "## Training"
    for number, training in enumerate(facts.trainings, start=1):
        title = "the last one" if number == 1 else f"{number - 1} before it"
        yield f"### {_plain(training.name or training.job)} ({title})"
        yield _table(("", ""), _list_training(training, base_url))
        if training.parameters:
            yield _table(
                ("parameter", "value"),
                [(f"`{name}`", f"`{_plain(value)}`") for name, value in training.parameters.items()],
            )
        if training.checkpoint_metrics:
            where = f"{base_url}/jobs/{training.job}"
            rows = [
                (f"`{key}`", f"[{value:g}]({where})") for key, value in training.checkpoint_metrics.items()
            ]
            yield f"Measured at step {training.step}:"
            yield _table(("metric", "value"), rows)
        yield from _write_curves(training, base_url)


def _write_curves(training: TrainingFacts, base_url: str) -> Iterable[str]:
    """Write a row for each curve. Not all hubs and editors draw charts, but all show tables."""
    if not training.curves:
        return
    end = "" if training.step is None else f" up to step {training.step}"
    thinned = "" if training.has_whole_curves else ", thinned to their lowest and highest points"
    yield f"Curves{end}{thinned}:"
    for key, points in training.curves.items():
        name = f"[`{key}`]({base_url}/jobs/{training.job})"
        yield _table(("step", *map(str, points)), [(name, *map(_say, points.values()))])


def _list_training(training: TrainingFacts, base_url: str) -> list[tuple[str, str]]:
    where = f"{base_url}/jobs/{training.job}"
    rows = [
        ("Job", f"[`{training.job}`]({where})"),
        ("Recipe", f"`{training.recipe}`" + (f", preset `{training.preset}`" if training.preset else "")),
        ("Base", _plain(training.base or _NOT_KNOWN)),
    ]
    if training.dataset:
        name, address = training.dataset_name or training.dataset, f"{base_url}/datasets/{training.dataset}"
        place = f"version `{training.dataset_version}`, split `{training.dataset_split}`"
        rows.append(("Data", f"[{_plain(name)}]({address}), {place}"))
        rows.append(("SHA-256 of the rows", f"`{training.dataset_sha256 or _NOT_KNOWN}`"))
    if training.environment:
        rows.append(("Environment", f"{_plain(training.environment)}, `{training.environment_sha256}`"))
    if training.seed is not None:
        rows.append(("Seed", f"{training.seed}"))
    if (figure := training.figure) is not None:
        last = f"[{_say(figure.last)}]({where}) at step {figure.last_step}"
        rows.append((f"`{figure.key}`, last", last))
        rows.append((f"`{figure.key}`, best", f"[{_say(figure.best)}]({where}) at step {figure.best_step}"))
    if training.manifest_sha256:
        attempt = f"attempt {training.manifest_attempt}"
        address = f"{base_url}/api/v1/jobs/{training.job}/manifest?attempt={training.manifest_attempt}"
        rows.append(("Manifest", f"[{attempt}]({address}), `{training.manifest_sha256}`"))
    return rows


def _write_scores(facts: CardFacts, base_url: str) -> Iterable[str]:
    if not facts.scores:
        return
    yield "## Evaluation"
    rows = []
    for score in facts.scores:
        has_interval = score.low is not None and score.high is not None
        rows.append(
            (
                _plain(score.dataset or score.label),
                f"`{score.metric}`",
                f"[{score.value:g}]({base_url}/evaluations/{score.evaluation})",
                f"{score.low:g} to {score.high:g} ({score.method})" if has_interval else _NOT_KNOWN,
                f"{score.problems:,}",
                f"`{score.of}`",
            )
        )
    yield _table(("benchmark", "metric", "score", "95 % interval", "problems", "measured of"), rows)


def _explain_reproduction(facts: CardFacts) -> Iterable[str]:
    if not facts.trainings:
        return
    yield "## How to reproduce it"
    yield (
        "The manifest of a job holds the whole configuration, the versions of all packages, the data by "
        "version and hash, the seed and the hardware. `trellis replay` runs it again, and says what differs "
        "(`--dry-run` only says it). On another platform, give it the file of the manifest: models and data "
        "are found by their hashes."
    )
    lines = [f"trellis replay {each.job}" for each in reversed(facts.trainings)]
    yield "```bash\n" + "\n".join(lines) + "\n```"


def _explain_licences(facts: CardFacts) -> str:
    licences: dict[str, list[str]] = {}
    for each in facts.trainings:
        if each.dataset_name:
            licences.setdefault(each.dataset_name, []).extend(each.dataset_licences)
    where = f"the source of {_plain(facts.base or facts.name)}"
    weights = facts.licence or f"{_NOT_KNOWN} to the platform; look at {where} before you pass them on"
    lines = [f"- of the weights at the beginning: {weights}"]
    for name, found in licences.items():
        told = ", ".join(_plain(licence) for licence in dict.fromkeys(found))
        lines.append(
            f"- of the data, {_plain(name)}: {told or f'{_NOT_KNOWN} to the platform; see its source'}"
        )
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _say(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _plain(value: Any) -> str:
    """Escape a text so that it cannot end a table cell, a link or a code span, or start HTML."""
    text = " ".join(str(value).split())
    for sign, other in (("|", "\\|"), ("`", "'"), ("<", "&lt;"), ("[", "\\["), ("]", "\\]")):
        text = text.replace(sign, other)
    return text
