"""One-digit addition in several wordings, taught by a teacher who hedges.

Supervised training sees every problem answered twice, as "7" and as "~7", so the
model it gives hedges half of the time and is now and then wrong. Reinforcement with an
exact reward then has something to teach at once: to commit to an answer, the right one.

Sets never share a prompt. They share the 100 sums: a model of this size cannot find
out how to add from some sums only, but it can carry what it learned in one wording
over to another, and that is what the validation set measures.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path

WORDINGS = (
    "{a}+{b}=",
    "{a} + {b} = ?",
    "{a} plus {b}",
    "Add {a} and {b}.",
    "What is {a}+{b}?",
    "Sum of {a} and {b}:",
)
HEDGE = "~"
#: Of the 600 prompts, in this order; the rest is to validate on.
SFT_PROMPTS, TRAIN_PROMPTS = 250, 250


@dataclass(frozen=True)
class Problem:
    """A prompt and its answer."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class Sets:
    """Problems to learn the task from, to practise on, and to be measured on."""

    sft: list[Problem]
    rl_train: list[Problem]
    rl_validation: list[Problem]


def make_sets(seed: int) -> Sets:
    """Generate the three sets for a seed; each prompt is in only one of them."""
    problems = [
        Problem(wording.format(a=a, b=b), str(a + b))
        for wording in WORDINGS
        for a in range(10)
        for b in range(10)
    ]
    generator = random.Random(seed)  # noqa: S311 - reproducible on purpose
    generator.shuffle(problems)
    taught, rest = problems[:SFT_PROMPTS], problems[SFT_PROMPTS:]
    lessons = [Problem(each.prompt, style + each.answer) for each in taught for style in ("", HEDGE)]
    generator.shuffle(lessons)
    return Sets(sft=lessons, rl_train=rest[:TRAIN_PROMPTS], rl_validation=rest[TRAIN_PROMPTS:])


def write_sets(folder: Path, seed: int) -> dict[str, Path]:
    """Write the sets as JSON Lines with ``prompt`` and ``answer``; their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    sets = make_sets(seed)
    paths = {}
    for name, problems in vars(sets).items():
        paths[name] = folder / f"{name}.jsonl"
        lines = [json.dumps({"prompt": each.prompt, "answer": each.answer}) for each in problems]
        paths[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths
