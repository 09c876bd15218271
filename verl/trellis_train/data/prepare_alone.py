"""Prepares the rows of a job without training: ``python -m trellis_train.data.prepare_alone SPEC.json``.

Prints how many rows there are as JSON. Leaves with 65 where they are of no use, and prints
``{"error": {"code", "message"}}``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import MIX_FILE, PREPARED_FOLDER
from trellis_contracts.spec import JobSpec

from trellis_train.data.prepare import BadData, prepare

EXIT_BAD_INPUT = 65  # EX_DATAERR


def main(spec_file: str) -> int:
    """Prepare the data, print the counts or the error as JSON, and return the exit code."""
    spec = JobSpec.model_validate_json(Path(spec_file).read_text(encoding="utf-8"))
    try:
        prepared = prepare(spec, is_trained=False)
    except BadData as error:
        print(json.dumps({"error": {"code": error.code, "message": str(error)}}))
        return EXIT_BAD_INPUT
    counts: dict[str, Any] = {
        "train_rows": prepared.train_rows,
        "validation_rows": prepared.validation_rows,
    }
    mix = Path(spec.attempt_dir) / PREPARED_FOLDER / MIX_FILE
    if mix.is_file():
        counts["mix"] = json.loads(mix.read_text(encoding="utf-8"))
    print(json.dumps(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
