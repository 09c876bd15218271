"""What a dry run says of scores: the figures of each probe, and warnings that keep a run from going wrong."""

import pytest
from trellis_contracts.dry_run import DryRunResult, Probe
from trellis_train.rewards.dry_run_report import BINS, MAX_ERRORS, SLOW_MS, Scoring, make_report
from trellis_train.rewards.mixture import Scored
from trellis_train.rewards.sample import Sample

GOOD = {Probe.GOLD: [1.0, 1.0], Probe.EMPTY: [0.0, 0.0], Probe.WRONG: [0.0, 0.5]}


def scoring(
    score: float,
    *,
    row: int = 0,
    again: float | None = None,
    elapsed_ms: float = 1.0,
    error: str | None = None,
) -> Scoring:
    def scored(value: float) -> Scored:
        errors = {"exact": error} if error else {}
        return Scored(value, float(value >= 1.0), {"exact": value, "length": -value}, errors)

    sample = Sample(response=f"response {row}", answer="7", messages=[{"role": "user", "content": "3+4?"}])
    return Scoring(row, sample, scored(score), elapsed_ms, again=scored(score if again is None else again))


def report(groups: dict[Probe, list[Scoring]]) -> DryRunResult:
    return make_report(groups, row_count=2, cost=0.25)


def report_of(scores: dict[Probe, list[float]]) -> DryRunResult:
    return report(
        {probe: [scoring(score, row=row) for row, score in enumerate(each)] for probe, each in scores.items()}
    )


def codes_of(result: DryRunResult) -> list[str]:
    return [warning.code for warning in result.warnings]


def test_rewards_as_they_should_be_are_not_warned_of() -> None:
    result = report_of(GOOD)

    assert codes_of(result) == []
    assert (result.row_count, result.cost, result.error_count) == (2, 0.25, 0)
    assert result.is_deterministic


def test_the_figures_of_a_probe_are_those_of_its_scores() -> None:
    wrong = report_of(GOOD).probes[2]

    assert (wrong.probe, wrong.count, wrong.mean, wrong.minimum, wrong.maximum) == (
        Probe.WRONG, 2, 0.25, 0.0, 0.5,
    )  # fmt: skip
    assert wrong.correct_share == 0.0
    assert wrong.term_means == {"exact": 0.25, "length": -0.25}
    assert [(each.row, each.response, each.score) for each in wrong.examples] == [
        (0, "response 0", 0.0),
        (1, "response 1", 0.5),
    ]


def test_histograms_share_their_edges_and_hold_every_score() -> None:
    result = report_of(GOOD)
    gold, empty, wrong = (probe.histogram for probe in result.probes)

    assert result.edges == pytest.approx([place / BINS for place in range(BINS + 1)])
    assert gold == [0] * (BINS - 1) + [2]
    assert empty == [2] + [0] * (BINS - 1)
    assert {place: count for place, count in enumerate(wrong) if count} == {0: 1, BINS // 2: 1}


def test_a_single_score_lies_within_its_bins() -> None:
    result = report_of({Probe.GOLD: [3.0, 3.0]})

    assert (result.edges[0], result.edges[-1]) == (2.5, 3.5)
    assert sum(result.probes[0].histogram) == 2


def test_scores_that_change_are_warned_of_with_their_rows() -> None:
    wrong = [scoring(0.5, row=4), scoring(0.5, row=7, again=0.4), scoring(0.5, row=9, again=0.6)]

    result = report({Probe.GOLD: [scoring(1.0)], Probe.WRONG: wrong})

    gold, changed = result.probes
    assert not result.is_deterministic
    assert (gold.is_deterministic, gold.changed_rows) == (True, [])
    assert (changed.is_deterministic, changed.changed_rows) == (False, [7, 9])
    (warning,) = result.warnings
    assert (warning.code, warning.probe) == ("not_deterministic", Probe.WRONG)
    assert "row 7" in warning.message.en
    assert "第 7 行" in warning.message.zh


def test_an_error_that_comes_and_goes_is_not_deterministic_either() -> None:
    once = scoring(0.0, row=3, error="ValueError: now and then")
    unstable = Scoring(once.row, once.sample, once.first, 1.0, again=scoring(0.0).first)

    result = report({Probe.GOLD: [scoring(1.0)], Probe.EMPTY: [unstable]})

    assert result.probes[1].changed_rows == [3]
    assert codes_of(result) == ["errors", "not_deterministic"]


def test_a_reference_solution_that_is_not_the_best_is_warned_of() -> None:
    result = report_of({**GOOD, Probe.GOLD: [0.2, 0.2], Probe.REPEATED: [0.9, 0.9]})

    (warning,) = result.warnings
    assert (warning.code, warning.probe) == ("gold_not_best", Probe.REPEATED)
    assert "score 0.2, less than 'Solution repeated 3x' with 0.9" in warning.message.en
    assert "解答重复三遍" in warning.message.zh


def test_what_a_policy_has_written_may_be_better_than_the_reference() -> None:
    assert codes_of(report_of({**GOOD, Probe.ROLLOUTS: [2.0]})) == []


def test_an_empty_response_that_earns_something_is_warned_of() -> None:
    result = report_of({**GOOD, Probe.EMPTY: [0.0, 0.3]})

    (warning,) = result.warnings
    assert (warning.code, warning.probe) == ("empty_earns", Probe.EMPTY)
    assert "earns up to 0.3" in warning.message.en


def test_an_empty_response_that_loses_something_is_not() -> None:
    assert codes_of(report_of({**GOOD, Probe.EMPTY: [-1.0, -1.0]})) == []


def test_scores_that_are_all_equal_teach_nothing() -> None:
    equal = {probe: [0.0, 0.0] for probe in GOOD}

    assert codes_of(report_of(equal)) == ["all_equal"]
    # Recorded responses that differ do not make the probes differ.
    assert codes_of(report_of({**equal, Probe.ROLLOUTS: [0.0, 1.0]})) == ["all_equal"]


def test_slow_scores_are_warned_of_by_their_95th_percentile() -> None:
    quick, slow = (
        [scoring(1.0, row=row, elapsed_ms=SLOW_MS * 3 if row < count else 5.0) for row in range(100)]
        for count in (5, 6)
    )
    empty = {Probe.EMPTY: [scoring(0.0)]}

    assert codes_of(report({Probe.GOLD: quick})) == ["all_equal"]
    result = report({Probe.GOLD: slow, **empty})

    (warning,) = result.warnings
    assert warning.code == "slow"
    assert "3.0 s" in warning.message.en
    assert (result.latency.p50_ms, result.latency.p95_ms, result.latency.max_ms) == (5.0, 3000.0, 3000.0)


def test_errors_are_counted_and_the_first_few_are_shown() -> None:
    count = MAX_ERRORS + 3
    empty = [scoring(0.0, row=row, error=f"ValueError: nothing in {row}") for row in range(count)]

    result = report({Probe.GOLD: [scoring(1.0)], Probe.EMPTY: empty})

    assert result.error_count == result.probes[1].error_count == count
    assert [error.row for error in result.probes[1].errors] == list(range(MAX_ERRORS))
    (warning,) = result.warnings
    assert (warning.code, warning.probe) == ("errors", Probe.EMPTY)
    assert f"{count} reward calls failed" in warning.message.en
    assert "'exact': ValueError: nothing in 0" in warning.message.en
