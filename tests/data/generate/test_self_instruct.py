"""New instructions in the manner of seed rows: which are kept, and that they are answered."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from trellis_testing.chat_endpoint import ChatEndpoint

VERBS = ("bake", "paint", "repair", "sell", "count", "weigh", "draw", "hide", "wash", "plant", "carry")
THINGS = (
    "a bridge",
    "old boots",
    "seven lamps",
    "wet sand",
    "the moon",
    "cold tea",
    "red kites",
    "one flute",
)
METHOD = {"kind": "self-instruct", "rows": 12, "per_request": 3}


def propose(question: str) -> tuple[int, str]:
    """Instructions that follow from what is shown; anything else is answered."""
    if "### 1" not in question:
        return 200, f"Done: {question}"
    number = sum(map(ord, question))
    texts = [
        f"### {place}\n{VERBS[(number + place) % 11]} {THINGS[(number // 7 + place) % 8]} no {number % 97}"
        for place in range(1, 4)
    ]
    return 200, "Sure.\n" + "\n".join(texts)


@pytest.fixture(autouse=True)
def writer(endpoint: ChatEndpoint) -> None:
    endpoint.reply_to = propose


def test_new_instructions_are_answered_and_tell_where_they_come_from(
    endpoint: ChatEndpoint, settings: Any, run: Any, rows: Any
) -> None:
    report = run(settings(METHOD))

    made = rows()
    assert (report.rows, report.stopped, len(made)) == (12, None, 12)
    assert report.calls == report.questions == len(endpoint.requests)
    assert len({row["messages"][0]["content"] for row in made}) == 12
    for row in made:
        asked, answered = row["messages"]
        assert answered["content"] == f"Done: {asked['content']}"
        assert row["generation"]["method"] == "self-instruct"
        assert len(row["generation"]["seed_rows"]) >= 1
    assert set(made[0]) == {"messages", "generation"}


def test_requests_show_seeds_and_later_ones_what_was_made(
    endpoint: ChatEndpoint, settings: Any, run: Any, rows: Any
) -> None:
    run(settings({**METHOD, "rows": 30, "max_rouge_l": 1.0}))

    made = {row["messages"][0]["content"] for row in rows()}
    shown = [set(re.split(r"\n*### \d+\n", text)[1:]) for text in endpoint.questions if "### 1" in text]
    assert all(any("plus" in example for example in each) for each in shown)
    assert not any(each & made for each in shown[:8])
    assert any(each & made for each in shown[8:])


def test_what_is_not_new_is_left_out_and_a_model_without_ideas_ends_the_run(
    endpoint: ChatEndpoint, settings: Any, run: Any, tmp_path: Path
) -> None:
    same = "### 1\nName a river in Asia\n### 2\nName a river in Europe\n### 3\nHi"
    endpoint.reply_to = lambda text: (200, same if "### 1" in text else "ok")

    report = run(settings({**METHOD, "patience": 10}))

    lines = (tmp_path / "out/output/dropped.jsonl").read_text().splitlines()
    assert (report.rows, report.stopped) == (1, "nothing_new")
    # Sixteen requests were made until ten in a row had brought nothing.
    assert {key: report.dropped[key] for key in ("not_new", "too_short")} == {"not_new": 31, "too_short": 16}
    assert any(json.loads(line).get("instruction") == "Name a river in Europe" for line in lines)


def test_seeds_that_are_alike_count_once(settings: Any, run: Any) -> None:
    # Of "What is n plus m?" four words of six are the same, so all but the first are like another.
    report = run(settings({**METHOD, "max_rouge_l": 0.6}))

    assert report.dropped["seed_like_another"] == 19


def test_a_reply_without_instructions_is_told(endpoint: ChatEndpoint, settings: Any, run: Any) -> None:
    endpoint.reply_to = lambda _: (200, "I would rather not.")

    report = run(settings({**METHOD, "patience": 8}))

    assert (report.rows, report.dropped["no_instructions"]) == (0, 8)


def test_the_same_replies_make_the_same_rows_and_are_paid_once(
    endpoint: ChatEndpoint, settings: Any, run: Any, tmp_path: Path
) -> None:
    run(settings(METHOD, concurrency=1))
    first, asked = pq.read_table(tmp_path / "out/output/train"), len(endpoint.requests)

    again = run(settings(METHOD, concurrency=9), fresh=True)

    assert (again.calls, len(endpoint.requests)) == (0, asked)
    assert pq.read_table(tmp_path / "out/output/train") == first


def test_the_bound_holds_and_what_was_made_before_it_is_whole(
    endpoint: ChatEndpoint, settings: Any, run: Any, rows: Any
) -> None:
    dear = {"input_price": 100.0, "output_price": 1_000.0}
    options = {"endpoint": dear, "sampling": {"max_tokens": 64}}

    first = run(settings({**METHOD, "rows": 40}, max_cost=0.8, **options))
    asked = len(endpoint.requests)
    second = run(settings({**METHOD, "rows": 40}, max_cost=50.0, **options))

    assert (first.stopped, first.cost <= 0.8) == ("cost_bound", True)
    assert first.cost == pytest.approx(0.02 * asked)
    assert (second.stopped, second.rows, len(rows())) == (None, 40, 40)
    assert second.calls == second.questions - asked
