"""The benchmark of the data factory on a small corpus: its truth, and ours against its bounds."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from trellis_cli.errors import Problem
from trellis_tools.bench.data import conversion, run, sides
from trellis_tools.bench.data.corpus import SHINGLE, chunks, write_corpus
from trellis_tools.bench.data.measure import Usage, measure


def shingles(text: str, language: str) -> set[tuple[str, ...]]:
    words = text.split() if language == "en" else list(text)
    return {tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_planted_similarities_are_those_of_the_texts(language: str) -> None:
    ((documents, copies),) = list(chunks(1000, 4, language))
    texts = documents.to_pylist()

    for original, copy, similarity in zip(copies.originals, copies.copies, copies.similarity, strict=True):
        one, other = shingles(texts[original], language), shingles(texts[copy], language)
        assert similarity == pytest.approx(len(one & other) / len(one | other))
    assert (copies.similarity >= 0.8).mean() > 0.4
    assert (copies.similarity < 0.8).mean() > 0.3


def test_a_corpus_is_the_same_for_the_same_seed_and_holds_every_document_once(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    planted = [write_corpus(folder, 3000, 9) for folder in folders]

    tables = [pq.read_table(folder) for folder in folders]
    assert tables[0].equals(tables[1])
    assert sorted(tables[0]["id"].to_pylist()) == list(range(1, 3001))
    assert np.array_equal(planted[0].copies.copies, planted[1].copies.copies)
    assert len(planted[0].stubs) > 0


@pytest.mark.slow
def test_ours_cleans_and_finds_what_was_planted(tmp_path: Path) -> None:
    source = tmp_path / "input"
    source.mkdir()

    outcome = sides.run_ours(source, tmp_path, write_corpus(source, 5000, 9))

    assert outcome.recall >= run.LEAST_RECALL
    assert outcome.false_merges <= run.MOST_FALSE_MERGES
    assert 0 < outcome.usage.peak_bytes < run.MOST_MEMORY_MB * 1e6


def test_recall_and_false_merges_are_told_from_what_is_left(tmp_path: Path) -> None:
    planted = write_corpus(tmp_path, 2000, 9)
    copies = planted.copies
    true, false = copies.copies[copies.similarity >= 0.8], copies.copies[copies.similarity < 0.8]
    usage = Usage(1.0, 1)
    left = np.setdiff1d(np.arange(2000), planted.stubs) + 1

    nothing = sides.judge("nothing", usage, left, planted)
    half = sides.judge("half", usage, np.setdiff1d(left, true[::2] + 1), planted)
    greedy = sides.judge("greedy", usage, np.setdiff1d(left, np.concatenate([true, false]) + 1), planted)

    assert (nothing.recall, nothing.false_merges) == (0.0, 0.0)
    assert half.recall == pytest.approx(0.5, abs=0.01)
    assert half.false_merges == 0.0
    assert greedy.recall == 1.0
    assert greedy.false_merges == pytest.approx(len(false) / (len(true) + len(false)))
    with pytest.raises(Problem, match="cleaning"):
        sides.judge("dirty", usage, np.arange(1, 2001), planted)


def test_a_side_that_fails_or_hangs_is_told_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no such thing"):
        measure(["sh", "-c", "echo no such thing; exit 3"], tmp_path / "log", 30)
    with pytest.raises(Problem, match="longer than 0"):
        measure(["sleep", "60"], tmp_path / "log", 0.2)


def test_every_conversion_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "ROWS", 2000)

    speeds = conversion.measure_conversion()

    assert len(speeds) == len(conversion.CONVERSIONS)
    assert min(speeds.values()) > 1000
