"""Queries as training rows, and whom a row asks for, however its author wrote that down."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trellis_data.json_objects import BadLine, read_objects

from trellis_train.agents.linksearch.database import normalise_handle

DATA_SOURCE = "linksearch"
#: Columns that may hold the handles of a query, ours first.
GOLD_COLUMNS = ("gold_handles", "handles", "answer")
QUESTION_COLUMNS = ("query", "question", "prompt")


class BadQuery(ValueError):
    """A row is no query; the message says what it lacks."""


def query_row(query: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Convert a query to a row for verl's trainers; question and handles may be in any known column.

    System prompt and tools are not in it: the agent loop of a run puts them in front. Raises ``BadQuery``.
    """
    question = next((query[name] for name in QUESTION_COLUMNS if query.get(name)), None)
    if not isinstance(question, str):
        raise BadQuery(f"query {index + 1} has no question (expected in {', '.join(QUESTION_COLUMNS)})")
    gold = next((query[name] for name in GOLD_COLUMNS if query.get(name)), None)
    handles = parse_handles(gold)
    if not handles:
        raise BadQuery(f"query {index + 1} has no handles (expected in {', '.join(GOLD_COLUMNS)})")
    return {
        "data_source": DATA_SOURCE,
        "prompt": [{"role": "user", "content": question}],
        "reward_model": {"style": "rule", "ground_truth": json.dumps(handles)},
        "extra_info": {
            "index": index,
            "split": str(query.get("split") or "train"),
            "id": str(query.get("id") or f"query-{index:05d}"),
        },
    }


def parse_handles(value: object) -> list[str]:
    """Parse handles from a list, a JSON string, or text separated by ``;``, commas or line breaks.

    >>> parse_handles("Ada-Byron; https://www.linkedin.com/in/alan-t/"), parse_handles('["ada-byron"]')
    (['ada-byron', 'alan-t'], ['ada-byron'])
    """
    if isinstance(value, str):
        value = _split(value)
    if not isinstance(value, Sequence) and not hasattr(value, "tolist"):
        return []
    entries = value if isinstance(value, Sequence) else value.tolist()
    found = (normalise_handle(entry) for entry in entries if isinstance(entry, str))
    return list(dict.fromkeys(handle for handle in found if handle))


def _split(text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, list):
            return parsed
    return re.split(r"[;,\n]", text)


def read_queries(path: Path) -> Iterator[dict[str, Any]]:
    """Read queries from a JSON Lines file. Raises ``BadQuery``."""
    try:
        yield from read_objects(path)
    except BadLine as error:
        raise BadQuery(str(error)) from error
