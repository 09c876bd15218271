"""The command `trellis`: everything that the dashboard does, for terminals and scripts."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.markup import escape

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
    quality,
    recipes,
    registry,
    reports,
    rewards,
    sweeps,
    transfers,
    tune,
    votes,
    workflows,
)
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err

DISTRIBUTION = "trellis-platform"
#: Set, a fault of a command is shown with its traceback.
TRACEBACK_VARIABLE = "TRELLIS_TRACEBACK"
HELP = """
Train large language models from the terminal.

[bold]First steps[/bold]

  trellis up                              start the platform on this machine
  trellis datasets upload rows.jsonl      upload training rows
  trellis models register models/starter  register weights under the data root
  trellis recipes list                    what can be trained
  trellis jobs submit --recipe sft --model starter --dataset rows --set learning_rate=1e-4 --wait
                                          launch a job and follow it
  trellis eval submit --model starter --benchmarks gsm8k --limit 100 --wait
                                          measure a model
  trellis chat starter                    talk to a model

Every command takes --help; those that print results take --json.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the platform does not answer, 4 the platform refused.
Settings: TRELLIS_DATA_ROOT, TRELLIS_PORT and the others of docs/configuration.md; for a platform elsewhere
`trellis login URL`, or TRELLIS_URL and TRELLIS_TOKEN. `trellis --install-completion`: Tab completes commands.
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
    """The options before a command; the commands themselves do the work."""


app.add_typer(jobs.app, name="jobs", help="Launch, follow, stop, resume and delete jobs.")
app.add_typer(datasets.app, name="datasets", help="Rows on the platform: upload, import, look at, versions.")
app.add_typer(pipelines.app, name="pipelines", help="Clean, deduplicate and split datasets of the platform.")
app.add_typer(data.app, name="data", help="The same on files of this machine, without a platform.")
app.add_typer(models.app, name="models", help="Register and look at models.")
app.add_typer(registry.app, name="registry", help="Versions of named models, aliases and promotions.")
app.add_typer(votes.app, name="votes", help="Votes of the playground: win rates and pairs to learn from.")
app.add_typer(transfers.app, name="transfers", help="Pushes of models to hubs, and exports to GGUF.")
app.add_typer(endpoints.app, name="endpoints", help="Let models and checkpoints answer requests.")
app.add_typer(recipes.app, name="recipes", help="What can be trained, and with which knobs.")
app.add_typer(rewards.app, name="rewards", help="What responses can earn, and dry runs of it.")
app.add_typer(evaluations.app, name="eval", help="Measure models and checkpoints on benchmarks.")
app.add_typer(benchmarks.app, name="benchmarks", help="What models can be measured on.")
app.add_typer(reports.app, name="reports", help="Evaluations as Markdown, HTML and PDF.")
app.add_typer(agent.app, name="agent", help="Teach a model to use tools: data, training, evaluation.")
app.add_typer(linksearch.app, name="linksearch", help="Train an agent that finds people with SQL.")
app.add_typer(environments.app, name="environments", help="What agents work on; make them, try tools.")
app.add_typer(workflows.app, name="workflows", help="Agents as functions: upload files and packages.")
app.add_typer(job_pipelines.app, name="job-pipelines", help="Stages of jobs that need each other.")
app.add_typer(engines.app, name="engines", help="What is changed in verl, vLLM and TRL, and whether it fits.")
app.add_typer(sweeps.app, name="sweep", help="One training many times, with values or seeds that vary.")
app.add_typer(tune.app, name="tune", help="Train any workflow: an async function that returns a reward.")
chat.register(app)
platform_commands.register(app)
login.register(app)
quality.register(app)


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
        _tell(Problem(f"this command needs the package '{error.name}', which is not installed", hint=hint))
        sys.exit(ExitCode.FAILED)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        hint = f"this is a fault of the command; {TRACEBACK_VARIABLE}=1 shows where it is raised"
        _tell(Problem(f"unexpected {type(error).__name__}: {error}", hint=hint))
        sys.exit(ExitCode.FAILED)


def _tell(problem: Problem) -> None:
    err.print(f"[red]error:[/red] {escape(problem.message)}", highlight=False, soft_wrap=True)
    if problem.hint:
        err.print(f"[dim]{escape(problem.hint)}[/dim]", highlight=False, soft_wrap=True)
