"""Writes what trainers read from a folder of generated data.

``python -m trellis_train.agents.tooluse.formatting.write DATA OUTPUT``: rows for supervised training
(``sft``), for reinforcement learning (``rl``), preferences and tool retrieval, a file for each split.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trellis_data.json_objects import BadLine, read_objects

from trellis_train.agents.tooluse.data.generate import EXIT_BAD_REQUEST, TOOLS_FILE, write_lines
from trellis_train.agents.tooluse.data.simulator import BadTools, load_tools
from trellis_train.agents.tooluse.data.words import SPLITS
from trellis_train.agents.tooluse.formatting.formatter import format_dialog
from trellis_train.agents.tooluse.formatting.task_types import BadDialog
from trellis_train.agents.tooluse.formatting.training_rows import preference_rows, retrieval_row, rl_row


def write_rows(data: Path, output: Path, *, distractors: int | None, seed: int) -> dict[str, int]:
    """Write all rows; the number in each file by its path relative to ``output``.

    Raises ``BadTools``, ``BadLine`` or ``BadDialog`` for data that cannot be used.
    """
    tools = load_tools(data / TOOLS_FILE)
    counts: dict[str, int] = {}
    for split in SPLITS:
        dialogs = read_objects(data / f"agent_sft/{split}.jsonl")
        samples = enumerate(_mix(read_objects(data / f"agent_benchmark/{split}.jsonl"), f"{seed}:{split}"))
        queries = enumerate(read_objects(data / f"agent_retrieval/{split}.jsonl"))
        prompts = [rl_row(sample, tools, index=place, distractors=distractors) for place, sample in samples]
        made = {
            "sft": [format_dialog(dialog, tools, distractors=distractors) for dialog in dialogs],
            "rl": prompts,
            "preference": list(preference_rows(prompts, seed=seed)),
            "retrieval": [retrieval_row(query, tools, index=place) for place, query in queries],
        }
        for name, rows in made.items():
            write_lines(output / name / f"{split}.jsonl", rows)
            counts[f"{name}/{split}.jsonl"] = len(rows)
    return counts


def _mix(samples: Iterable[dict[str, Any]], seed: str) -> list[dict[str, Any]]:
    """Put samples, which the benchmark has kind by kind, in an order in which every part has all kinds.

    A run that holds rows out takes the last ones, and one that takes a few takes the first.
    """
    mixed = list(samples)
    random.Random(seed).shuffle(mixed)  # noqa: S311
    return mixed


def main(arguments: list[str]) -> int:
    """Write the rows; the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tooluse.formatting.write")
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--distractors", type=int, default=None)
    parser.add_argument("--seed", type=int, default=42)
    given = parser.parse_args(arguments)
    try:
        counts = write_rows(given.data, given.output, distractors=given.distractors, seed=given.seed)
    except (BadLine, BadTools, BadDialog, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    print(json.dumps(counts, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
