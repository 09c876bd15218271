"""Queries and the tools they ask for, from rows of verl's form.

A row's prompt ends in the query, ``reward_model.ground_truth`` is the tool's name, ``extra_info.tool`` the
tool itself (name, description, parameters; JSON text), ``extra_info.category`` its category. Tools that no
row asks for, but that are searched too, stand in ``extra_info.all_tools`` of any row (a list as JSON text).
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class BadQueries(ValueError):
    """A row cannot be used; the message names it and says why."""


@dataclass(frozen=True)
class Query:
    """A request and the position of the tool that it asks for."""

    text: str
    tool: int
    #: Tools that are easily taken for it, by name, where the row names them.
    misleading: tuple[str, ...] = ()


@dataclass
class Corpus:
    """All tools, each once, in the order in which rows named them."""

    names: list[str] = field(default_factory=list)
    #: What the encoder reads of each.
    cards: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, card: str, category: str, place: str) -> int:
        """Add a tool and return its position; ``BadQueries`` if another tool has its name."""
        known = self._places.get(name)
        if known is not None:
            if self.cards[known] != card:
                raise BadQueries(f"{place}: '{name}' differs from an earlier tool of the same name")
            return known
        self._places[name] = len(self.names)
        self.names.append(name)
        self.cards.append(card)
        self.categories.append(category)
        return len(self.names) - 1

    def find(self, name: str) -> int | None:
        """Return the position of the tool with that name, or None."""
        return self._places.get(name)

    def siblings(self) -> list[list[int]]:
        """Return the other tools of each tool's category."""
        members: dict[str, list[int]] = {}
        for place, category in enumerate(self.categories):
            members.setdefault(category, []).append(place)
        return [
            [other for other in members[category] if other != place]
            for place, category in enumerate(self.categories)
        ]


def load_queries(path: Path, corpus: Corpus) -> list[Query]:
    """Load queries from a Parquet file and add their tools to the corpus. Raises ``BadQueries``."""
    try:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise BadQueries(f"{path} cannot be read: {error}") from error
    return read_queries(rows, corpus, path.name)


def read_queries(rows: Iterable[Mapping[str, Any]], corpus: Corpus, where: str) -> list[Query]:
    """Read queries from rows in memory and add their tools to the corpus. Raises ``BadQueries``."""
    return [_read(row, corpus, f"row {number} of {where}") for number, row in enumerate(rows, start=1)]


def _read(row: Mapping[str, Any], corpus: Corpus, place: str) -> Query:
    prompt, info = row.get("prompt"), row.get("extra_info")
    if not isinstance(prompt, list) or not prompt or not str(prompt[-1].get("content") or "").strip():
        raise BadQueries(f"{place}: the prompt does not end with a query")
    if not isinstance(info, Mapping) or not isinstance(info.get("tool"), str):
        raise BadQueries(f"{place}: extra_info.tool is missing")
    name, card = _read_tool(info["tool"], f"{place}: extra_info.tool")
    truth = (row.get("reward_model") or {}).get("ground_truth")
    if truth != name:
        raise BadQueries(f"{place}: the reference is {truth!r}, but extra_info.tool is '{name}'")
    tool_place = corpus.add(name, card, str(info.get("category") or ""), place)
    for other, text in _read_tools(info.get("all_tools"), f"{place}: extra_info.all_tools"):
        corpus.add(other, text, "", place)
    misleading = tuple(str(each) for each in info.get("hard_negatives") or ())
    return Query(str(prompt[-1]["content"]), tool_place, misleading)


def _read_tool(text: str, place: str) -> tuple[str, str]:
    """Read name and card of a tool."""
    try:
        tool = json.loads(text)
        return str(tool["name"]), describe(tool)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadQueries(f"{place} is not a valid tool: {error!r}") from error


def _read_tools(text: str | None, place: str) -> list[tuple[str, str]]:
    """Read the names and descriptions in a JSON list of tools. Raises ``BadQueries``."""
    if text is None:
        return []
    try:
        return [(str(tool["name"]), describe(tool)) for tool in json.loads(text)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadQueries(f"{place} is not a list of tools: {error!r}") from error


def describe(tool: Mapping[str, Any]) -> str:
    """Describe a tool for the encoder: its name in words, its description, its arguments."""
    arguments = (tool.get("parameters") or {}).get("properties") or {}
    listed = ", ".join(str(name).replace("_", " ") for name in arguments)
    words = str(tool["name"]).replace("_", " ")
    return f"{words}: {tool.get('description') or ''}" + (f" ({listed})" if listed else "")


def draw_negatives(
    batch: Sequence[Query],
    corpus: Corpus,
    siblings: Sequence[Sequence[int]],
    count: int,
    *,
    seed: int,
    step: int,
) -> list[list[int]]:
    """Draw hard negatives for each query: ``count`` other tools of its tool's category.

    Those that the row names come first; what is missing is drawn by seed and step.
    """
    draw = random.Random(f"{seed}:negatives:{step}")  # noqa: S311 - no secret
    negatives = []
    for query in batch:
        found = (corpus.find(name) for name in query.misleading)
        named = [place for place in found if place is not None and place != query.tool][:count]
        others = [place for place in siblings[query.tool] if place not in named]
        negatives.append(named + draw.sample(others, min(count - len(named), len(others))))
    return negatives


def order_of_epoch(count: int, seed: int, epoch: int) -> list[int]:
    """Return the row order of an epoch, which is the same after a resume."""
    order = list(range(count))
    random.Random(f"{seed}:epoch:{epoch}").shuffle(order)  # noqa: S311 - no secret
    return order
