"""The tools that a trained encoder finds: ``python -m trellis_train.agents.tooluse.retrieval.search FOLDER``.

``--query TEXT`` (repeatable) and ``--count N``; prints a JSON list with, for each query, its tools and their
cosine, the nearest first. Leaves with 65 and a sentence where the folder holds no trained retriever.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from trellis_train.agents.tooluse.retrieval.index import NAMES_FILE, ToolIndex

EXIT_BAD_INPUT = 65  # EX_DATAERR


class NoRetriever(ValueError):
    """The folder holds no trained retriever; says what does."""


def search(folder: Path, queries: Sequence[str], count: int) -> list[list[tuple[str, float]]]:
    """Find the nearest tools to each query. Raises ``NoRetriever``."""
    if not (folder / NAMES_FILE).is_file():
        raise NoRetriever(f"{folder} has no index of tools; train one with trellis agent train retrieval")
    from trellis_train.agents.tooluse.retrieval.encoder import Encoder

    index = ToolIndex.load(folder)
    vectors = Encoder.load(folder).encode(queries).numpy()
    return [index.search(vector, count) for vector in vectors]


def main(arguments: list[str]) -> int:
    """Search as the arguments say; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tooluse.retrieval.search")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--query", action="append", required=True)
    parser.add_argument("--count", type=int, default=10)
    given = parser.parse_args(arguments)
    try:
        found = search(given.folder, given.query, given.count)
    except ValueError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    print(json.dumps([[{"tool": name, "score": score} for name, score in each] for each in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
