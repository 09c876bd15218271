"""Lists of words and phrases: those that ship with the factory, and those that a person brings."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import yaml

from trellis_data.operator import OperatorProblem

BuiltIn = Literal["placeholders", "disclaimers", "refusals", "toxicity"]


@cache
def built_in_phrases(name: BuiltIn) -> tuple[str, ...]:
    """A list that ships with the factory, in lower case."""
    lists = yaml.safe_load(files(__package__).joinpath("phrases.yaml").read_text(encoding="utf-8"))
    return tuple(lists[name])


def read_phrases(path: Path) -> list[str]:
    """A text file with a phrase a line; lines that begin with # are remarks."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorProblem(
            "word_list_unreadable",
            f"{path.name} cannot be read as a word list ({error}); it has to be UTF-8 text, a phrase a line.",
        ) from None
    phrases = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not phrases:
        raise OperatorProblem("word_list_empty", f"{path.name} holds no phrase.")
    return phrases
