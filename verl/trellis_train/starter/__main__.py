"""Writes the starter model and the demonstrations' data: ``python -m trellis_train.starter --data DIR``."""

import argparse
import json
import sys
from pathlib import Path

from trellis_data.samples.addition import write_sets
from trellis_data.samples.preferences import write_preferences
from trellis_data.samples.tickets import write_tickets


def main(arguments: list[str]) -> int:
    """Write what was asked for and print, as one JSON object, where it lies."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.starter", description=__doc__)
    parser.add_argument("--model", type=Path, help="folder for the model, in Hugging Face format")
    parser.add_argument("--data", type=Path, help="folder for JSON Lines: supervised, RL, preferences")
    parser.add_argument("--tickets", type=Path, help="folder for customer messages to sort, as JSON Lines")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same bytes")
    parser.add_argument("--size", choices=["starter", "20m"], default="starter", help="of the model")
    options = parser.parse_args(arguments)
    if options.model is None and options.data is None and options.tickets is None:
        parser.error("give --model, --data or --tickets")
    written: dict[str, str] = {}
    if options.data is not None:
        paths = write_sets(options.data, options.seed) | write_preferences(options.data, options.seed)
        written |= {name: str(path) for name, path in paths.items()}
    if options.tickets is not None:
        written |= {name: str(path) for name, path in write_tickets(options.tickets, options.seed).items()}
    if options.model is not None:
        from trellis_train.starter.model import write_model

        write_model(options.model, options.seed, options.size)
        written["model"] = str(options.model)
    print(json.dumps(written))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
