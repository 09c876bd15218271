"""A preference recipe without the platform: ``python -m trellis_train.preference RECIPE key=value ...``."""

import sys

from trellis_recipes.trl_schema import TRAINERS

from trellis_train.preference.run import run
from trellis_train.preference.settings import make_settings, parse_overrides


def main(arguments: list[str]) -> int:
    """Train with the settings in ``arguments``; the exit code of the process."""
    if not arguments or arguments[0] not in TRAINERS:
        recipes = "|".join(TRAINERS)
        print(f"usage: python -m trellis_train.preference {{{recipes}}} key=value ...", file=sys.stderr)
        return 2
    run(make_settings(arguments[0], parse_overrides(arguments[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
