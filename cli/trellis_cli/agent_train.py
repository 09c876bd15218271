"""`trellis agent train`: one stage of the tool-use pipeline on this machine, without the platform."""

import json
import subprocess
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from trellis_contracts.recipe import DataFormat

from trellis_cli.agent_evaluate import PAIR_MAKER, locate_rows, run_module
from trellis_cli.agent_outcome import print_outcome, read_mix, show_rows
from trellis_cli.agent_settings_use import list_unused
from trellis_cli.agent_sources import TOOLS_FILE, NamedData, find_data, find_model
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.event_files import Monitor, open_writer
from trellis_cli.local_job import LocalJob, LocalRows, platform_of_machine, require_gpus, write_spec
from trellis_cli.local_run import require_success, run_local
from trellis_cli.output import Json, err
from trellis_cli.resuming import Resume, ResumeFrom, choose_checkpoint, resume_job
from trellis_cli.services.platform import python_command
from trellis_cli.set_options import read_parameters


class Stage(StrEnum):
    """What can be trained."""

    SFT = "sft"
    DPO = "dpo"
    PPO = "ppo"
    GRPO = "grpo"
    RETRIEVAL = "retrieval"


#: Of each stage: the folder of its rows among those that the formatter writes, and their format.
DATA: dict[Stage, tuple[str, DataFormat]] = {
    Stage.SFT: ("sft", DataFormat.MESSAGES),
    Stage.DPO: ("preference", DataFormat.PREFERENCE),
    Stage.PPO: ("rl", DataFormat.VERL_RL),
    Stage.GRPO: ("rl", DataFormat.VERL_RL),
    Stage.RETRIEVAL: ("retrieval", DataFormat.VERL_RL),
}
#: What --num-samples is, stage by stage.
SAMPLES_PARAMETER = {
    Stage.SFT: "max_samples",
    Stage.PPO: "batch_size",
    Stage.GRPO: "group_size",
}
BETA_PARAMETER = {Stage.DPO: "beta", Stage.GRPO: "kl_coefficient", Stage.PPO: "kl_reward_coefficient"}
#: Parameters of agent_dpo that the sampling of pairs follows.
PAIR_OPTIONS = {"max_sample_tokens": "--max-tokens", "min_margin": "--min-margin"}
FORMATTER = "trellis_train.agents.tooluse.formatting.write"
DEV_FILE, ROWS_FOLDER, PAIRS_FILE, WARM_UP_FOLDER = "dev.jsonl", "rows", "pairs.jsonl", "warm-up"


def register(app: typer.Typer) -> None:
    """Add the command to `trellis agent`."""
    app.command()(train)


def train(
    stage: Annotated[Stage, typer.Argument(help="Stage to train.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", file_okay=False, help=("Output folder for checkpoints, metrics and logs.")
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            help="Rows (JSON Lines or Parquet), a `trellis agent generate` folder, or agent_sft:train. "
            "For sft, default: sft.train_data of the settings.",
        ),
    ] = None,
    base_model: Annotated[
        str | None,
        typer.Option(
            "--base-model",
            "--sft-model",
            help="Folder of the base model or the run that produced it, or a Hub model (owner/name).",
        ),
    ] = None,
    dev_data: Annotated[
        str | None,
        typer.Option(
            help="Validation data: a file, generated data or agent_sft:dev; "
            "the first validation_rows rows are used."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1)] = None,
    task_weights: Annotated[
        str | None, typer.Option(help="For sft: tool_selection=.35,planning=.3,... or a JSON object.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="DPO beta; for grpo and ppo, the KL coefficient.")
    ] = None,
    num_samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="sft: number of rows; dpo: responses per prompt to build pairs from; "
            "grpo: responses per prompt; ppo: rollouts per step.",
        ),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Metrics to print at the end, comma-separated; default: the main ones.")
    ] = None,
    resume: Resume = False,
    resume_from: ResumeFrom = None,
    preset: Annotated[
        str | None, typer.Option(help="development, production, or a machine preset (trellis recipes show).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Settings YAML; see docs/agents.md.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Recipe parameter as NAME=VALUE; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    monitor_type: Annotated[
        Monitor,
        typer.Option(envvar="MONITOR_TYPE", help="tensorboard: event files in the output folder; or wandb."),
    ] = Monitor.NONE,
    gpus: Annotated[
        int | None,
        typer.Option(min=1, envvar="GPUS", help="GPUs of this machine; default: from the settings (1)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Only prepare the rows and print their counts; nothing is trained.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train one stage locally in the foreground; Ctrl-C saves a checkpoint, --resume continues from it."""
    recipe = f"agent_{stage.value}"
    checkpoint = choose_checkpoint(output, recipe, resume=resume, resume_from=resume_from)
    read = _read_settings(config)
    wanted = require_gpus(gpus or read.gpus)
    parameters = _config_parameters(read, stage)
    parameters |= _option_parameters(
        stage, epochs=epochs, weights=task_weights, beta=beta, samples=num_samples
    )
    parameters |= read_parameters(settings or [])
    if "epochs" in parameters:
        # A preset's number of steps would go before it.
        parameters.setdefault("total_steps", None)
    if stage is Stage.DPO:
        num_samples = num_samples or parameters.get("num_samples")
    for sentence in list_unused(read, stage.value, samples_pairs=num_samples is not None):
        err.print(f"{config}: {sentence}", style="yellow", markup=False)
    # Those of the file are for language models.
    chosen = preset or (None if stage is Stage.RETRIEVAL else read.preset)
    named = data or _default_data(read, stage)
    made = output / PAIRS_FILE
    # What a resumed run has learned from is what it goes on with.
    is_made = checkpoint is not None and made.is_file()
    samples_pairs = stage is Stage.DPO and num_samples is not None
    if dry_run and samples_pairs and not is_made:
        raise Problem(
            "--dry-run counts rows that exist, but --num-samples makes the pairs from the model's responses",
            hint="leave out one of them",
            exit_code=ExitCode.USAGE,
        )
    model = find_model(
        base_model or read.base_model(chosen), scratch=output / "base-model", has_weights=not dry_run
    )
    given = find_data(named)
    dev_named = dev_data or (_default_dev_data(read) if stage is Stage.SFT else None)
    dev_file = None if dev_named is None else _find_dev_data(stage, dev_named, output)
    if stage is Stage.SFT:
        warmed_up = output / WARM_UP_FOLDER
        if checkpoint is not None and warmed_up.is_dir():
            model = find_model(str(warmed_up), scratch=warmed_up / "merged", has_weights=not dry_run)
        elif read.warm_up.enabled and not dry_run:
            model = _warm_up(read, model, named, output, parameters, chosen, seed, wanted)
    if samples_pairs and num_samples is not None:
        pairs = made if is_made else _sample_pairs(given, model, output, num_samples, seed, parameters)
        rows = LocalRows(pairs, DataFormat.PREFERENCE)
        measured = None if dev_file is None else LocalRows(dev_file, DataFormat.PREFERENCE)
    else:
        rows, measured = _locate_rows(stage, given.path, dev_file, output, given.split or "train")
    if parameters.get("validation_rows") == 0:
        measured = None
    job = LocalJob(
        folder=output,
        recipe=recipe,
        model=model,
        train=rows,
        validation=measured,
        caps_validation=True,
        preset=chosen,
        params=parameters,
        seed=seed,
        gpus=wanted,
    )
    spec = write_spec(resume_job(job, checkpoint))
    if dry_run:
        show_rows(spec, as_json=as_json)
        return
    described = {"recipe": recipe, "seed": seed, **parameters}
    writer = open_writer(monitor_type, output, described, is_resumed=checkpoint is not None)
    outcome = require_success(run_local(spec, writer=writer))
    shown = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    print_outcome(outcome, spec.recipe, shown, mix=read_mix(spec.attempt_dir), as_json=as_json)


def _read_settings(config: Path | None) -> Any:
    from trellis_recipes.tool_use_settings import BadSettings, ToolUseSettings, load_settings

    try:
        return load_settings(config) if config else ToolUseSettings()
    except BadSettings as error:
        raise Problem(str(error), exit_code=ExitCode.USAGE) from error


def _default_data(settings: Any, stage: Stage) -> str:
    """Return the training rows that the settings name."""
    if stage is not Stage.SFT:
        raise Problem(
            "--data is missing",
            hint="name a file, a `trellis agent generate` folder, or agent_benchmark:train",
            exit_code=ExitCode.USAGE,
        )
    name: str = settings.sft.train_data
    return name


def _default_dev_data(settings: Any) -> str | None:
    """Return the evaluation rows that the settings name; None if they name none, so the dev split is used."""
    name: str = settings.sft.dev_data
    return name if "dev_data" in settings.sft.model_fields_set else None


def _find_dev_data(stage: Stage, given: str, output: Path) -> Path:
    """Find the evaluation rows at a path or under a name such as ``agent_sft:dev``."""
    found = find_data(given)
    if found.path.is_file():
        return found.path
    rows, _ = _locate_rows(stage, found.path, None, output / "dev-rows", found.split or "dev")
    return rows.path


def _warm_up(
    settings: Any,
    model: str,
    data: str,
    output: Path,
    parameters: dict[str, Any],
    preset: str | None,
    seed: int,
    gpus: int,
) -> str:
    """Train shortly on some kinds of tasks first; the weights to go on with."""
    own = settings.warm_up
    named = own.data if "data" in own.model_fields_set else data
    folder = output / WARM_UP_FOLDER
    given = find_data(named)
    rows, _ = _locate_rows(Stage.SFT, given.path, None, folder, given.split or "train")
    err.print(f"warming up in {folder}", markup=False)
    spec = write_spec(
        LocalJob(
            folder=folder,
            recipe="agent_sft",
            model=model,
            train=rows,
            preset=preset,
            params={**parameters, **own.parameters()},
            seed=seed,
            gpus=gpus,
        )
    )
    if require_success(run_local(spec)).outcome == "stopped":
        raise Problem("the warm-up was stopped, so the training did not begin", exit_code=ExitCode.FAILED)
    return find_model(str(folder), scratch=folder / "merged")


def _config_parameters(settings: Any, stage: Stage) -> dict[str, Any]:
    """Return the parameters that the settings file gives for a stage; presets fill in the rest."""
    if stage is Stage.SFT:
        parameters: dict[str, Any] = settings.sft.parameters(given_only=True)
        return parameters
    if stage is Stage.RETRIEVAL:
        return {}
    chosen: dict[str, Any] = settings.rl_parameters(stage.value, given_only=True)
    return chosen


def _option_parameters(
    stage: Stage, *, epochs: int | None, weights: str | None, beta: float | None, samples: int | None
) -> dict[str, Any]:
    from trellis_recipes.tool_use_settings import BadSettings, SFTSettings, read_weights

    parameters: dict[str, Any] = {} if epochs is None else {"epochs": epochs}
    if weights is not None:
        if stage is not Stage.SFT:
            raise Problem(f"--task-weights only works with sft, not {stage.value}", exit_code=ExitCode.USAGE)
        try:
            parameters |= SFTSettings(task_weights=read_weights(weights)).parameters(given_only=True)
        except BadSettings as error:
            raise Problem(str(error), exit_code=ExitCode.USAGE) from error
    for option, value, names in (
        ("--beta", beta, BETA_PARAMETER),
        ("--num-samples", samples, SAMPLES_PARAMETER),
    ):
        if value is None or (option == "--num-samples" and stage is Stage.DPO):
            continue
        if stage not in names:
            known = ", ".join(each.value for each in names)
            raise Problem(f"{option} only works with {known}, not {stage.value}", exit_code=ExitCode.USAGE)
        parameters[names[stage]] = value
    return parameters


def _sample_pairs(
    data: NamedData, model: str, output: Path, samples: int, seed: int, parameters: dict[str, Any]
) -> Path:
    """Sample the model's own responses and pair the best with the worst for each prompt."""
    from trellis_recipes.rewards import check_pair_reward

    terms = parameters.get("rewards")
    if terms and (issues := check_pair_reward(terms)):
        raise Problem("; ".join(issue.message for issue in issues), exit_code=ExitCode.USAGE)
    if samples < 2:
        raise Problem("--num-samples must be at least 2 for dpo", exit_code=ExitCode.USAGE)
    output.mkdir(parents=True, exist_ok=True)
    err.print(f"sampling {samples} responses to each prompt", markup=False)
    rows, pairs = locate_rows(data.path, data.split or "train", output / ROWS_FOLDER), output / PAIRS_FILE
    options = ["--model", model, "--data", str(rows), "--samples", str(samples), "--seed", str(seed)]
    options += ["--platform", platform_of_machine()]
    if terms:
        options += ["--reward", json.dumps(terms[0].get("options") or {})]
    for name, option in PAIR_OPTIONS.items():
        options += [option, str(parameters[name])] if parameters.get(name) is not None else []
    found = run_module(PAIR_MAKER, [*options, "--output", str(pairs), "--temperature", "1.0"])
    if not found["pairs"]:
        raise Problem(
            f"none of {found['prompts']} prompts has two responses with different rewards",
            hint="train with sft first, or raise --num-samples",
            exit_code=ExitCode.FAILED,
        )
    return pairs


def _locate_rows(
    stage: Stage, data: Path, dev_data: Path | None, output: Path, split: str
) -> tuple[LocalRows, LocalRows | None]:
    """Find the rows to train on and to evaluate on; generated dialogs are formatted first."""
    name, row_format = DATA[stage]
    train_file = data
    if data.is_dir():
        folder = data
        if (data / TOOLS_FILE).is_file():
            folder = output / ROWS_FOLDER
            _format(data, folder)
        train_file = folder / name / f"{split}.jsonl"
        if not train_file.is_file():
            raise Problem(f"{data} contains no {name}/{split}.jsonl", exit_code=ExitCode.USAGE)
        measured = folder / name / DEV_FILE
        dev_data = dev_data or (measured if measured.is_file() else None)
    return LocalRows(train_file, row_format), LocalRows(dev_data, row_format) if dev_data else None


def _format(data: Path, folder: Path) -> None:
    err.print(f"formatting the dialogs of {data}", markup=False)
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        python_command("-m", FORMATTER, str(data), str(folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise Problem(lines[-1] if lines else "can't write the rows", exit_code=ExitCode.USAGE)
