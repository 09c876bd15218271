"""A checkpoint as a whole model: ``python -m trellis_train.export CHECKPOINT OUTPUT [--base MODEL]``.

The base model of an adapter is the one that its configuration names. Leaves with 65 and a sentence on
standard error where the checkpoint cannot be used.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from trellis_train.export.errors import CheckpointIncomplete, CheckpointMismatch
from trellis_train.export.gathering import gather_model
from trellis_train.export.layout import ADAPTER_CONFIG_FILE, read_layout

EXIT_BAD_INPUT = 65  # EX_DATAERR


def main(arguments: list[str]) -> int:
    """Run the export and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.export")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument(
        "--base", type=Path, help="the model that training began with, where nothing names it"
    )
    given = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            gather_model(
                given.checkpoint,
                base=find_base(given.checkpoint) or given.base,
                output=given.output,
                scratch=Path(scratch),
                leave_if_asked=lambda: None,
            )
    except (CheckpointIncomplete, CheckpointMismatch, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    return 0


def find_base(checkpoint: Path) -> Path | None:
    """Return the base model of the checkpoint's adapter, or None. Raises ``CheckpointMismatch``."""
    adapter = read_layout(checkpoint).adapter
    if adapter is None:
        return None
    file = adapter / ADAPTER_CONFIG_FILE
    try:
        return Path(json.loads(file.read_text())["base_model_name_or_path"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointMismatch(f"{file} does not specify the adapter's base model: {error}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
