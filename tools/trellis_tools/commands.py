"""`./init.sh check | test | verify | proof | bench | chaos | soak | fuzz`: check and measure a checkout."""

from typing import Annotated

import typer
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json


def check(
    name: Annotated[
        list[str] | None,
        typer.Argument(help=("Checks to run, e.g. lint, types, frontend, budgets; default: all.")),
    ] = None,
) -> None:
    """Run all checks except tests: lint, types, import rules, generated files, migrations, compose file."""
    from trellis_tools.ci.checks import run_checks

    raise typer.Exit(ExitCode.OK if run_checks(name or []) else ExitCode.FAILED)


def run_tests(
    ctx: typer.Context,
    is_complete: Annotated[
        bool, typer.Option("--all", help=("Run all tests, in parts, two at a time."))
    ] = False,
    part: Annotated[
        list[str] | None,
        typer.Option("--part", help="Only this part of --all, e.g. browser; repeatable. `list` shows them."),
    ] = None,
    is_fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help=("With --all: rerun parts even if they already passed on the same files.")
        ),
    ] = False,
    is_changed: Annotated[
        bool, typer.Option("--changed", help="The fast set plus all parts affected by the change.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(
            help="With --changed: the commit to compare with; default: the newest one that --all passed on "
            "here, else the parent."
        ),
    ] = None,
) -> None:
    """Run the fast tests, two suites at a time; results in .test-results. Other arguments go to pytest.

    Long tests are marked slow, training, browser or faults; they run with --all, or with --changed if they
    are affected by the change.
    """
    from trellis_tools.ci import runs

    if ctx.args:
        if is_complete or part or is_changed:
            raise Problem(
                f"pytest arguments {ctx.args} can't be combined with --all, --part or --changed",
                exit_code=ExitCode.USAGE,
            )
        raise typer.Exit(runs.run_pytest(ctx.args))
    if part == ["list"]:
        runs.list_parts_of_all()
        raise typer.Exit(ExitCode.OK)
    if is_complete or part:
        is_good = runs.run_complete(part or [], is_fresh=is_fresh)
    elif is_changed:
        is_good = runs.run_changed(base)
    else:
        is_good = runs.run_fast()
    raise typer.Exit(ExitCode.OK if is_good else ExitCode.FAILED)


def verify(
    feature: Annotated[
        list[str] | None, typer.Argument(help=("Feature IDs such as ALG-002; default: all."))
    ] = None,
    is_recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Use the results of `test --all` on these files; run no tests."),
    ] = False,
) -> None:
    """Run all tests of the given features and record `passes`, commit and date in feature_list.json."""
    from trellis_tools.ci.features import record_features, verify_features

    is_good = (record_features if is_recorded else verify_features)(feature or [])
    raise typer.Exit(ExitCode.OK if is_good else ExitCode.FAILED)


def proof(
    recipe: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recipes such as grpo, with their variants (adapters, other rewards); default: all "
            "algorithm recipes, no variants (limit: 45 min on two cores). `all` adds agents (hours)."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A pretrained model instead of the starter model: a folder or a name from `trellis models "
            "catalogue`, e.g. smollm2-135m-instruct (about 5 minutes per recipe on two cores)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model with each recipe and check that it learns."""
    from trellis_tools.proof import run_proofs

    is_proven = run_proofs(recipe or [], model=model, as_json=as_json)
    raise typer.Exit(ExitCode.OK if is_proven else ExitCode.FAILED)


def bench(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            help="Benchmarks to run; `list` shows them. Default: all but real_model, serving_real_model, "
            "memory, cpu_layer, points, jobs and viewers."
        ),
    ] = None,
    shapes: Annotated[
        str | None, typer.Option(help="For grpo_against_trl: comma-separated shapes, or `all`.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="For grpo_against_trl: runs per side; the fastest counts.")
    ] = 1,
    rows: Annotated[
        int,
        typer.Option(
            min=1000,
            help=(
                "For data, browse and eval_samples: number of rows; above 2,000,000 only Trellis is measured."
            ),
        ),
    ] = 1_000_000,
    points: Annotated[
        int, typer.Option(min=1000, help="For points: metric points in the store; charts are timed.")
    ] = 10_000_000,
    jobs: Annotated[
        int, typer.Option(min=10, help="For jobs: jobs on the platform; pages of their list are timed.")
    ] = 100_000,
    viewers: Annotated[
        int, typer.Option(min=1, help="For viewers: open live streams; the API's memory is measured.")
    ] = 500,
    model: Annotated[
        str | None,
        typer.Option(
            help="For the *real_model ones, memory and cpu_layer: a model folder or a catalogue name."
        ),
    ] = None,
    piece: Annotated[
        list[str] | None,
        typer.Option(help="For cpu_layer: a piece of the CPU layer, e.g. cpu-threads; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Benchmark this platform against its targets, the bare engine and other tools."""
    from trellis_tools.bench.real_model import DEFAULT
    from trellis_tools.bench.run import run_benchmarks

    is_kept = run_benchmarks(
        name or [],
        as_json=as_json,
        shapes=shapes,
        rounds=rounds,
        rows=rows,
        points=points,
        jobs=jobs,
        viewers=viewers,
        model=model or DEFAULT,
        pieces=piece or (),
    )
    raise typer.Exit(ExitCode.OK if is_kept else ExitCode.FAILED)


def chaos(
    minutes: Annotated[
        float, typer.Option(min=0.1, help="How long to inject faults; verification takes a few minutes more.")
    ] = 30,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after this many faults, if --minutes aren't over before.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed produces the same faults.")] = 1,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="Only inject this fault, e.g. kill-ray; repeatable. The report lists all kinds."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="An empty PostgreSQL database, postgresql://user:password@host/name; default: SQLite."
        ),
    ] = None,
    endpoints: Annotated[
        bool, typer.Option(help="Serve the starter model and send it chat requests all the time.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Inject random faults under load and check that nothing is lost, duplicated or stuck."""
    from trellis_tools.chaos.command import run_chaos

    is_held = run_chaos(
        minutes=minutes,
        count=count,
        seed=seed,
        kinds=fault or [],
        database_url=database,
        has_endpoint=endpoints,
        is_json=as_json,
    )
    raise typer.Exit(ExitCode.OK if is_held else ExitCode.FAILED)


def soak(
    minutes: Annotated[float, typer.Option(min=2, help="Duration of the soak test.")] = 30,
    as_json: Json = False,
) -> None:
    """Put constant load on a temporary platform and fail if a service's memory grows by more than 10%."""
    from trellis_tools.soak.command import run_soak

    raise typer.Exit(ExitCode.OK if run_soak(minutes=minutes, is_json=as_json) else ExitCode.FAILED)


def fuzz(
    requests: Annotated[
        int, typer.Option(min=1, help="Number of requests, spread over all operations of the API.")
    ] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed generates the same requests.")] = 1,
    as_json: Json = False,
) -> None:
    """Send requests generated from the OpenAPI schema, with and without a token, to a temporary platform.

    Fails if one gets a 5xx or no response, or if one without a token is answered.
    """
    from trellis_tools.fuzz.command import run_fuzz

    is_good = run_fuzz(requests=requests, seed=seed, is_json=as_json)
    raise typer.Exit(ExitCode.OK if is_good else ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the commands to the root application, which then has what `./init.sh` offers."""
    for command in (check, verify, proof, bench, chaos, soak, fuzz):
        app.command()(command)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("test", context_settings=settings)(run_tests)
