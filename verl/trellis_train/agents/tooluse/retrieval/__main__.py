"""A training without the platform: ``python -m trellis_train.agents.tooluse.retrieval key=value ...``."""

import sys

from trellis_train.agents.tooluse.retrieval.queries import BadQueries
from trellis_train.agents.tooluse.retrieval.run import RetrievalRun, RunSettings
from trellis_train.agents.tooluse.retrieval.training import BadCheckpoint
from trellis_train.preference.settings import parse_overrides


def main(arguments: list[str]) -> int:
    """Train with the settings in ``arguments``; the exit code of the process."""
    try:
        settings = RunSettings.from_values(parse_overrides(arguments))
        RetrievalRun(settings, None, None).run()
    except (BadQueries, BadCheckpoint) as error:
        print(error, file=sys.stderr)
        return 65  # EX_DATAERR
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
