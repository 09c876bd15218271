"""The words that tools and dialogs are made of, read from the YAML files beside this module."""

import random
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

import yaml

Split = Literal["train", "dev", "test"]
Language = Literal["en", "zh"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
#: Nouns whose plural is not made by the rules below.
_PLURALS = {"day off": "days off"}
_LAST_DAY = 28


class Wording(NamedTuple):
    """A text with slots, and the name by which its split can be told."""

    name: str
    text: str


@dataclass(frozen=True)
class Noun:
    """What a tool works on."""

    en: str
    zh: str
    #: Kinds of the two things that a request says of it.
    keys: tuple[str, str]

    @property
    def slug(self) -> str:
        return self.en.replace(" ", "_").replace("-", "_")

    @property
    def article(self) -> str:
        return "an" if self.en[0] in "aeiou" else "a"

    @property
    def plural(self) -> str:
        """
        >>> Noun("taxi ride", "", ("", "")).plural, Noun("savings policy", "", ("", "")).plural
        ('taxi rides', 'savings policies')
        """
        if self.en in _PLURALS:
            return _PLURALS[self.en]
        if self.en[-1] == "y" and self.en[-2] not in "aeiou":
            return self.en[:-1] + "ies"
        return self.en + ("es" if self.en.endswith(("s", "x", "ch", "sh")) else "s")

    @property
    def prefix(self) -> str:
        """Of its numbers: three letters."""
        return self.slug.replace("_", "")[:3].upper()


@cache
def vocabulary() -> dict[str, Any]:
    """Read the categories with their objects, and the kinds of arguments."""
    return _read("vocabulary.yaml")


@cache
def phrasing() -> dict[str, Any]:
    """Read how people ask and how assistants reply, by language and split."""
    return _read("phrasing.yaml")


def pick(draw: random.Random, path: str, language: Language, split: Split) -> Wording:
    """Pick one of a split's wordings; ``path`` says where they are, like ``replies.items``."""
    place: Any = phrasing()
    for part in path.split("."):
        place = place[part]
    texts = place[language][split]
    number = draw.randrange(len(texts))
    return Wording(f"{path}.{language}.{split}.{number}", texts[number])


def pick_links(draw: random.Random, language: Language, split: Split) -> tuple[str, list[str]]:
    """Pick a way to join steps; return its name and its words (first, between, last)."""
    choices = phrasing()["links"][language][split]
    number = draw.randrange(len(choices))
    return f"links.{language}.{split}.{number}", choices[number]


def make_value(draw: random.Random, kind: str, noun: Noun, language: Language) -> str | int:
    """Generate a value of that kind."""
    known = vocabulary()["kinds"][kind]
    if "values" in known:
        return str(draw.choice(known["values"])[0 if language == "en" else 1])
    if "choices" in known:
        return str(draw.choice(known["choices"]))
    if "range" in known:
        first, last, step = known["range"]
        return draw.randrange(first, last + 1, step)
    if known["make"] == "id":
        return make_number(draw, noun)
    month = f"2025-{draw.randint(1, 12):02d}"
    if known["make"] == "month":
        return month
    if known["make"] == "date":
        return f"{month}-{draw.randint(1, _LAST_DAY):02d}"
    return f"{draw.randint(7, 21):02d}:{draw.choice((0, 15, 30, 45)):02d}"


def make_number(draw: random.Random, noun: Noun) -> str:
    """Generate an ID for an object of this noun."""
    return f"{noun.prefix}-{draw.randint(1000, 9999)}"


def say_value(kind: str, value: str | int, language: Language) -> str:
    """Word a value as a request does."""
    return str(vocabulary()["kinds"][kind][language]).format(value=value)


def say_measure(name: str, language: Language) -> str:
    """Return a result field's name in words."""
    return str(vocabulary()["measures"][name][0 if language == "en" else 1])


def _read(name: str) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    words: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return words
