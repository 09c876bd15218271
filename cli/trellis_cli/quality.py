"""`trellis check | test | verify | proof | bench | chaos | soak | gpu-check`: that this checkout works."""

from typing import Annotated

import typer

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json


def check(
    name: Annotated[
        list[str] | None, typer.Argument(help="Checks such as lint, types, frontend, budgets; default all.")
    ] = None,
) -> None:
    """Lint, types, borders, generated files, migrations, compose file: everything short of the tests."""
    from trellis_cli.ci.checks import run_checks

    raise typer.Exit(ExitCode.OK if run_checks(name or []) else ExitCode.FAILED)


def run_tests(
    ctx: typer.Context,
    is_complete: Annotated[bool, typer.Option("--all", help="All tests, in parts, two at a time.")] = False,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part", help="Only this part of --all, e.g. browser; can be repeated. `list` names them."
        ),
    ] = None,
    is_fresh: Annotated[
        bool, typer.Option("--fresh", help="With --all: run the parts again that passed on these very files.")
    ] = False,
    is_changed: Annotated[
        bool, typer.Option("--changed", help="The fast set, and all parts that the change can reach.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(
            help="With --changed: the commit to compare with; default: the newest one that --all passed on "
            "here, else the parent."
        ),
    ] = None,
) -> None:
    """Run the fast set: two suites at a time, results in .test-results. Other arguments go to pytest.

    A test that takes long bears a mark that says why (slow, training, browser, faults) and runs with --all,
    or where --changed finds that the change can reach it.
    """
    from trellis_cli.ci import runs

    if ctx.args:
        if is_complete or part or is_changed:
            raise Problem(
                f"pytest's arguments {ctx.args} do not go with --all, --part or --changed",
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
    feature: Annotated[list[str] | None, typer.Argument(help="Ids such as ALG-002; default all.")] = None,
) -> None:
    """Run all tests of features and write `passes`, commit and date into feature_list.json."""
    from trellis_cli.ci.features import verify_features

    raise typer.Exit(ExitCode.OK if verify_features(feature or []) else ExitCode.FAILED)


def proof(
    recipe: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recipes such as grpo and what they also do (adapters, other rewards); default: what every "
            "algorithm promises (bound: 45 minutes on two cores). `all` proves the agents' as well: hours."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A pretrained model instead of the starter model: a folder, or a name of "
            "`trellis models catalogue`, e.g. smollm2-135m-instruct (about 5 minutes a recipe on two cores)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model with each recipe and show that it learns what the recipe promises."""
    from trellis_cli.proof import run_proofs

    is_proven = run_proofs(recipe or [], model=model, as_json=as_json)
    raise typer.Exit(ExitCode.OK if is_proven else ExitCode.FAILED)


def bench(
    name: Annotated[
        list[str] | None,
        typer.Argument(help="Benchmarks; default all but real_model and memory. `list` names them."),
    ] = None,
    shapes: Annotated[
        str | None, typer.Option(help="Of grpo_against_trl: names with commas between, or `all`.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Of grpo_against_trl: runs of each side; the fastest counts.")
    ] = 1,
    rows: Annotated[
        int,
        typer.Option(
            min=1000, help="Of data, browse and eval_samples: rows; more than 2,000,000 for ours alone."
        ),
    ] = 1_000_000,
    model: Annotated[
        str | None, typer.Option(help="Of real_model and memory: a model folder, or a name of the catalogue.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure this platform against its bounds, the bare engine and other tools, in one run."""
    from trellis_cli.bench.real_model import DEFAULT
    from trellis_cli.bench.run import run_benchmarks

    is_kept = run_benchmarks(
        name or [], as_json=as_json, shapes=shapes, rounds=rounds, rows=rows, model=model or DEFAULT
    )
    raise typer.Exit(ExitCode.OK if is_kept else ExitCode.FAILED)


def chaos(
    minutes: Annotated[
        float, typer.Option(min=0.1, help="How long faults strike; what follows takes a few more.")
    ] = 30,
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same faults.")] = 1,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="Only this kind, e.g. kill-ray; can be repeated. The report names the kinds."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="An empty PostgreSQL database, postgresql://user:password@host/name; default SQLite."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Break a temporary platform at random, under load, and check that nothing is lost, doubled or stuck."""
    from trellis_cli.chaos.command import run_chaos

    is_held = run_chaos(minutes=minutes, seed=seed, kinds=fault or [], database_url=database, is_json=as_json)
    raise typer.Exit(ExitCode.OK if is_held else ExitCode.FAILED)


def soak(
    minutes: Annotated[float, typer.Option(min=2, help="How long it is used.")] = 30,
    as_json: Json = False,
) -> None:
    """Use a temporary platform without pauses, and fail where the memory of a service grows by over 10 %."""
    from trellis_cli.soak.command import run_soak

    raise typer.Exit(ExitCode.OK if run_soak(minutes=minutes, is_json=as_json) else ExitCode.FAILED)


def gpu_check(
    is_quick: Annotated[bool, typer.Option("--quick", help="Libraries alone: nothing is trained.")] = False,
    as_json: Json = False,
) -> None:
    """On a machine with NVIDIA GPUs: driver and libraries, then short runs of vLLM, SFT, DPO and GRPO."""
    from trellis_cli.gpu_check.check import run_gpu_check

    is_passed = run_gpu_check(is_quick=is_quick, as_json=as_json)
    raise typer.Exit(ExitCode.OK if is_passed else ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the commands to the root application."""
    for command in (check, verify, proof, bench, chaos, soak):
        app.command()(command)
    app.command("gpu-check")(gpu_check)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command("test", context_settings=settings)(run_tests)
