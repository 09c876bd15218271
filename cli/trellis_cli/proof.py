"""`trellis proof`: real runs of the recipes, each against one that learns nothing, in a table."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import duration, out, print_json, print_table
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command

FOLDER = "tests/proof"
#: Read by the tests: which recipes are to be proven, and the file that the figures go to.
SCOPE_VARIABLE, REPORT_VARIABLE = "TRELLIS_PROOF", "TRELLIS_PROOF_REPORT"
EVERYTHING = "all"
#: pytest's exit code where no test was selected.
NOTHING_SELECTED = 5


def run_proofs(recipes: list[str], *, as_json: bool) -> bool:
    """Prove these recipes, all for none; True when every proof holds."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        scope = {SCOPE_VARIABLE: ",".join(recipes) or EVERYTHING, REPORT_VARIABLE: str(report)}
        done = subprocess.run(  # noqa: S603 - a fixed command
            python_command("-m", "pytest", FOLDER, "-q", "-rf"),
            cwd=REPOSITORY_ROOT,
            env={**os.environ, **scope},
            stdout=sys.stderr,
            check=False,
        )
        rows = read_report(report)
    if done.returncode == NOTHING_SELECTED:
        raise Problem(
            f"no proof of {', '.join(recipes)}",
            hint="`trellis recipes list` names the recipes",
            exit_code=ExitCode.USAGE,
        )
    if as_json:
        print_json({"passed": done.returncode == 0, "proofs": rows})
    else:
        print_proofs(rows)
        out.print(
            "[green]every proof holds[/green]" if done.returncode == 0 else "[red]not all proofs hold[/red]"
        )
    return done.returncode == 0


def read_report(path: Path) -> list[dict[str, Any]]:
    """What the proofs measured, in the order in which they ran."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def print_proofs(rows: list[dict[str, Any]]) -> None:
    """One line a proof: the measure without training, with it, and the difference with its standard error."""
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
