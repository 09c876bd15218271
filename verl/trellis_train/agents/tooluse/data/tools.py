"""Tools by seed: each of 25 categories has 6 actions on 8 objects, which are easy to take for one another."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trellis_train.agents.tooluse.data.words import Noun, phrasing, vocabulary

#: Kinds that name a thing which exists already.
NUMBERS = frozenset({"id", "other_id"})


@dataclass(frozen=True)
class Tool:
    """A tool, with what requests for it are made of."""

    category: str
    action: str
    noun: Noun
    description: str
    #: Kinds of its arguments; an argument is called as its kind.
    required: tuple[str, ...]
    optional: tuple[str, ...]

    @cached_property
    def name(self) -> str:
        return f"{self.action}_{self.noun.slug}"

    @property
    def shape(self) -> str:
        """What its results look like."""
        return str(phrasing()["actions"][self.action]["shape"])

    @cached_property
    def row(self) -> dict[str, Any]:
        """As it is stored: what a model is told of it, and what the simulator has to know."""
        measure, minimum, maximum = vocabulary()["categories"][self.category]["measure"]
        return {
            "name": self.name,
            "category": self.category,
            "description": self.description,
            "parameters": {
                "type": "object",
                "properties": {kind: _schema(kind, self.noun) for kind in (*self.required, *self.optional)},
                "required": list(self.required),
                "additionalProperties": False,
            },
            "returns": {
                "shape": self.shape,
                "object": self.noun.slug,
                "prefix": self.noun.prefix,
                "measure": measure,
                "minimum": minimum,
                "maximum": maximum,
            },
        }


class Tools:
    """All tools of a seed, by name and by what they have in common."""

    def __init__(self, tools: list[Tool]) -> None:
        self.all = tools
        self.by_name = {tool.name: tool for tool in tools}
        self.by_category: dict[str, list[Tool]] = {}
        self._by_noun: dict[str, list[Tool]] = {}
        for tool in tools:
            self.by_category.setdefault(tool.category, []).append(tool)
            self._by_noun.setdefault(tool.noun.slug, []).append(tool)

    def on_same_object(self, tool: Tool) -> list[Tool]:
        """Return the tools that do other things to the same object."""
        return [other for other in self._by_noun[tool.noun.slug] if other is not tool]

    def of_same_action(self, tool: Tool) -> list[Tool]:
        """Return the tools of the same category that do the same to other objects."""
        return [
            other
            for other in self.by_category[tool.category]
            if other.action == tool.action and other is not tool
        ]


def make_tools(seed: int) -> Tools:
    """Make 1,200 tools in the order of the vocabulary; the seed chooses how each is described."""
    tools = []
    for category, words in vocabulary()["categories"].items():
        for en, zh, *keys in words["objects"]:
            noun = Noun(en, zh, (keys[0], keys[1]))
            for action in words["actions"]:
                draw = random.Random(f"{seed}:tool:{action}:{en}")  # noqa: S311 - no secret
                tools.append(_make_tool(draw, category, action, noun))
    return Tools(tools)


def _make_tool(draw: random.Random, category: str, action: str, noun: Noun) -> Tool:
    known: Mapping[str, Any] = phrasing()["actions"][action]
    return Tool(
        category=category,
        action=action,
        noun=noun,
        description=fill(draw.choice(known["about"]), noun),
        required=(*noun.keys[: known["keys"]], *known.get("extra", ())),
        optional=tuple(known["optional"]),
    )


def fill(text: str, noun: Noun) -> str:
    """Fill an English text's slots with the noun."""
    return text.format(object=noun.en, objects=noun.plural, a=noun.article)


def _schema(kind: str, noun: Noun) -> dict[str, Any]:
    known = vocabulary()["kinds"][kind]
    schema: dict[str, Any] = {
        "type": known["type"],
        "description": known["about"].format(object=noun.en),
    }
    if "pattern" in known:
        schema["pattern"] = known["pattern"]
    if "choices" in known:
        schema["enum"] = list(known["choices"])
    if "range" in known:
        schema["minimum"], schema["maximum"] = known["range"][:2]
    return schema
