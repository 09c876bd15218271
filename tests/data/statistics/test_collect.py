"""Statistics of rows, against counting by hand."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.statistics.collect import Depth, summarise
from trellis_data.statistics.model import Lengths, Statistics

CHAT = Layout(DataFormat.MESSAGES, {"messages": "messages"})
TEXT = Layout(DataFormat.TEXT, {"text": "text"})
QUICK = Depth(language_rows=0)
Shards = Callable[..., list[Path]]


def chats(count: int, seed: int = 1) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "id": i % (count - 10),
            "messages": [
                {"role": ("user", "assistant")[turn % 2], "content": "word " * chance.randint(0, 30)}
                for turn in range(chance.randint(0, 6))
            ]
            if i % 50
            else None,
            "score": i / 2 if i % 3 else None,
            "note": ("", "  ", "kept", None)[i % 4],
        }
        for i in range(count)
    ]


def test_columns_lengths_turns_and_roles_are_counted(shards: Shards) -> None:
    rows = chats(500)

    found = summarise({"train": shards(rows)}, CHAT, QUICK)

    columns = {column.name: column for column in found.columns}
    assert (found.rows, found.splits) == (500, {"train": 500})
    assert list(columns) == ["id", "messages", "score", "note"]
    assert (columns["note"].nulls, columns["note"].empty) == (125, 250)
    scores = [row["score"] for row in rows if row["score"] is not None]
    assert (columns["score"].least, columns["score"].most) == (min(scores), max(scores))
    assert columns["score"].total == pytest.approx(sum(scores))
    assert columns["messages"].empty == sum(row["messages"] == [] for row in rows)
    lengths = [len("\n".join(turn["content"] for turn in row["messages"] or [])) for row in rows]
    assert (found.characters.count, found.characters.total) == (500, sum(lengths))
    assert sum(found.characters.histogram.counts) == 500
    assert found.turns.count == 490
    assert found.turns.most == max(len(row["messages"] or []) for row in rows)
    speakers = [turn["role"] for row in rows for turn in row["messages"] or []]
    assert found.roles == {name: speakers.count(name) for name in ("user", "assistant")}


def test_rows_that_are_the_same_are_counted_exactly_over_files_and_splits(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis_data.statistics.duplicates._HELD", 100)
    rows = [{"text": f"row {i % 700}", "n": i % 2} for i in range(3000)]
    files = shards(rows)

    found = summarise({"train": files[:2], "test": files[2:]}, Layout(DataFormat.UNKNOWN), QUICK)

    assert found.duplicates == 3000 - len({(row["text"], row["n"]) for row in rows})
    assert found.splits == {"train": 2000, "test": 1000}


def test_languages_are_told_of_a_sample(shards: Shards) -> None:
    texts = ["The weather is fine and we go for a walk today.", "今天天气很好，我们去公园散步吧。"]
    rows = [{"text": f"{texts[i % 2]} {i}"} for i in range(4000)]

    found = summarise({"train": shards(rows)}, TEXT, Depth(language_rows=400))

    assert set(found.languages) == {"en", "zh"}
    assert 300 < sum(found.languages.values()) < 500


def test_tokens_are_those_of_the_model(shards: Shards, tmp_path: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    rows = [{"text": "a b c"}, {"text": "a"}, {"text": None}]

    found = summarise({"train": shards(rows, 1)}, TEXT, Depth(tmp_path))

    assert found.tokens is not None
    assert (found.tokens.count, found.tokens.total, found.tokens.most) == (3, 4, 3)


def test_no_rows_have_statistics_too(shards: Shards) -> None:
    table = pa.table({"text": pa.array([], pa.string()), "n": pa.array([], pa.int64())})

    found = summarise({"train": shards(table)}, TEXT)

    assert (found.rows, found.duplicates, [column.name for column in found.columns]) == (0, 0, ["text", "n"])
    assert Statistics.model_validate_json(found.model_dump_json()) == found


def test_somebody_who_looks_on_can_end_it(shards: Shards) -> None:
    def stop(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        summarise({"train": shards(chats(500))}, CHAT, QUICK, stop)


@given(st.lists(st.integers(0, 10**6)), st.lists(st.integers(0, 10**6)))
def test_lengths_add_up(one: list[int], other: list[int]) -> None:
    together = Lengths.of(np.array(one + other, dtype=np.int64))

    assert Lengths.of(np.array(one, np.int64)).merged(Lengths.of(np.array(other, np.int64))) == together


@given(st.lists(st.integers(0, 5000), min_size=50))
def test_quantiles_are_right_to_within_a_bin(values: list[int]) -> None:
    lengths = Lengths.of(np.array(values))

    for share in (0.1, 0.5, 0.9):
        ordered = sorted(values)
        at = int(share * len(values))
        low, high = ordered[max(0, at - 2)], ordered[min(len(values) - 1, at + 2)]
        assert low / 1.6 - 2 <= lengths.quantile(share) <= high * 1.6 + 2


def test_statistics_of_parts_are_those_of_the_whole(shards: Shards) -> None:
    rows = chats(300)
    files = shards(rows)
    parts = [summarise({"train": [file]}, CHAT, QUICK) for file in files]

    merged = parts[0].merged(parts[1]).merged(parts[2])

    whole = summarise({"train": files}, CHAT, QUICK)
    assert merged.duplicates is None
    assert merged.model_copy(update={"duplicates": whole.duplicates}) == whole
