"""How people ask for a tool: a wording of the split, and all that the tool has to be told."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis_train.agents.tooluse.data.tools import Tool
from trellis_train.agents.tooluse.data.words import (
    Language,
    Split,
    make_value,
    phrasing,
    pick,
    pick_links,
    say_value,
    vocabulary,
)

#: How often a request names an argument that it could leave out.
_OPTIONAL_SHARE = 0.25


@dataclass(frozen=True)
class Request:
    """A wish, without the sentence around it, and the call that grants it."""

    tool: Tool
    #: Without and with its details.
    bare: str
    details: str
    arguments: dict[str, Any]
    language: Language
    template: str

    @property
    def text(self) -> str:
        if not self.details:
            return self.bare
        return f"{self.bare} {self.details}" if self.language == "en" else f"{self.bare}，{self.details}"

    @property
    def call(self) -> dict[str, Any]:
        return {"name": self.tool.name, "arguments": self.arguments}


def make_request(
    draw: random.Random, tool: Tool, language: Language, split: Split, *, number: str | None = None
) -> Request:
    """Generate a request for a tool. ``number``: the object's ID, if the previous step returned it."""
    kinds = [*tool.required, *(kind for kind in tool.optional if draw.random() < _OPTIONAL_SHARE)]
    arguments: dict[str, Any] = {kind: make_value(draw, kind, tool.noun, language) for kind in kinds}
    said = {kind: say_value(kind, value, language) for kind, value in arguments.items()}
    if number is not None and "id" in arguments:
        arguments["id"] = number
        said["id"] = phrasing()["same_number"][language]
    wording = pick(draw, f"actions.{tool.action}", language, split)
    noun = tool.noun
    bare = wording.text.format(
        object=noun.en if language == "en" else noun.zh, objects=noun.plural, a=noun.article
    )
    details = (" " if language == "en" else "，").join(said.values())
    return Request(tool, bare, details, arguments, language, wording.name)


def frame(draw: random.Random, path: str, language: Language, split: Split, **slots: str) -> tuple[str, str]:
    """Return a sentence of the split with its slots filled, and the name of its wording."""
    wording = pick(draw, path, language, split)
    return wording.text.format(**slots), wording.name


def frame_plan(
    draw: random.Random, requests: Sequence[Request], language: Language, split: Split
) -> tuple[str, list[str]]:
    """Return a request of several steps in order, and the names of its wordings."""
    name, (first, between, last) = pick_links(draw, language, split)
    ends = [first, *[between] * (len(requests) - 2), last]
    comma = ", " if language == "en" else "；"
    steps = comma.join(end.format(step=each.text) for end, each in zip(ends, requests, strict=True))
    text, plan = frame(draw, "plans", language, split, steps=steps)
    return text, [plan, name, *(each.template for each in requests)]


def say_needs(tool: Tool, language: Language) -> str:
    """Describe in words the required arguments of a tool."""
    kinds = [vocabulary()["kinds"][kind] for kind in tool.required]
    if language == "zh":  # the name before the value
        return "、".join(known["zh"].partition("是{")[0] for known in kinds)
    needs = [known["about"].format(object=tool.noun.en).partition(",")[0] for known in kinds]
    return " and ".join(f"the {each[0].lower()}{each[1:]}" for each in needs)
