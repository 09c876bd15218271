"""What the harness answers, as scores and samples of the platform."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

from trellis_contracts.evaluation import Sample, Score, Verdict

from trellis_train.evaluate.harness.model import HarnessModel

#: Half the width of a 95 % interval, in standard errors.
_Z = 1.959964
_NO_FILTER = "none"


def read_scores(found: Mapping[str, Any], task: str) -> list[Score]:
    """Read all metrics of a task or group, named ``metric`` or ``metric.filter``, with their errors."""
    values = found["results"].get(task, {})
    n = int(found.get("n-samples", {}).get(task, {}).get("effective", 0)) or int(
        values.get("sample_len", 0) or 0
    )
    scores = []
    for key, value in values.items():
        metric, comma, filter_name = key.partition(",")
        if not comma or metric.endswith("_stderr") or not _is_number(value):
            continue
        stderr = values.get(f"{metric}_stderr,{filter_name}")
        stderr = float(stderr) if _is_number(stderr) else None
        scores.append(
            Score(
                metric=name_metric(metric, filter_name),
                value=float(value),
                stderr=stderr,
                low=float(value) - _Z * stderr if stderr is not None else None,
                high=float(value) + _Z * stderr if stderr is not None else None,
                method="normal" if stderr is not None else "none",
                n=n,
            )
        )
    return scores


def name_metric(metric: str, filter_name: str) -> str:
    """Return a name like ``exact_match.strict-match``; a filter that does nothing is left out."""
    return metric if filter_name == _NO_FILTER else f"{metric}.{filter_name}"


def read_samples(found: Mapping[str, Any], model: HarnessModel) -> list[Sample]:
    """Read one sample per document with all filters and metrics; positions run over all tasks of a group."""
    samples: list[Sample] = []
    for task, rows in found["samples"].items():
        by_document: dict[Any, list[dict[str, Any]]] = {}
        for row in rows:
            by_document.setdefault(row["doc_id"], []).append(row)
        for document, same in by_document.items():
            samples.append(_read_sample(len(samples), task, document, same, model))
    return samples


def _read_sample(
    position: int, task: str, document: Any, rows: list[dict[str, Any]], model: HarnessModel
) -> Sample:
    first = rows[0]
    parts = {
        name_metric(metric, row["filter"]): float(row[metric])
        for row in rows
        for metric in row["metrics"]
        if _is_number(row.get(metric))
    }
    prompt = str(first["arguments"][0][0])
    fact = model.facts.get(prompt)
    value = next(iter(parts.values()), None)
    output, extracted = _read_output(first)
    verdict = _judge(value)
    if fact is not None and fact.error is not None:
        verdict = Verdict.FAILED
    elif fact is not None and fact.finish_reason == "length" and verdict is not Verdict.CORRECT:
        verdict = Verdict.TRUNCATED
    return Sample(
        position=position,
        key=f"{task}/{document}",
        groups={"task": task},
        prompt=prompt,
        output=output,
        extracted=extracted,
        gold=str(first["target"]),
        verdict=verdict,
        score=min(max(value or 0.0, 0.0), 1.0),
        parts=parts,
        notes={"cut": "the prompt lost its beginning: it is longer than the context"}
        if prompt in model.cut
        else {},
        finish_reason=fact.finish_reason if fact else None,
        prompt_tokens=len(model.tok_encode(prompt)),
        output_tokens=fact.output_tokens if fact else 0,
        seconds=round(fact.seconds, 4) if fact else 0.0,
        error=fact.error if fact else None,
    )


def _judge(value: float | None) -> Verdict:
    """Judge by the first metric; UNANSWERED if no metric covers a single document (perplexity)."""
    if value is None:
        return Verdict.UNANSWERED
    return Verdict.CORRECT if value >= 1.0 else Verdict.WRONG


def _read_output(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the generated text and its filtered form, or the choices with their log-likelihoods."""
    responses = [each[0] for each in row["resps"]]
    if isinstance(responses[0], str):
        filtered = row["filtered_resps"][0]
        return responses[0], filtered if isinstance(filtered, str) else str(filtered)
    if isinstance(responses[0], list | tuple):
        lines = [
            f"{str(arguments[1]).strip()}: {value[0]:.4f}"
            for arguments, value in zip(row["arguments"], responses, strict=True)
        ]
        return "\n".join(lines), None
    return str(responses[0]), None


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)
