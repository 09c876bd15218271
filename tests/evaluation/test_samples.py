"""Files of samples: what is written is found again, filtered, searched and compared."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.evaluation import Verdict, VerdictCounts
from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.samples.changes import ChangeCounts
from trellis_evaluation.samples.store import Filters, SampleStore, open_store, write_store
from trellis_testing.samples import make_sample

_TEXTS = st.text(alphabet=st.sampled_from("abAB 数学题İß#-\n\"'*"), max_size=12)


def all_pages(
    store: SampleStore, filters: Filters, limit: int = 3, against: SampleStore | None = None
) -> list:
    found, cursor = [], None
    while True:
        page = store.page(filters, cursor=cursor, limit=limit, against=against)
        found += page.samples
        assert len(page.samples) <= limit
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


def test_samples_come_back_in_order_as_they_were(written) -> None:
    samples = [
        make_sample(at, number=number, notes={"judge": "好"}, error=None, seconds=0.25)
        for at in range(7)
        for number in range(2)
    ]
    shuffled = random.Random(1).sample(samples, len(samples))

    store = written(shuffled)

    assert all_pages(store, Filters()) == samples
    assert list(store.samples()) == samples
    assert store.get(3, 1) == samples[7]
    assert store.find("p3", 1) == samples[7]
    assert store.find("unknown") is None
    assert len(store) == 14


def test_a_store_may_be_empty(written) -> None:
    store = written([])

    assert store.page().samples == []
    assert store.counts() == VerdictCounts()
    assert store.page(Filters(search="something", verdicts=(Verdict.WRONG,))).next_cursor is None
    assert store.changes(written([make_sample(0)], "b")).only_there == 1


def test_filters_hold_together(written) -> None:
    samples = [
        make_sample(at, score=float(at % 3 == 0), groups={"level": str(at % 4), "type": "algebra"})
        for at in range(40)
    ]
    store = written(samples)

    found = all_pages(store, Filters(verdicts=(Verdict.WRONG, Verdict.FAILED), group=("level", "2")))

    assert [each.position for each in found] == [at for at in range(40) if at % 3 and at % 4 == 2]
    assert store.page(Filters(group=("level", "9"))).samples == []
    assert store.page(Filters(group=("level", "2")), limit=3).fitting == 10
    assert store.groups() == {"level": {str(n): 10 for n in range(4)}, "type": {"algebra": 40}}
    assert store.counts() == VerdictCounts(total=40, correct=14, wrong=26)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(_TEXTS, min_size=1, max_size=6), wanted=_TEXTS)
def test_a_search_finds_what_holds_the_text(tmp_path_factory, texts: list[str], wanted: str) -> None:
    path = tmp_path_factory.mktemp("search") / "s.sqlite"
    # Many more without it, so that the index is used.
    samples = [make_sample(at, key="k", prompt="?", gold="", output=text) for at, text in enumerate(texts)]
    samples += [make_sample(at, key="k", prompt="?", gold="", output="z") for at in range(len(texts), 1010)]
    write_store(path, samples)

    with open_store(path) as store:
        found = all_pages(store, Filters(search=wanted), limit=2000)

    lowered = wanted.strip().lower()
    expected = [each for each in samples if lowered in f"k\n{each.output}\n\n\n\n?".lower()]
    assert found == expected


@pytest.mark.parametrize("text", ["数学", "学", "#### 42", "NATALIA", "p1007", "数学问题"])
def test_a_search_goes_through_many_samples(written, text: str) -> None:
    samples = [make_sample(at, output="nothing to see", gold="g") for at in range(2000)]
    for at in (5, 1007, 1999):
        samples[at] = make_sample(at, output=f"p1007 Natalia 的数学问题 \n#### 42 {at}")
    store = written(samples)

    found = all_pages(store, Filters(search=text), limit=2)

    assert [each.position for each in found] == [5, 1007, 1999]
    assert all_pages(store, Filters(search=text, verdicts=(Verdict.WRONG,))) == []


def test_examples_that_stand_before_every_problem_are_not_searched(written) -> None:
    store = written([make_sample(at) for at in range(5)])

    assert all_pages(store, Filters(search="Q: example")) == [store.get(0)]
    assert [each.position for each in all_pages(store, Filters(search="number 3?"))] == [3]


def test_what_changed_is_found_by_key(written) -> None:
    here = written([make_sample(at, score=float(at < 6), key=f"k{at}") for at in range(10)], "here")
    turned = {5: {"verdict": Verdict.TRUNCATED}}
    there = written(
        [
            make_sample(20 - at, score=float(at > 4), key=f"k{at}", **turned.get(at, {}))
            for at in range(2, 12)
            if at != 9
        ],
        "there",
    )

    assert here.changes(there) == ChangeCounts(
        better=3, worse=3, otherwise=1, same=0, only_here=3, only_there=2
    )
    by_kind = {
        kind: [each.key for each in all_pages(here, Filters(changed=kind), against=there)]
        for kind in ("better", "worse", "any")
    }
    assert by_kind["better"] == ["k2", "k3", "k4"]
    assert by_kind["worse"] == ["k6", "k7", "k8"]
    assert by_kind["any"] == ["k2", "k3", "k4", "k5", "k6", "k7", "k8"]
    assert all_pages(here, Filters(changed="any", search="number 7"), against=there) == [here.get(7)]
    with pytest.raises(EvaluationProblem, match="needs an evaluation"):
        here.page(Filters(changed="any"))


def test_generations_of_a_problem_are_compared_one_by_one(written) -> None:
    here = written([make_sample(0, number=n, score=float(n == 1)) for n in range(3)], "here")
    there = written([make_sample(4, key="p0", number=n, score=0.0) for n in range(2)], "there")

    assert here.changes(there) == ChangeCounts(
        better=1, worse=0, otherwise=0, same=1, only_here=1, only_there=0
    )
    assert here.problem_scores()[1].tolist() == pytest.approx([1 / 3])


def test_a_generation_cannot_come_twice_and_nothing_is_left_of_the_try(tmp_path: Path) -> None:
    with pytest.raises(EvaluationProblem, match="comes twice") as caught:
        write_store(tmp_path / "s.sqlite", [make_sample(1), make_sample(1)])

    assert caught.value.code == "sample_twice"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_writing_keeps_the_file_of_before(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    write_store(path, [make_sample(0)])

    def broken() -> object:
        yield make_sample(1)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        write_store(path, broken())

    with open_store(path) as store:
        assert list(store.samples()) == [make_sample(0)]
    assert list(tmp_path.iterdir()) == [path]


def test_missing_and_damaged_files_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with pytest.raises(EvaluationProblem) as missing:
        open_store(path)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(EvaluationProblem) as damaged:
        open_store(path)
    path.write_bytes(b"")
    with pytest.raises(EvaluationProblem) as other:
        open_store(path)

    codes = [each.value.code for each in (missing, damaged, other)]
    assert codes == ["samples_missing", "samples_damaged", "samples_format"]


def test_a_file_with_a_damaged_middle_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    write_store(path, [make_sample(at, output=f"{at} " * 500) for at in range(300)])
    content = bytearray(path.read_bytes())
    middle = slice(len(content) // 4, len(content) * 3 // 4)
    content[middle] = random.Random(2).randbytes(len(content[middle]))
    path.write_bytes(content)

    with open_store(path) as store, pytest.raises(EvaluationProblem) as caught:
        list(store.samples())

    assert caught.value.code == "samples_damaged"


@pytest.mark.parametrize("cursor", ["-1", "x", "1" * 30, "٣"])
def test_a_cursor_that_is_none_is_rejected(written, cursor: str) -> None:
    with pytest.raises(EvaluationProblem) as caught:
        written([make_sample(0)]).page(cursor=cursor)

    assert caught.value.code == "cursor_invalid"
