"""Whether code can be isolated on this machine (else exit code 1): ``python -m trellis_train.sandbox``."""

import sys

from trellis_train.sandbox.command import find_problem


def main() -> int:
    """Print what is in the way, if anything is."""
    problem = find_problem()
    if problem is not None:
        print(problem, flush=True)
    return int(problem is not None)


if __name__ == "__main__":
    sys.exit(main())
