"""A job's data without the job: ``python -m trellis_train.data <spec.json>`` writes what its engine reads."""

import sys
from pathlib import Path

from trellis_contracts.spec import JobSpec

from trellis_train.data.prepare import prepare


def main(arguments: list[str]) -> int:
    """Prepare the data of the spec file named in ``arguments``; the exit code of the process."""
    if len(arguments) != 1:
        print("usage: python -m trellis_train.data <spec.json>", file=sys.stderr)
        return 2
    prepare(JobSpec.model_validate_json(Path(arguments[0]).read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
