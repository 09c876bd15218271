"""`trellis tune`: train any async Python function that runs an agent and returns a reward."""

import json
import os
import subprocess
from pathlib import Path
from typing import Annotated, Any

import typer
from trellis_api.core.settings import Settings
from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import AUXILIARY_KEYS_FILE
from trellis_contracts.private_files import write_private
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import JobSpec

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.event_files import FOLDER, EventFiles
from trellis_cli.local_job import LocalJob, LocalRows, require_gpus, write_spec
from trellis_cli.local_run import describe_failed_sessions, require_success, run_local
from trellis_cli.output import err, out, print_json
from trellis_cli.resuming import Resume, ResumeFrom, choose_checkpoint, resume_job
from trellis_cli.services.platform import python_command
from trellis_cli.set_options import read_parameters
from trellis_cli.tune_module import ask, complaint, tell
from trellis_cli.tune_submit import submit

app = typer.Typer(no_args_is_help=True)
app.command("submit")(submit)
#: Exit code of `trellis.searching` where the input is wrong.
CANNOT_BEGIN = 2
#: Parameters that the loop reads (the others are the engine's).
_OPTIONS = (
    "runners", "session_timeout", "step_timeout", "memory_mb", "reply_tokens", "tool_template",
    "reasoning_parser",
)  # fmt: skip
Workflow = Annotated[
    str,
    typer.Argument(help="file.py, file.py:function, a package folder, or a trellis.tune pickle."),
]
Config = Annotated[Path, typer.Argument(help="Configuration YAML; see docs/sdk.md.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("validate")
def validate(
    workflow: Workflow,
    config: Annotated[
        Path | None,
        typer.Option(help="Also validate this configuration and use its first row for the session."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Task for the session, as a JSON object; default: an addition problem.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Validate a workflow and configuration, and run one session in the sandbox with a scripted model."""
    given = {"--config": None if config is None else str(config), "--task": task}
    options = [part for name, value in given.items() if value is not None for part in (name, value)]
    done = ask("validate", workflow, *options)
    found = json.loads(done.stdout) if done.stdout.strip() else None
    if found is None:
        raise Problem(complaint(done), exit_code=ExitCode.USAGE)
    if as_json:
        print_json(found)
    else:
        for fault in found["faults"]:
            out.print(tell(fault), markup=False, highlight=False, soft_wrap=True)
    if found["faults"]:
        raise typer.Exit(ExitCode.USAGE)
    if not as_json:
        out.print(f"{found['function']} can be trained", highlight=False)


@app.command("run")
def run(
    config: Config,
    workflow: Workflow,
    output: Annotated[Path | None, typer.Option(help="Run folder; default: from the configuration.")] = None,
    set_values: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of the tune recipe as NAME=VALUE.")
    ] = None,
    resume: Resume = False,
    resume_from: ResumeFrom = None,
    as_json: Json = False,
) -> None:
    """Train a workflow locally in the foreground; Ctrl-C saves a checkpoint, --resume continues from it."""
    if Path(workflow.partition(":")[0]).is_dir():
        done = ask("install", workflow)
        if done.returncode:
            raise Problem(complaint(done), exit_code=ExitCode.USAGE)
    plan = read_plan(config)
    job = make_job(plan, workflow, output=output, changes=read_parameters(set_values or []))
    if job.nodes == 1 and Settings().resolved_platform == "cuda":
        require_gpus(job.gpus)
    checkpoint = choose_checkpoint(job.folder, job.recipe, resume=resume, resume_from=resume_from)
    cluster = join_cluster(job.nodes, Settings().resolved_platform)
    spec = write_spec(resume_job(job, checkpoint))
    _write_keys(spec)
    writer = EventFiles(Path(spec.attempt_dir).parent / FOLDER) if plan["has_event_files"] else None
    outcome = require_success(run_local(spec, environment=cluster, writer=writer))
    if (failed := describe_failed_sessions(outcome)) is not None:
        err.print(f"warning: {failed}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print_json(outcome.as_dict())
    else:
        score = outcome.metrics.get("critic/score/mean")
        shown = "" if score is None else f", mean reward {score:.3f}"
        out.print(f"{outcome.outcome} at step {outcome.step}{shown}; {outcome.folder}", highlight=False)


@app.command("search")
def search(
    config: Config,
    workflow: Workflow,
    space: Annotated[
        str, typer.Option(help='Search space in JSON: {"algorithm.optimizer.lr": [1e-6, 1e-5]}.')
    ],
    metric: Annotated[str, typer.Option(help="Objective metric.")] = "critic/score/mean",
    mode: Annotated[str, typer.Option(help="max or min.")] = "max",
    num_samples: Annotated[
        int, typer.Option(min=1, help=("Number of trials; every value in a list is tried."))
    ] = 1,
    max_concurrent: Annotated[int, typer.Option(min=1, help="Max parallel trials.")] = 1,
    output: Annotated[Path, typer.Option(help=("Output folder for best.yaml and trials.csv."))] = Path(
        "search"
    ),
) -> None:
    """Search hyperparameters with Ray Tune and ASHA; failed trials don't affect others."""
    command = [
        # The package itself imports the module, of which Python warns.
        *python_command("-W", "ignore::RuntimeWarning:runpy", "-m", "trellis.searching"),
        str(config), workflow, "--space", space, "--metric", metric, "--mode", mode,
        "--num-samples", str(num_samples), "--max-concurrent", str(max_concurrent), "--output", str(output),
    ]  # fmt: skip
    done = subprocess.run(command, check=False)  # noqa: S603 - our own command
    if done.returncode == CANNOT_BEGIN:
        raise Problem("cannot start the search", hint="see the message above", exit_code=ExitCode.USAGE)
    if done.returncode:
        raise Problem("no trial succeeded", hint=f"see {output}/trials.csv")


def read_plan(config: Path) -> dict[str, Any]:
    """Read the job that a configuration asks for; raise ``Problem`` if the configuration is wrong."""
    done = ask("plan", str(config), "--platform", Settings().resolved_platform)
    if done.returncode:
        raise Problem(complaint(done), exit_code=ExitCode.USAGE)
    if done.stderr.strip():
        out.print(done.stderr.strip(), markup=False, highlight=False, style="dim")
    plan: dict[str, Any] = json.loads(done.stdout)
    if faults := plan.pop("faults"):
        raise Problem("; ".join(map(tell, faults)), exit_code=ExitCode.USAGE)
    return plan


def join_cluster(nodes: int, platform: str) -> dict[str, str]:
    """Return the Ray cluster settings of a run on several nodes; raise ``Problem`` if no cluster is named.

    A run on one node starts a cluster of its own.
    """
    if nodes == 1 or platform == "cpu":
        return {}
    if not os.environ.get("RAY_ADDRESS"):
        raise Problem(
            f"cluster.node_num is {nodes}, but no Ray cluster of {nodes} nodes is named",
            hint="run ray start on each node, with the run folder and the model on a shared file system,"
            " and set RAY_ADDRESS to the head's address; or set cluster.node_num to 1",
            exit_code=ExitCode.USAGE,
        )
    told = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    return {"RAY_AUTH_MODE": "disabled", **told}


def make_job(
    plan: dict[str, Any], workflow: str, *, output: Path | None = None, changes: dict[str, Any] | None = None
) -> LocalJob:
    """Build a local job that uses the workflow from its own file."""
    path, separator, function = workflow.partition(":")
    place = f"{Path(path).resolve()}{separator}{function}"
    params = {**plan["params"], **(changes or {})}
    options = {name: params[name] for name in _OPTIONS if name in params}
    validation = plan["validation"]
    return LocalJob(
        folder=output or Path(plan["folder"]),
        recipe=plan["recipe"],
        model=str(Path(plan["model"]).resolve()),
        train=_rows(plan["train"]),
        validation=None if validation is None else _rows(validation),
        params={**params, "workflow": place},
        overrides=plan["overrides"],
        agent=AgentTask(
            kind="tune",
            workflow_path=place,
            tool_environments={
                name: str(Path(each).resolve()) for name, each in plan["environments"].items()
            },
            auxiliary_models=plan["auxiliary_models"],
            hosts=Settings().workflow_hosts,
            options=options,
        ),
        seed=plan["seed"],
        gpus=plan["gpus"],
        nodes=plan["nodes"],
    )


def _write_keys(spec: JobSpec) -> None:
    """Write the keys of other models from this process's environment beside the spec (mode 600)."""
    models = spec.agent.auxiliary_models if spec.agent is not None else {}
    named = {name: each.key_variable for name, each in models.items() if each.key_variable}
    missing = [variable for variable in named.values() if variable not in os.environ]
    if missing:
        raise Problem(f"no key in the variable {', '.join(missing)}", exit_code=ExitCode.USAGE)
    if named:
        path = Path(spec.attempt_dir) / AUXILIARY_KEYS_FILE
        write_private(path, json.dumps({name: os.environ[variable] for name, variable in named.items()}))


def _rows(rows: dict[str, Any]) -> LocalRows:
    return LocalRows(Path(rows["path"]), DataFormat(rows["format"]), rows["columns"])
