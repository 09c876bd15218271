"""`trellis agent pipeline`: from warm-up to evaluation, as jobs of the platform that need each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from trellis_recipes.retrieval_schema import MIN_TOOLS
from trellis_recipes.tool_use_settings import Algorithm, BadSettings, ToolUseSettings, load_settings

from trellis_cli.agent_settings_use import PIPELINE, list_unused
from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.job_pipelines import follow_and_tell
from trellis_cli.output import Json, err
from trellis_cli.resolve_by_name import find_dataset, find_environment, find_model

#: The platform's template and the kinds of environments whose rows it trains on.
TEMPLATE, ENVIRONMENT_KINDS = "agent", ("toolbox", "own_tools")
WARM_UP, SFT, RETRIEVAL, RL = "warm-up", "sft", "retrieval", "rl"
#: Names of an environment's datasets, by what is trained on them; the main one has none.
_DATASETS = {WARM_UP: "sft", SFT: "sft", RETRIEVAL: "retrieval", "dpo": "preference", "ppo": "", "grpo": ""}
_PROMPTS = ""
TRAIN_SPLIT, DEV_SPLIT, TEST_SPLIT = "train", "eval", "test"
#: Rows that --dataset names, as the datasets of an environment are called.
_OWN_ROWS = {"dialogs": "sft", "prompts": _PROMPTS, "pairs": "preference", "queries": "retrieval"}
#: Of the retrieval recipe; where there are fewer requests, a batch has the largest power of 2 of them.
_RETRIEVAL_BATCH = 64
#: Splits by what they are for, the likeliest first.
_SPLITS = {
    TRAIN_SPLIT: ("train",),
    DEV_SPLIT: ("eval", "validation", "dev"),
    TEST_SPLIT: ("test", "eval", "validation", "dev"),
}


@dataclass(frozen=True)
class Rows:
    """A dataset that stages read, and the splits that it has."""

    dataset: str
    splits: frozenset[str] = frozenset(_SPLITS)
    #: How many it has to train on, where that is known.
    train_rows: int | None = None

    def find_split(self, purpose: str) -> str | None:
        """Return the name of the split for this purpose, or None if there is none."""
        return next((name for name in _SPLITS[purpose] if name in self.splits), None)


def register(app: typer.Typer) -> None:
    """Add the command to `trellis agent`."""
    app.command()(pipeline)


def pipeline(
    model: Annotated[str, typer.Option(help="ID or name of the base model.")],
    environment: Annotated[
        str | None,
        typer.Option(help="ID or name of an environment (toolbox or own_tools) whose rows are used."),
    ] = None,
    own_rows: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            help="Your own rows as dialogs=NAME, prompts=NAME, pairs=NAME or queries=NAME; repeatable. "
            "They replace those of the environment.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help=("Preset for all training stages: development, production, or a machine preset.")),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Settings YAML; see docs/agents.md.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="dpo, ppo or grpo; default: from the settings (dpo).")
    ] = None,
    warm_up: Annotated[
        bool | None, typer.Option("--warm-up/--no-warm-up", help="Start with a short supervised warm-up.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Stage parameter as STAGE.NAME=VALUE (rl.total_steps=2); repeatable."),
    ] = None,
    num_samples: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="For dpo: sample this many responses per prompt from the SFT model, train on the best and "
            "worst instead of given pairs.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of evaluation rows.")] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs per training stage; default: from the settings (1).")
    ] = None,
    name: Annotated[str, typer.Option(help="Workflow name.")] = "agent",
    wait: Annotated[bool, typer.Option(help="Wait until it finishes.")] = False,
    as_json: Json = False,
) -> None:
    """Run all stages in dependency order; unchanged stages are skipped."""
    read = _read_settings(config, algorithm, warm_up=warm_up)
    refuse_local_rows(read)
    for sentence in list_unused(read, PIPELINE, samples_pairs=num_samples is not None):
        err.print(f"{config}: {sentence}", style="yellow", markup=False)
    client = connect()
    document = {
        "name": name,
        "stages": plan_stages(
            _read_template(client),
            read,
            base=find_model(client, model),
            datasets={
                **(read_datasets(client, environment) if environment else {}),
                **_find_own(client, own_rows or []),
            },
            preset=preset or read.preset,
            own=_read_parameters(settings or []),
            limit=limit,
            gpus=gpus or read.gpus,
            num_samples=num_samples,
        ),
    }
    made = client.post("/job-pipelines", document)
    follow_and_tell(client, made, wait=wait, as_json=as_json)


def refuse_local_rows(settings: ToolUseSettings) -> None:
    """Raise ``Problem`` where the settings name rows of this machine: the stages train on datasets."""
    for part, names in (("sft", ("train_data", "dev_data")), ("warm_up", ("data",))):
        chosen = getattr(settings, part)
        for name in names:
            if getattr(chosen, name) != type(chosen).model_fields[name].default:
                raise Problem(
                    f"{part}.{name} is for `trellis agent train`; the pipeline trains on datasets",
                    hint="use --environment, or --dataset dialogs=NAME for your own rows",
                    exit_code=ExitCode.USAGE,
                )


def plan_stages(
    template: list[dict[str, Any]],
    settings: ToolUseSettings,
    *,
    base: str,
    datasets: dict[str, Rows],
    preset: str | None,
    own: dict[str, dict[str, Any]],
    limit: int | None,
    gpus: int,
    num_samples: int | None = None,
) -> list[dict[str, Any]]:
    """Return the stages to submit: the template's, with rows, algorithm and params; ``own`` is by stage."""
    if num_samples is not None and settings.rl.algorithm != "dpo":
        raise Problem(
            f"--num-samples only works with dpo, not {settings.rl.algorithm}", exit_code=ExitCode.USAGE
        )
    left_out = set() if settings.warm_up.enabled else {WARM_UP}
    # Finding tools is a training of its own, which nothing else builds on.
    left_out |= set() if _DATASETS[RETRIEVAL] in datasets else {RETRIEVAL}
    wanted = [stage for stage in template if stage["id"] not in left_out]
    kept = {stage["id"] for stage in wanted}
    if RETRIEVAL in set(own) - kept:
        raise Problem(
            "--set retrieval: there are no requests to train tool retrieval on",
            hint=f"an environment of your own tools needs {MIN_TOOLS} tools and dialogs or a benchmark, or "
            "use --dataset queries=NAME",
            exit_code=ExitCode.USAGE,
        )
    if unknown := sorted(set(own) - kept):
        raise Problem(
            f"unknown stage '{unknown[0]}'; available: {', '.join(sorted(kept))}",
            exit_code=ExitCode.USAGE,
        )
    for stage in wanted:
        if stage["kind"] == "evaluate" and stage["id"] in own:
            raise Problem(
                f"--set {stage['id']}: this stage evaluates and has no training parameters",
                hint="use --limit for the number of evaluation rows",
                exit_code=ExitCode.USAGE,
            )
    stages = []
    for stage in wanted:
        source = stage["model_stage"] if stage["model_stage"] in kept else None
        made: dict[str, Any] = {
            "id": stage["id"],
            "title": stage["title"]["en"],
            "kind": stage["kind"],
            "needs": [need for need in stage["needs"] if need in kept],
            "model": {"stage": source} if source else {"base": base},
        }
        if stage["kind"] == "evaluate":
            rows = _rows(datasets, _PROMPTS)
            measured = rows.find_split(TEST_SPLIT)
            chosen = {"dataset": rows.dataset, "limit": limit, "split": measured}
            chosen = {name: value for name, value in chosen.items() if value is not None}
            made["benchmarks"] = [{**order, **chosen} for order in stage["benchmarks"]]
        else:
            made |= _training(stage, settings, datasets, preset, num_samples)
            made["params"] |= own.get(stage["id"], {})
            made["resources"] = {"gpus": gpus}
        stages.append(made)
    return stages


def _training(
    stage: dict[str, Any],
    settings: ToolUseSettings,
    datasets: dict[str, Rows],
    preset: str | None,
    num_samples: int | None,
) -> dict[str, Any]:
    """Build the training part of a stage: recipe, rows and parameters."""
    name, algorithm = stage["id"], settings.rl.algorithm
    recipe, kind, params = stage["recipe"], name, dict(stage["params"])
    if name in (SFT, WARM_UP):
        params |= settings.sft.parameters(given_only=True)
    if name == WARM_UP:
        params |= settings.warm_up.parameters()
    if name == RL:
        recipe, kind = f"agent_{algorithm}", algorithm
        params |= settings.rl_parameters(given_only=True)
    wanted = _DATASETS[kind]
    if name == RL and num_samples is not None:
        # Of prompts the job samples its pairs.
        wanted, params = _PROMPTS, {**params, "num_samples": num_samples}
    rows = _rows(datasets, wanted)
    if name == RETRIEVAL and rows.train_rows is not None and rows.train_rows < _RETRIEVAL_BATCH:
        params["batch_size"] = 1 << max(1, rows.train_rows.bit_length() - 1)
    made = {
        "recipe": recipe,
        "dataset": rows.dataset,
        "params": params,
        "exports": stage["exports"],
    }
    if trained := rows.find_split(TRAIN_SPLIT):
        made["dataset_split"] = trained
    if measured := rows.find_split(DEV_SPLIT):
        made |= {"validation_dataset": rows.dataset, "validation_split": measured}
    # The retriever is an encoder: presets for sizes of language models are not its own.
    is_of_machine = preset is None or preset not in ("development", "production")
    return {**made, "preset": preset} if preset and (name != RETRIEVAL or is_of_machine) else made


def _rows(datasets: dict[str, Rows], name: str) -> Rows:
    if name in datasets:
        return datasets[name]
    called = next(own for own, theirs in _OWN_ROWS.items() if theirs == name)
    raise Problem(
        f"no rows '{name or 'train'}'",
        hint=f"use an --environment that has {called}, or name your own with --dataset {called}=NAME",
        exit_code=ExitCode.REFUSED,
    )


def _find_own(client: ApiClient, given: list[str]) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for each in given:
        kind, is_named, called = each.partition("=")
        if kind not in _OWN_ROWS or not is_named:
            raise Problem(
                f"--dataset {each}: write KIND=NAME with {', '.join(_OWN_ROWS)}", exit_code=ExitCode.USAGE
            )
        if _OWN_ROWS[kind] in found:
            raise Problem(f"--dataset {kind} is given twice", exit_code=ExitCode.USAGE)
        dataset = client.get(f"/datasets/{find_dataset(client, called)}")
        found[_OWN_ROWS[kind]] = Rows(dataset["id"], frozenset(dataset["splits"]))
    return found


def _read_settings(config: Path | None, algorithm: str | None, *, warm_up: bool | None) -> ToolUseSettings:
    try:
        read = load_settings(config) if config else ToolUseSettings()
    except BadSettings as error:
        raise Problem(str(error), exit_code=ExitCode.USAGE) from error
    if algorithm is not None:
        known: tuple[Algorithm, ...] = ("dpo", "ppo", "grpo")
        if algorithm not in known:
            raise Problem(
                f"unknown algorithm '{algorithm}'; available: {', '.join(known)}", exit_code=ExitCode.USAGE
            )
        read.rl.algorithm = next(each for each in known if each == algorithm)
    if warm_up is not None:
        read.warm_up.enabled = warm_up
    return read


def _read_parameters(settings: list[str]) -> dict[str, dict[str, Any]]:
    from trellis_cli.set_options import read_parameters

    by_stage: dict[str, dict[str, Any]] = {}
    for each, value in read_parameters(settings).items():
        stage, dot, parameter = each.partition(".")
        if not dot:
            raise Problem(f"--set {each}: write STAGE.NAME=VALUE", exit_code=ExitCode.USAGE)
        by_stage.setdefault(stage, {})[parameter] = value
    return by_stage


def _read_template(client: ApiClient) -> list[dict[str, Any]]:
    found = client.get("/job-pipelines/templates")["items"]
    template = next((each for each in found if each["id"] == TEMPLATE), None)
    if template is None or template["missing_recipes"]:
        lacking = ", ".join(template["missing_recipes"]) if template else f"the template '{TEMPLATE}'"
        raise Problem(f"the platform is missing {lacking}", exit_code=ExitCode.REFUSED)
    stages: list[dict[str, Any]] = template["stages"]
    return stages


def read_datasets(client: ApiClient, environment: str) -> dict[str, Rows]:
    """Read the environment's datasets, by name."""
    found = client.get(f"/environments/{find_environment(client, environment)}")
    if found["kind"] not in ENVIRONMENT_KINDS:
        wanted = " or ".join(ENVIRONMENT_KINDS)
        raise Problem(
            f"'{found['name']}' has kind {found['kind']}; the pipeline needs {wanted}",
            hint=f"trellis environments create NAME --kind {ENVIRONMENT_KINDS[0]}",
            exit_code=ExitCode.REFUSED,
        )
    if found["state"] != "ready":
        raise Problem(f"'{found['name']}' is {found['state']}", exit_code=ExitCode.REFUSED)
    return {
        each["name"]: Rows(each["dataset"]["id"], frozenset(each["splits"]), each["splits"].get(TRAIN_SPLIT))
        for each in found["datasets"]
    }
