"""`trellis linksearch`: train an agent that finds people in a database, on this machine."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from trellis_contracts.recipe import DataFormat
from trellis_recipes.hub_names import MODELSCOPE

from trellis_cli.agent_sources import fetch_hub_model
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.event_files import Monitor, open_writer
from trellis_cli.linksearch_resume import RECIPE, choose_checkpoint, locate_model
from trellis_cli.linksearch_settings import LinkSearchSettings, Mode, read_settings
from trellis_cli.local_job import LocalJob, LocalRows, require_gpus, write_spec
from trellis_cli.local_run import LocalOutcome, require_success, run_local
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, out, print_json, print_table, styled
from trellis_cli.resuming import Resume, ResumeFrom, resume_job
from trellis_cli.services.platform import python_command
from trellis_cli.set_options import read_parameters

app = typer.Typer(no_args_is_help=True)
_PACKAGE = "trellis_train.agents.linksearch"


Config = Annotated[Path | None, typer.Option("--config", help="Settings YAML; see docs/agents.md.")]
Database = Annotated[Path | None, typer.Option("--profile-db-path", help="PROFILE_DB_PATH.")]
Queries = Annotated[str | None, typer.Option("--queries", help="File, folder or Hub dataset with queries.")]
Model = Annotated[
    str | None,
    typer.Option("--model-name", help="MODEL_NAME: a folder, a Hub name, modelscope:OWNER/NAME."),
]
Output = Annotated[Path | None, typer.Option("--output-dir", "-o", help="OUTPUT_DIR: run folder.")]
Preset = Annotated[str | None, typer.Option(help="Recipe PRESET; default: depends on the machine.")]
TrainSize = Annotated[int | None, typer.Option(help="TRAIN_DATASET_SIZE.")]
EvalSize = Annotated[int | None, typer.Option(help="EVAL_DATASET_SIZE.")]
MaxTurns = Annotated[int | None, typer.Option(help="MAX_TURNS.")]
MaxProfiles = Annotated[int | None, typer.Option(help="MAX_PROFILES.")]
MaxTokens = Annotated[int | None, typer.Option(help="MAX_TOKENS.")]
ToolTemplate = Annotated[
    str | None,
    typer.Option(help="TOOL_TEMPLATE: model, or hermes if the chat template doesn't support tools."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", help="Additional recipe parameter as NAME=VALUE; repeatable (PARAMS)."),
]


@app.command("train")
def train(
    mode: Annotated[Mode | None, typer.Option(help="MODE. masked: recommended; rollout: ablation.")] = None,
    enable_detailed_logging: Annotated[
        bool | None,
        typer.Option("--enable-detailed-logging/--no-detailed-logging", help="ENABLE_DETAILED_LOGGING."),
    ] = None,
    resume: Resume = False,
    resume_from: ResumeFrom = None,
    resume_best: Annotated[
        bool, typer.Option("--resume_best", "--resume-best", help="Resume from the best checkpoint.")
    ] = False,
    config: Config = None,
    profile_db_path: Database = None,
    queries: Queries = None,
    model_name: Model = None,
    output_dir: Output = None,
    train_dataset_size: TrainSize = None,
    eval_dataset_size: EvalSize = None,
    max_steps: Annotated[int | None, typer.Option(help="MAX_STEPS.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="LEARNING_RATE.")] = None,
    num_generations: Annotated[int | None, typer.Option(help="NUM_GENERATIONS.")] = None,
    tool_template: ToolTemplate = None,
    max_turns: MaxTurns = None,
    max_profiles: MaxProfiles = None,
    max_tokens: MaxTokens = None,
    per_device_train_batch_size: Annotated[
        int | None, typer.Option(help="PER_DEVICE_TRAIN_BATCH_SIZE.")
    ] = None,
    gradient_accumulation_steps: Annotated[
        int | None, typer.Option(help="GRADIENT_ACCUMULATION_STEPS.")
    ] = None,
    reward_score: Annotated[float | None, typer.Option(help="REWARD_SCORE.")] = None,
    reward_found: Annotated[float | None, typer.Option(help="REWARD_FOUND.")] = None,
    reward_read: Annotated[float | None, typer.Option(help="REWARD_READ.")] = None,
    reward_returned_read: Annotated[float | None, typer.Option(help="REWARD_RETURNED_READ.")] = None,
    reward_strategy: Annotated[float | None, typer.Option(help="REWARD_STRATEGY.")] = None,
    reward_efficiency: Annotated[float | None, typer.Option(help="REWARD_EFFICIENCY.")] = None,
    penalty_needless: Annotated[float | None, typer.Option(help="PENALTY_NEEDLESS.")] = None,
    penalty_zero_result: Annotated[float | None, typer.Option(help="PENALTY_ZERO_RESULT.")] = None,
    penalty_sql_error: Annotated[float | None, typer.Option(help="PENALTY_SQL_ERROR.")] = None,
    penalty_denied: Annotated[float | None, typer.Option(help="PENALTY_DENIED.")] = None,
    penalty_malformed: Annotated[float | None, typer.Option(help="PENALTY_MALFORMED.")] = None,
    target_accuracy: Annotated[str | None, typer.Option(help="TARGET_ACCURACY, 0 to 1, or none.")] = None,
    patience: Annotated[int | None, typer.Option(help="PATIENCE.")] = None,
    eval_steps: Annotated[int | None, typer.Option(help="EVAL_STEPS.")] = None,
    save_steps: Annotated[int | None, typer.Option(help="SAVE_STEPS.")] = None,
    seed: Annotated[int | None, typer.Option(help="SEED.")] = None,
    monitor_type: Annotated[
        Monitor | None,
        typer.Option(help="MONITOR_TYPE. tensorboard: event files in OUTPUT_DIR/tensorboard; or wandb."),
    ] = None,
    gpus: Annotated[int | None, typer.Option(help="GPUS: GPUs of this machine; default: 1.")] = None,
    preset: Preset = None,
    parameters: Parameters = None,
    as_json: Json = False,
) -> None:
    """Train; Ctrl-C saves a checkpoint and exits, --resume continues from it."""
    settings = read_settings(_given(locals()), config=config)
    checkpoint = choose_checkpoint(
        settings.output_dir, resume=resume, resume_from=resume_from, resume_best=resume_best
    )
    outcome = require_success(_run(resume_job(make_job(settings), checkpoint), settings))
    _print(outcome, as_json)


@also_known_as(app, "check", now="validate")
@app.command("validate")
def validate(
    config: Config = None,
    profile_db_path: Database = None,
    queries: Queries = None,
    model_name: Model = None,
    train_dataset_size: TrainSize = None,
    eval_dataset_size: EvalSize = None,
    max_turns: MaxTurns = None,
    max_profiles: MaxProfiles = None,
    tool_template: ToolTemplate = None,
    as_json: Json = False,
) -> None:
    """Validate database, data, model and settings without training."""
    given = _given(locals())
    try:
        settings = read_settings(given, config=config)
    except Problem as problem:
        findings = [_finding("settings", problem.message, "Fix it at the location in brackets.")]
    else:
        findings = [_finding("settings"), *_look(settings)]
    if as_json:
        print_json(findings)
    else:
        rows = [
            (each["part"], styled("ok" if each["is_ok"] else "failing"), each["message"], each["advice"])
            for each in findings
        ]
        print_table(("part", "state", "found", "what to do"), rows)
    if not all(each["is_ok"] for each in findings):
        raise typer.Exit(ExitCode.FAILED)


@also_known_as(app, "eval", now="evaluate")
@app.command("evaluate")
def evaluate(
    checkpoint: Annotated[
        str | None, typer.Option(help="A run's checkpoint, or a model; default: MODEL_NAME.")
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(help="MODE of the episodes and their reward; simple: one turn. Default: masked."),
    ] = None,
    config: Config = None,
    profile_db_path: Database = None,
    queries: Queries = None,
    output_dir: Output = None,
    eval_dataset_size: EvalSize = None,
    max_turns: MaxTurns = None,
    max_profiles: MaxProfiles = None,
    max_tokens: MaxTokens = None,
    tool_template: ToolTemplate = None,
    seed: Annotated[int | None, typer.Option(help="SEED.")] = None,
    monitor_type: Annotated[
        Monitor | None,
        typer.Option(help="MONITOR_TYPE. tensorboard: event files in OUTPUT_DIR/tensorboard; or wandb."),
    ] = None,
    gpus: Annotated[int | None, typer.Option(help="GPUS: GPUs of this machine; default: 1.")] = None,
    preset: Preset = None,
    parameters: Parameters = None,
    as_json: Json = False,
) -> None:
    """Evaluate a model or checkpoint on the eval split, in the mode of the settings."""
    settings = read_settings(_given(locals()), config=config)
    folder = settings.output_dir / "evaluations"
    model = _locate(locate_model(checkpoint or settings.model_name, scratch=folder / "model"))
    settings = settings.model_copy(update={"model_name": model, "output_dir": folder})
    job = make_job(settings)
    outcome = require_success(_run(replace(job, only_validates=True), settings))
    _print(outcome, as_json)


@app.command("generate")
def generate(
    folder: Annotated[Path, typer.Argument(help="Output folder for the database, queries and manifest.")],
    profiles: Annotated[int, typer.Option(help="Number of profiles.")] = 2000,
    train_queries: Annotated[int, typer.Option("--train", help="Number of training queries.")] = 1000,
    eval_queries: Annotated[int, typer.Option("--eval", help="Number of evaluation queries.")] = 100,
    seed: Annotated[int, typer.Option(help="The same numbers and seed produce identical files.")] = 42,
    as_json: Json = False,
) -> None:
    """Generate a profile database and queries with known answers."""
    counts = {"--profiles": profiles, "--train": train_queries, "--eval": eval_queries, "--seed": seed}
    options = [part for name, value in counts.items() for part in (name, str(value))]
    manifest = _ask("generate", str(folder), *options)
    if as_json:
        print_json(manifest)
        return
    print_table(("file", "sha256"), list(manifest["sha256"].items()))
    out.print(f"export PROFILE_DB_PATH={folder / 'profiles.db'}", markup=False, highlight=False)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings among a command's options; those of ``--set`` are ``params``."""
    given = {
        name: value
        for name, value in options.items()
        if name in LinkSearchSettings.model_fields and value is not None
    }
    if options.get("parameters"):
        given["params"] = read_parameters(options["parameters"])
    return given


def make_job(settings: LinkSearchSettings) -> LocalJob:
    """Build the job that the settings describe; write its environment to the run's folder."""
    gpus = require_gpus(settings.gpus)
    environment = settings.output_dir / "environment"
    _ask("setup", "lay", *_sources(settings), "--folder", str(environment), token=settings.hf_token)
    return LocalJob(
        folder=settings.output_dir,
        recipe=RECIPE,
        model=_locate(settings.model_name),
        train=LocalRows(environment / "train.rows.jsonl", DataFormat.VERL_RL),
        validation=LocalRows(environment / "eval.rows.jsonl", DataFormat.VERL_RL),
        preset=settings.preset,
        params={
            **settings.parameters(),
            "environment": str(environment.resolve()),
        },
        agent_environment=environment.resolve(),
        seed=settings.seed,
        gpus=gpus,
    )


def _run(job: LocalJob, settings: LinkSearchSettings) -> LocalOutcome:
    """Run it; the hub's token goes into the environment of the processes, never into a file."""
    token = settings.hf_token
    # Where the environment lies on this machine is of no use elsewhere.
    config = {name: value for name, value in job.params.items() if name != "environment"}
    writer = open_writer(settings.monitor_type, job.folder, config, is_resumed=job.resume_from is not None)
    environment = {} if token is None else {"HF_TOKEN": token.get_secret_value()}
    return run_local(write_spec(job), environment=environment, writer=writer)


def _locate(model: str, *, has_weights: bool = True) -> str:
    """Return the model's folder, or its name on the Hugging Face Hub, from which the engine downloads it."""
    if Path(model).is_dir():
        return str(Path(model).resolve())
    if model.startswith(MODELSCOPE):
        return fetch_hub_model(model, has_weights=has_weights)
    return model


def _sources(settings: LinkSearchSettings) -> list[str]:
    return [
        *("--database", str(settings.profile_db_path), "--queries", settings.source),
        *("--train", str(settings.train_dataset_size), "--eval", str(settings.eval_dataset_size)),
    ]


def _look(settings: LinkSearchSettings) -> list[dict[str, Any]]:
    asked = ["--max-turns", str(settings.max_turns), "--tool-template", settings.tool_template]
    missing = []
    try:
        asked += ["--model", _locate(settings.model_name, has_weights=False)]
    except Problem as problem:
        missing = [_finding("model", problem.message, problem.hint or "")]
    found: list[dict[str, Any]] = _ask("setup", "check", *_sources(settings), *asked, token=settings.hf_token)
    return [*found, *missing]


def _ask(module: str, *arguments: str, token: Any = None) -> Any:
    """Run a module of the agent and return its JSON output; raise ``Problem`` with its error if it fails."""
    env = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    if token is not None:
        env["HF_TOKEN"] = token.get_secret_value()
    command = python_command("-m", f"{_PACKAGE}.{module}", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)  # noqa: S603 - ours
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{module} failed"]
        raise Problem(lines[-1], exit_code=ExitCode.USAGE)
    return json.loads(done.stdout)


def _finding(part: str, problem: str | None = None, advice: str = "") -> dict[str, Any]:
    return {"part": part, "is_ok": problem is None, "message": problem or "ok", "advice": advice}


def _print(outcome: LocalOutcome, as_json: bool) -> None:
    if as_json:
        print_json(outcome.as_dict())
        return
    shown = {
        key: value
        for key, value in outcome.metrics.items()
        if key.startswith(("eval/", "baseline/", "train/"))
    }
    print_table(("metric", "value"), [(key, f"{float(value):.4f}") for key, value in sorted(shown.items())])
    out.print(f"{outcome.outcome} at step {outcome.step}; {outcome.folder}", highlight=False, markup=False)
