"""Makes rows for tool retrieval (request → tool) from the dialogs and the benchmark of somebody's own tools.

A request counts where exactly one tool answers it: a sample whose reference calls one tool, and the first
request of a dialog up to the next one. Its misleading tools are those whose texts are most like its tool's.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from trellis_recipes.retrieval_schema import MIN_TOOLS

from trellis_train.agents.tooluse.formatting.training_rows import retrieval_row
from trellis_train.agents.tooluse.retrieval.bm25 import BM25
from trellis_train.agents.tooluse.retrieval.queries import describe
from trellis_train.agents.tooluse.scoring.response import read_response
from trellis_train.agents.tooluse.tasks import read_task

Row = dict[str, Any]
_HARD_NEGATIVES = 4
#: Held out first: a request that occurs again is not trained on.
_SPLITS = ("test", "eval", "train")


def make_query_rows(
    tools: Mapping[str, Row], dialogs: Mapping[str, Sequence[Row]], benchmark: Mapping[str, Sequence[Row]]
) -> dict[str, list[Row]]:
    """Make rows by split, the first of each with all tools; none where tools or requests are too few."""
    if len(tools) < MIN_TOOLS:
        return {}
    misleading = _find_misleading(tools)
    made: dict[str, list[Row]] = {}
    seen: set[str] = set()
    for split in _SPLITS:
        pairs = [*_of_benchmark(benchmark.get(split, ())), *_of_dialogs(dialogs.get(split, ()))]
        for query, tool in pairs:
            if (text := " ".join(query.split()).lower()) and text not in seen:
                seen.add(text)
                rows = made.setdefault(split, [])
                asked = {"query": query, "tool": tool, "hard_negatives": misleading[tool], "split": split}
                rows.append(_row(asked, tools, place=len(rows)))
    for rows in made.values():
        rows[0]["extra_info"]["all_tools"] = json.dumps(list(tools.values()), ensure_ascii=False)
    return made if "train" in made else {}


def _of_benchmark(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    for row in rows:
        called = read_task(row, str(row["extra_info"]["id"])).truth.tools
        if len(called) == 1:
            yield row["extra_info"]["question"], next(iter(called))


def _of_dialogs(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    for row in rows:
        spoken = [each for each in row["messages"] if each["role"] in ("user", "assistant")]
        if not spoken or spoken[0]["role"] != "user":
            continue
        after = next(
            (place for place, each in enumerate(spoken[1:], start=1) if each["role"] == "user"), len(spoken)
        )
        called = {call.name for each in spoken[1:after] for call in read_response(each["content"]).calls}
        if len(called) == 1:
            yield spoken[0]["content"], called.pop()


def _row(asked: Row, tools: Mapping[str, Row], *, place: int) -> Row:
    name = f"query-{asked['split']}-{place + 1}"
    row = retrieval_row({**asked, "id": name, "category": "", "templates": []}, tools, index=place)
    row["extra_info"]["all_tools"] = None
    return row


def _find_misleading(tools: Mapping[str, Row]) -> dict[str, list[str]]:
    """Find for each tool the others whose texts are most like its own, by BM25."""
    names, cards = list(tools), [describe(tool) for tool in tools.values()]
    bm25 = BM25(cards)
    found = {}
    for name, card in zip(names, cards, strict=True):
        ranked = np.argsort(-bm25.scores(card), kind="stable")
        others = [names[place] for place in ranked if names[place] != name]
        found[name] = others[:_HARD_NEGATIVES]
    return found
