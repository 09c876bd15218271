"""`trellis check | test | verify | proof | bench | gpu-check`: how this checkout proves that it works."""

from typing import Annotated

import typer

from trellis_cli.errors import ExitCode
from trellis_cli.output import Json


def check() -> None:
    """Lint, types, borders, generated files, migrations, compose file: everything short of the tests."""
    from trellis_cli.gate import run_checks

    raise typer.Exit(ExitCode.OK if run_checks() else ExitCode.FAILED)


def test(ctx: typer.Context) -> None:
    """All tests: pytest (further arguments go to it) and vitest."""
    from trellis_cli.gate import run_tests

    raise typer.Exit(run_tests(ctx.args))


def verify(
    feature: Annotated[list[str] | None, typer.Argument(help="Ids such as ALG-002; default all.")] = None,
) -> None:
    """Run the acceptance tests of features and write `passes` in feature_list.json from the outcome."""
    from trellis_cli.verify import verify_features

    raise typer.Exit(ExitCode.OK if verify_features(feature or []) else ExitCode.FAILED)


def proof(
    recipe: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recipes such as grpo and what they also do (adapters, other rewards); default: what every "
            "algorithm promises (bound: 45 minutes on two cores). `all` proves the agents' as well: hours."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train the starter model with each recipe and show that it learns what the recipe promises."""
    from trellis_cli.proof import run_proofs

    raise typer.Exit(ExitCode.OK if run_proofs(recipe or [], as_json=as_json) else ExitCode.FAILED)


def bench(
    name: Annotated[
        list[str] | None, typer.Argument(help="Benchmarks; default all. `list` names them.")
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
    as_json: Json = False,
) -> None:
    """Measure this platform against its bounds, the bare engine and other tools, in one run."""
    from trellis_cli.bench.run import run_benchmarks

    is_kept = run_benchmarks(name or [], as_json=as_json, shapes=shapes, rounds=rounds, rows=rows)
    raise typer.Exit(ExitCode.OK if is_kept else ExitCode.FAILED)


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
    for command in (check, verify, proof, bench):
        app.command()(command)
    app.command("gpu-check")(gpu_check)
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(test)
