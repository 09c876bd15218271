"""Findings of parts add up to the findings of the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_data.findings import FINDINGS, Histogram, Ranking, Standing, Tally, merge_findings

EDGES = [0.0, 0.25, 0.5, 1.0]
_VALUES = st.lists(st.floats(-1, 2), max_size=30)


def ranking(values: list[float], limit: int = 3) -> Ranking:
    empty = Ranking(limit=limit)
    standing = [Standing(value=value, row={"v": value}) for value in values]
    return empty.merged(Ranking(limit=limit, lowest=standing, highest=standing))


@given(_VALUES, _VALUES)
def test_findings_of_two_parts_are_those_of_the_whole(one: list[float], other: list[float]) -> None:
    parts = [{"h": Histogram.of(np.array(values), EDGES), "r": ranking(values)} for values in (one, other)]

    whole = merge_findings(*parts)

    assert whole == {"h": Histogram.of(np.array(one + other), EDGES), "r": ranking(one + other)}


def test_values_beyond_the_edges_count_and_nan_does_not() -> None:
    assert Histogram.of(np.array([-5.0, 0.25, 9.0, np.nan]), EDGES).counts == [1, 1, 1]


def test_histograms_with_other_edges_are_not_added() -> None:
    with pytest.raises(ValueError, match="different edges"):
        Histogram.of(np.array([0.1]), EDGES).merged(Histogram.of(np.array([0.1]), [0.0, 1.0]))


def test_a_tally_keeps_the_most_frequent_and_says_how_many_others_there_were() -> None:
    tally = Tally.of("aaabbcd", limit=2).merged(Tally.of("bbe", limit=2))

    assert tally.counts == {"b": 4, "a": 3}
    assert tally.others == 3


def test_findings_survive_the_way_through_a_file() -> None:
    findings = {"h": Histogram.of(np.array([0.3]), EDGES), "t": Tally.of("ab", limit=5), "r": ranking([1.0])}

    assert FINDINGS.validate_json(FINDINGS.dump_json(findings)) == findings
