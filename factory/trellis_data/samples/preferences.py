"""Preferences about one-digit addition: the right sum is chosen, a wrong or a hedged one is rejected.

The prompts are those of the addition task. Held-out pairs share no prompt with those to
train on, so that what is measured is carried over from one wording to another.
"""

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis_data.samples.addition import HEDGE, WORDINGS, Problem

#: Of the 600 prompts; each gives two pairs.
TRAIN_PROMPTS, VALIDATION_PROMPTS = 480, 120
#: How far a wrong sum is off. A model of this size sees within some dozen steps how large a sum should
#: be; to tell 7 from 8 it would have to be taught for as long as adding itself took.
ERRORS = (-9, -8, -7, -6, -5, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class Pair:
    """A prompt with a better and a worse answer."""

    prompt: str
    chosen: str
    rejected: str


def make_pairs(seed: int) -> tuple[list[Pair], list[Pair]]:
    """Make pairs for training and pairs for evaluation; no prompt is in both."""
    generator = random.Random(seed)  # noqa: S311 - reproducible on purpose
    problems = [
        Problem(wording.format(a=a, b=b), str(a + b))
        for wording in WORDINGS
        for a in range(10)
        for b in range(10)
    ]
    generator.shuffle(problems)
    pairs = [[*_pairs_of(problem, generator)] for problem in problems]
    train = [pair for both in pairs[:TRAIN_PROMPTS] for pair in both]
    validation = [pair for both in pairs[TRAIN_PROMPTS:] for pair in both]
    generator.shuffle(train)
    return train, validation


def _pairs_of(problem: Problem, generator: random.Random) -> tuple[Pair, Pair]:
    sums = [int(problem.answer) + error for error in ERRORS]
    wrong = str(generator.choice([each for each in sums if each >= 0]))
    return (
        Pair(problem.prompt, problem.answer, wrong),
        Pair(problem.prompt, problem.answer, HEDGE + problem.answer),
    )


def unpair(pairs: list[Pair]) -> list[dict[str, Any]]:
    """Split pairs into single answers, each labeled as good or bad."""
    rows = []
    for pair in pairs:
        rows.append({"prompt": pair.prompt, "completion": pair.chosen, "label": True})
        rows.append({"prompt": pair.prompt, "completion": pair.rejected, "label": False})
    return rows


def write_preferences(folder: Path, seed: int) -> dict[str, Path]:
    """Write pairs and marked answers as JSON Lines; their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    train, validation = make_pairs(seed)
    files = {
        "preference_train": [asdict(pair) for pair in train],
        "preference_validation": [asdict(pair) for pair in validation],
        "unpaired_train": unpair(train),
        "unpaired_validation": unpair(validation),
    }
    paths = {}
    for name, rows in files.items():
        paths[name] = folder / f"{name}.jsonl"
        text = "".join(json.dumps(row) + "\n" for row in rows)
        paths[name].write_text(text, encoding="utf-8")
    return paths
