"""Coresets against brute force (B4), the metrics they use, and the buffer that survives restarts (B5)."""

import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_train.agents.tooluse.data.dialogs import make_dialogs
from trellis_train.agents.tooluse.data.tools import make_tools
from trellis_train.agents.tooluse.formatting.formatter import format_dialog
from trellis_train.agents.tooluse.selection.coreset import STRATEGIES, CoresetItem, Strategy, select, terms
from trellis_train.agents.tooluse.selection.metrics import measure
from trellis_train.agents.tooluse.selection.replay import BadBuffer, ReplayBuffer
from trellis_train.agents.tooluse.selection.rows import item_of, select_rows

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """200 formatted dialogs."""
    made = make_tools(42)
    tools = {tool.name: tool.row for tool in made.all}
    dialogs = make_dialogs(made, seed=42)
    return [format_dialog(next(dialogs), tools) for _ in range(200)]


# -- metrics ----------------------------------------------------------------------------------------


def test_length_counts_words_and_each_chinese_character() -> None:
    assert measure("Book 2 rooms, please!").token_length == 4
    assert measure("请订房间").token_length == 4
    assert measure("请订2间 rooms").token_length == 5
    assert measure("").token_length == 0


def test_diversity_and_the_stand_in_for_the_loss_by_hand() -> None:
    # Four words, three different; H = 2·(1/4·2) + 1/2·1 = 1.5 bits.
    metrics = measure("one two two Three")

    assert metrics.lexical_diversity == 3 / 4
    assert metrics.loss == pytest.approx(4 / 512 + 1.5 / 5)
    assert measure("").loss == measure("").lexical_diversity == 0


def test_the_stand_in_is_at_most_five_and_a_measured_loss_goes_before_it() -> None:
    assert measure("word " * 10_000).loss == 5.0
    assert measure("word", {"loss": 7.5}).loss == 7.5
    for told in ("7.5", None, True, math.nan, math.inf):
        assert measure("word", {"loss": told}).loss == pytest.approx(1 / 512)


# -- coreset ----------------------------------------------------------------------------------------


def brute_force(items: list[CoresetItem], k: int, strategy: Strategy) -> list[str]:
    """The ids of the specification's selection, item by item and pair by pair."""
    k = min(k, len(items))
    if strategy == "loss_topk":
        return [item.id for item in sorted(items, key=lambda item: (-item.loss, item.id))][:k]
    if strategy == "hybrid":
        first = brute_force(items, int(0.6 * k), "loss_topk")
        rest = [item for item in items if item.id not in first]
        return first + brute_force(rest, k - len(first), "diversity")
    counts = {item.id: Counter(terms(item.text)) for item in items}
    norms = {name: math.sqrt(sum(n * n for n in found.values())) for name, found in counts.items()}

    @cache
    def cosine(one: str, other: str) -> float:
        if not norms[one] or not norms[other]:
            return 0.0
        dot = sum(n * counts[other][term] for term, n in counts[one].items())
        return dot / (norms[one] * norms[other])

    chosen: list[str] = []
    left = sorted(counts)
    while left and len(chosen) < k:
        if not chosen:
            best = max(left, key=lambda name: norms[name])
        else:
            best = max(left, key=lambda name: round(1 - max(cosine(name, each) for each in chosen), 9))
        chosen.append(best)
        left.remove(best)
    return chosen


@pytest.mark.parametrize("strategy", ["loss_topk", "diversity", "hybrid"])
@pytest.mark.parametrize("k", [1, 7, 50, 200])
def test_a_coreset_of_200_dialogs_is_that_of_brute_force(rows: list[Row], strategy: Strategy, k: int) -> None:
    items = [item_of(row) for row in rows]
    random.Random(3).shuffle(items)

    chosen = select(items, k, strategy, seed=0)

    assert [items[place].id for place in chosen] == brute_force(items, k, strategy)


TEXTS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "of", "订房间", "订房", "机票", "Delta"]), max_size=5
).map(" ".join)


@given(st.lists(st.tuples(TEXTS, st.sampled_from([0.0, 1.0, 2.5])), max_size=12), st.integers(0, 14))
def test_ties_and_empty_texts_are_settled_as_brute_force_settles_them(
    drawn: list[tuple[str, float]], k: int
) -> None:
    items = [CoresetItem(f"id-{n:02d}", text, loss) for n, (text, loss) in enumerate(drawn)]
    random.Random(1).shuffle(items)

    for strategy in ("loss_topk", "diversity", "hybrid"):
        chosen = [items[place].id for place in select(items, k, strategy, seed=0)]
        assert chosen == brute_force(items, k, strategy)


@given(st.integers(0, 30), st.integers(0, 40), st.sampled_from(STRATEGIES), st.integers(0, 5))
def test_a_coreset_has_the_size_asked_for_and_nothing_twice_whatever_the_order(
    count: int, k: int, strategy: Strategy, seed: int
) -> None:
    items = [CoresetItem(f"id-{n}", f"word{n % 7} text", n % 3) for n in range(count)]
    turned = list(reversed(items))

    chosen = [items[place].id for place in select(items, k, strategy, seed=seed)]

    assert len(set(chosen)) == len(chosen) == min(k, count)
    assert [turned[place].id for place in select(turned, k, strategy, seed=seed)] == chosen


def test_a_random_coreset_is_drawn_by_the_seed(rows: list[Row]) -> None:
    drawn = [select_rows(rows, 20, "random", seed=seed) for seed in (1, 1, 2)]

    assert drawn[0] == drawn[1] != drawn[2]


def test_terms_are_words_of_three_letters_and_pairs_of_chinese_characters() -> None:
    assert terms("Go to the BANK: 请订房，好") == ["the", "bank", "请订", "订房"]


@pytest.mark.parametrize(
    ("k", "strategy", "ids", "said"),
    [
        (-1, "random", "ab", "-1 items"),
        (1, "best", "ab", "unknown strategy 'best'"),
        (1, "random", "aa", "same id"),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused(k: int, strategy: Any, ids: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        select([CoresetItem(name, "", 0) for name in ids], k, strategy, seed=0)


# -- replay -----------------------------------------------------------------------------------------


def make_rows(ids: list[int], rounds: int = 0) -> list[Row]:
    return [
        {
            "id": f"row-{n:03d}",
            "metadata": {"round": rounds},
            "messages": [{"role": "user", "content": f"word{n % 5} word{n % 11} more {'text ' * (n % 4)}"}],
        }
        for n in ids
    ]


def new_buffer(strategy: Strategy = "hybrid", size: int = 20, ratio: float = 0.25) -> ReplayBuffer:
    return ReplayBuffer(size=size, ratio=ratio, strategy=strategy, seed=9)


def ids_of(rows: Any) -> list[str]:
    return [row["id"] for row in rows]


ROUNDS = st.lists(st.lists(st.integers(0, 60), unique=True, max_size=25), min_size=1, max_size=5)


@given(ROUNDS, st.sampled_from(STRATEGIES), st.floats(0, 3))
def test_rounds_keep_and_replay_what_the_formulas_say(
    rounds: list[list[int]], strategy: Strategy, ratio: float
) -> None:
    buffer = new_buffer(strategy, ratio=ratio)
    for number, ids in enumerate(rounds):
        new = make_rows(ids, number)
        before = dict(buffer.rows)

        replayed = buffer.absorb(new)

        united = {**before, **{row["id"]: row for row in new}}
        assert len(buffer.rows) == min(20, len(united))
        assert all(united[name] == row for name, row in buffer.rows.items())
        available = set(buffer.rows) - set(ids_of(new))
        assert len(replayed) == min(max(1, int(len(new) * ratio)), len(available))
        assert len(set(ids_of(replayed))) == len(replayed)
        assert set(ids_of(replayed)) <= available
        if len(united) > 20 and strategy == "loss_topk":
            items = [item_of(row) for row in united.values()]
            assert set(buffer.rows) == set(brute_force(items, 20, "loss_topk"))


@settings(max_examples=25)
@given(rounds=ROUNDS, strategy=st.sampled_from(STRATEGIES))
def test_a_buffer_that_is_saved_and_opened_goes_on_as_if_nothing_had_happened(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[int]], strategy: Strategy
) -> None:
    path = tmp_path_factory.mktemp("buffer") / "replay.json"
    lasting = new_buffer(strategy)
    for number, ids in enumerate(rounds):
        opened = ReplayBuffer.open(path, size=20, ratio=0.25, strategy=strategy, seed=9)
        new = make_rows(ids, number)

        assert opened.absorb(new) == lasting.absorb(new)
        assert list(opened.rows.items()) == list(lasting.rows.items())
        assert opened.metrics == lasting.metrics
        opened.save(path)


def test_another_process_goes_on_identically_to_the_byte(tmp_path: Path) -> None:
    start, here, there = (tmp_path / name for name in ("start", "here", "there"))
    buffer = new_buffer()
    buffer.absorb(make_rows(list(range(30))))
    buffer.save(start)
    there.write_bytes(start.read_bytes())
    (tmp_path / "new.json").write_text(json.dumps(make_rows(list(range(25, 60)))))
    program = (
        "import json, sys\nfrom pathlib import Path\n"
        "from trellis_train.agents.tooluse.selection.replay import ReplayBuffer\n"
        "path, new = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())\n"
        "buffer = ReplayBuffer.open(path, size=20, ratio=0.25, strategy='hybrid', seed=0)\n"
        "print(json.dumps([row['id'] for row in buffer.absorb(new)]))\n"
        "buffer.save(path)\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", program, str(there), str(tmp_path / "new.json")],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "11"},
    )  # fmt: skip
    replayed = ids_of(buffer.absorb(make_rows(list(range(25, 60)))))
    buffer.save(here)

    assert json.loads(said.stdout) == replayed
    assert len(replayed) >= 1
    assert there.read_bytes() == here.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.99, 0.9999])
def test_a_buffer_that_is_cut_off_is_refused_with_a_sentence(tmp_path: Path, share: float) -> None:
    path = tmp_path / "replay.json"
    buffer = new_buffer()
    buffer.absorb(make_rows(list(range(15))))
    buffer.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(BadBuffer, match=r"replay\.json"):
        ReplayBuffer.open(path, size=20, ratio=0.25, strategy="hybrid", seed=9)


def test_a_buffer_that_was_changed_or_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    new_buffer().save(path)
    for text, said in (
        (path.read_text().replace('"seen": 0', '"seen": 1'), "corrupted"),
        (path.read_text().replace('"format": 1', '"format": 2'), "has format 2"),
        ("[]\n", "is not a replay buffer"),
    ):
        path.write_text(text)
        with pytest.raises(BadBuffer, match=said):
            ReplayBuffer.open(path, size=20, ratio=0.25, strategy="hybrid", seed=9)
        new_buffer().save(path)


def test_a_save_that_fails_leaves_the_old_buffer_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "replay.json"
    buffer = new_buffer()
    buffer.absorb(make_rows([1, 2, 3]))
    buffer.save(path)
    old = path.read_bytes()
    buffer.absorb(make_rows([4, 5]))

    def full(_: int) -> None:
        raise OSError("no space left on the device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        buffer.save(path)

    assert path.read_bytes() == old
    assert len(ReplayBuffer.open(path, size=20, ratio=0.25, strategy="hybrid", seed=9).rows) == 3


def test_the_buffers_metrics_are_of_its_rows(rows: list[Row]) -> None:
    buffer = new_buffer("loss_topk", size=50)
    buffer.absorb(rows[:60])
    buffer.absorb(rows[60:80])

    metrics = buffer.metrics
    kept = [item_of(row).loss for row in buffer.rows.values()]
    assert (metrics.rounds, metrics.seen, metrics.dropped) == (2, 80, 30)
    assert metrics.mean_loss == pytest.approx(sum(kept) / 50)
    # None in the first round, as there was nothing old; then a quarter of 20.
    assert metrics.replayed == 5
