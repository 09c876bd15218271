"""What each proof measured, one JSON object a line, for `./init.sh proof` to print as a table."""

import json
import os
from pathlib import Path

#: The file that rows are appended to; unset where nobody wants them.
REPORT_VARIABLE = "TRELLIS_PROOF_REPORT"


def report_proof(
    recipe: str, *, measure: str, control: float, trained: float, error: float | None = None, seconds: float
) -> None:
    """Note what a recipe's run reached and what it is held against.

    ``control`` and ``trained`` are the same measure: of a run that learns nothing (or of
    the model before training) and of the recipe's run; ``error`` is the standard error of
    their difference, where it is known.
    """
    row = {
        "recipe": recipe,
        "measure": measure,
        "control": control,
        "trained": trained,
        "error": error,
        "seconds": round(seconds, 1),
    }
    print(json.dumps(row))
    if path := os.environ.get(REPORT_VARIABLE):
        with Path(path).open("a") as file:
            file.write(json.dumps(row) + "\n")
