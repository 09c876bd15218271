"""`./init.sh proof`: real runs of the recipes, each against one that learns nothing, in a table."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import duration, out, print_json, print_table
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_recipes.catalogue import list_recipes

FOLDER = "tests/proof"
#: The proofs that take a pretrained model, and the variable that names it: a folder, or a catalogue's name.
PRETRAINED_FOLDER = f"{FOLDER}/pretrained"
MODEL_VARIABLE = "TRELLIS_PROOF_MODEL"
#: Read by the tests: which recipes are to be proven, and the file that the figures go to.
SCOPE_VARIABLE, REPORT_VARIABLE = "TRELLIS_PROOF", "TRELLIS_PROOF_REPORT"
#: Every test of the folder, with the agents' runs of hours.
EVERYTHING = "all"
#: The family whose recipes are proven only where they are named: each takes long.
AGENTS = "agent"
#: Options of pytest that leave out what a recipe also does: with an adapter, with rewards from elsewhere, ...
WITHOUT_VARIANTS = ("-m", "not variant")
#: For the algorithms' recipes together, on two cores.
BOUND_S = 45 * 60


def run_proofs(recipes: list[str], *, model: str | None = None, as_json: bool) -> bool:
    """Prove these recipes, the algorithms' for none; True when every proof holds.

    With ``model`` a pretrained one is trained, else the starter model, with a bound on the time of all.
    """
    wanted = choose_recipes(recipes)
    is_bounded = model is None and not recipes
    command = ["-m", "pytest", *choose_tests(model, has_recipes=bool(recipes))]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        scope = {SCOPE_VARIABLE: ",".join(wanted), REPORT_VARIABLE: str(report)}
        scope |= {MODEL_VARIABLE: model} if model else {}
        done = subprocess.run(  # noqa: S603 - a fixed command
            python_command(*command),
            cwd=REPOSITORY_ROOT,
            env={**os.environ, **scope},
            stdout=sys.stderr,
            check=False,
        )
        rows = read_report(report)
    seconds, bound_s = time.monotonic() - started, BOUND_S if is_bounded else None
    has_passed = done.returncode == 0
    if as_json:
        print_json({"passed": has_passed, **compare_time(seconds, bound_s), "proofs": rows})
    else:
        print_proofs(rows)
        out.print("[green]all recipes passed[/green]" if has_passed else "[red]some recipes failed[/red]")
        out.print(describe_time(seconds, bound_s))
    return has_passed


def choose_tests(model: str | None, *, has_recipes: bool) -> list[str]:
    """Return pytest's arguments: the proofs on the starter model, or those on a pretrained one."""
    if model is not None:
        return [PRETRAINED_FOLDER, "-q", "-rf"]
    variants = () if has_recipes else WITHOUT_VARIANTS
    return [FOLDER, f"--ignore={PRETRAINED_FOLDER}", "-q", "-rf", *variants]


def choose_recipes(named: list[str]) -> list[str]:
    """Choose the recipes to prove: those named, else every recipe of an algorithm."""
    if EVERYTHING in named:
        return [EVERYTHING]
    known = {recipe.id: recipe.family for recipe in list_recipes()}
    if unknown := [name for name in named if name not in known]:
        raise Problem(
            f"unknown recipes: {', '.join(unknown)}",
            hint="`trellis recipes list` shows all recipes",
            exit_code=ExitCode.USAGE,
        )
    return named or [name for name, family in known.items() if family != AGENTS]


def compare_time(seconds: float, bound_s: float | None) -> dict[str, Any]:
    """Compare the run's time with its limit; there is none if only some recipes were requested."""
    is_within = None if bound_s is None else seconds <= bound_s
    return {"seconds": round(seconds, 1), "bound_s": bound_s, "is_within_bound": is_within}


def describe_time(seconds: float, bound_s: float | None) -> str:
    """Describe the run's time and its limit in words."""
    taken = f"{seconds / 60:.1f} min total"
    if bound_s is None:
        return taken
    verdict = "[green]within[/green]" if seconds <= bound_s else "[red]over[/red]"
    return f"{taken}, {verdict} the limit of {bound_s / 60:.0f} min on two cores"


def read_report(path: Path) -> list[dict[str, Any]]:
    """Read what the proofs measured, in the order in which they ran."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def print_proofs(rows: list[dict[str, Any]]) -> None:
    """Print one line per proof: the measure without and with training, and the difference with its error."""
    lines = []
    for row in rows:
        difference = f"{row['trained'] - row['control']:+.3f}"
        if row["error"] is not None:
            difference += f" ± {row['error']:.3f}"
        lines.append(
            [
                row["recipe"],
                row["measure"],
                f"{row['control']:.3f}",
                f"{row['trained']:.3f}",
                difference,
                duration(row["seconds"]),
            ]
        )
    print_table(["recipe", "measure", "control", "trained", "difference", "took"], lines)
