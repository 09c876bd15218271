"""The command `trellis`: everything the dashboard can do, for terminals and scripts."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.markup import escape
from trellis_contracts import DISTRIBUTION

from trellis_cli import (
    agent,
    benchmarks,
    chat,
    data,
    datasets,
    endpoints,
    engines,
    environments,
    evaluations,
    job_pipelines,
    jobs,
    linksearch,
    login,
    models,
    pipelines,
    platform_commands,
    recipes,
    registry,
    replay,
    reports,
    rewards,
    sweeps,
    transfers,
    tune,
    votes,
    workflows,
)
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.old_names import keep_old_group
from trellis_cli.output import err

#: Set, a fault of a command is shown with its traceback.
TRACEBACK_VARIABLE = "TRELLIS_TRACEBACK"
HELP = """
Train large language models from the terminal.

[bold]First steps[/bold]

  trellis up                              start the platform on this machine
  trellis datasets upload rows.jsonl      upload training rows
  trellis models register models/starter  register weights from the data root
  trellis recipes list                    list recipes
  trellis jobs submit --recipe sft --model starter --dataset rows --set learning_rate=1e-4 --wait
                                          launch a job and wait for it
  trellis evaluations submit --model starter --benchmarks gsm8k --limit 100 --wait
                                          evaluate a model
  trellis chat starter                    chat with a model

Every command supports --help; commands that print results support --json.
Exit codes: 0 success, 1 failure, 2 usage error, 3 platform unreachable, 4 request rejected.
Settings: TRELLIS_DATA_ROOT, TRELLIS_PORT and others, see docs/configuration.md. For a remote platform, run
`trellis login URL` or set TRELLIS_URL and TRELLIS_TOKEN. For Tab completion: `trellis --install-completion`.
"""

app = typer.Typer(
    name="trellis",
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"trellis {version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Handle the options before a command; the commands themselves do the work."""


app.add_typer(jobs.app, name="jobs", help="Launch, follow, stop, resume and delete jobs.")
app.add_typer(datasets.app, name="datasets", help="Upload, import, inspect and version datasets.")
app.add_typer(pipelines.app, name="pipelines", help="Data pipelines: clean, deduplicate and split datasets.")
app.add_typer(data.app, name="data", help="Data tools for local files, without the platform.")
app.add_typer(models.app, name="models", help="Register and manage models.")
app.add_typer(
    registry.app, name="registry", help=("Model registry: named models, versions, aliases and promotions.")
)
app.add_typer(votes.app, name="votes", help="Playground votes: win rates and preference pairs.")
app.add_typer(transfers.app, name="transfers", help="Push models to hubs, export them to GGUF.")
app.add_typer(endpoints.app, name="endpoints", help="Serve models and checkpoints.")
app.add_typer(recipes.app, name="recipes", help="Recipes and their parameters.")
app.add_typer(rewards.app, name="rewards", help="Rewards and dry runs.")
app.add_typer(evaluations.app, name="evaluations", help="Evaluate models and checkpoints on benchmarks.")
app.add_typer(benchmarks.app, name="benchmarks", help="Evaluation benchmarks.")
app.add_typer(reports.app, name="reports", help="Evaluation reports in Markdown, HTML and PDF.")
app.add_typer(agent.app, name="agent", help="Train models to use tools: data, training, evaluation.")
app.add_typer(linksearch.app, name="linksearch", help="Train an agent that finds people using SQL.")
app.add_typer(environments.app, name="environments", help="Create agent environments and try their tools.")
app.add_typer(workflows.app, name="agent-code", help="Agent code: upload your agents as files or packages.")
app.add_typer(job_pipelines.app, name="job-pipelines", help="Workflows: chained jobs.")
app.add_typer(
    engines.app,
    name="engines",
    help=("Check the patches to verl, vLLM and TRL against the installed versions."),
)
app.add_typer(
    sweeps.app, name="sweeps", help=("Sweeps: run a training many times with varying parameters or seeds.")
)
app.add_typer(tune.app, name="tune", help="Train agent code: async functions that return a reward.")
for group, old, now in (
    (evaluations.app, "eval", "evaluations"),
    (sweeps.app, "sweep", "sweeps"),
    (workflows.app, "workflows", "agent-code"),
):
    keep_old_group(app, group, old, now=now)
chat.register(app)
replay.register(app)
platform_commands.register(app)
login.register(app)


def main() -> None:
    """Run a command; a problem is told in a sentence and becomes the exit code."""
    try:
        app()
    except Problem as problem:
        _tell(problem)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.FAILED)
    except BrokenPipeError:
        # Who reads has enough (`| head`); Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _tell(Problem(f"{place}{error.strerror or error}"))
        sys.exit(ExitCode.FAILED)
    except ModuleNotFoundError as error:
        hint = (
            f'pip install "{DISTRIBUTION}[data]" for files, [api,worker] for a platform, [train] for training'
        )
        _tell(Problem(f"this command requires the '{error.name}' package, which is not installed", hint=hint))
        sys.exit(ExitCode.FAILED)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        hint = f"this is a bug; set {TRACEBACK_VARIABLE}=1 for a traceback"
        _tell(Problem(f"unexpected {type(error).__name__}: {error}", hint=hint))
        sys.exit(ExitCode.FAILED)


def _tell(problem: Problem) -> None:
    err.print(f"[red]error:[/red] {escape(problem.message)}", highlight=False, soft_wrap=True)
    if problem.hint:
        err.print(f"[dim]{escape(problem.hint)}[/dim]", highlight=False, soft_wrap=True)
