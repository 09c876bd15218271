"""Intervals, tests and pass@k against what is known of them."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from trellis_contracts.evaluation import Sample, Score, Verdict
from trellis_evaluation.statistics import (
    bootstrap,
    compare_pairs,
    holm,
    mcnemar,
    mean_score,
    paired_bootstrap,
    pass_at_k,
    pass_at_k_score,
    summarise,
    wilson,
)
from trellis_evaluation.statistics.intervals import MANY


def a_sample(
    position: int, score: float, *, number: int = 0, verdict: Verdict | None = None, **more
) -> Sample:
    return Sample(
        position=position, key=f"p{position}", prompt="?", output="!", gold="1",
        verdict=verdict or (Verdict.CORRECT if score else Verdict.WRONG),
        score=score, parts=more.pop("parts", {"strict": score}), **more,
    )  # fmt: skip


def test_wilsons_interval_is_that_of_the_formula() -> None:
    n, correct, z = 500, 137, stats.norm.ppf(0.975)
    p = correct / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)

    found = wilson(correct, n)

    assert (found.low, found.high) == pytest.approx((centre - half, centre + half))
    assert wilson(0, 10).low == 0
    assert wilson(0, 10).high > 0.2
    with pytest.raises(ValueError, match="no proportion"):
        wilson(0, 0)


def test_intervals_hold_the_true_value_about_as_often_as_they_say() -> None:
    draw = np.random.default_rng(7)
    inside = 0
    for _ in range(300):
        found = bootstrap(draw.beta(2, 3, size=60), resamples=1000)
        inside += found.low <= 0.4 <= found.high

    assert 0.90 <= inside / 300 <= 0.985


def test_generations_of_one_problem_are_drawn_together() -> None:
    draw = np.random.default_rng(1)
    by_problem = draw.integers(0, 2, size=100).astype(float)
    values, clusters = np.repeat(by_problem, 8), np.repeat(np.arange(100), 8).tolist()

    clustered, each = bootstrap(values, clusters), bootstrap(values)

    assert clustered.high - clustered.low > 2.5 * (each.high - each.low)
    assert mean_score("m", values, clusters) == mean_score("m", by_problem)


def test_the_same_values_always_have_the_same_interval() -> None:
    values = np.random.default_rng(3).random(3000)

    assert bootstrap(values) == bootstrap(values)
    assert bootstrap(values) != bootstrap(values, seed=1)


def test_a_mean_says_how_its_interval_was_found() -> None:
    ones, tenths = mean_score("m", [1, 0, 1, 1]), mean_score("m", [0.1, 0.2, 0.9])

    assert (ones.method, ones.value, ones.n) == ("wilson", 0.75, 4)
    assert ones.stderr == pytest.approx(np.std([1, 0, 1, 1], ddof=1) / 2)
    assert tenths.method == "bootstrap"
    assert mean_score("m", [0.5]).method == "none"
    assert mean_score("m", [1.0]).low == pytest.approx(0.2065, abs=1e-3)
    assert mean_score("m", []).n == 0
    with pytest.raises(ValueError, match="no numbers"):
        mean_score("m", [math.nan, 1])


def test_the_normal_interval_of_very_many_values_is_the_bootstraps() -> None:
    values = np.random.default_rng(5).random(MANY + 1)

    found, drawn = mean_score("m", values), bootstrap(values, resamples=2000)

    assert found.method == "normal"
    assert (found.low, found.high) == pytest.approx((drawn.low, drawn.high), abs=5e-4)


@given(st.integers(0, 25), st.integers(0, 25))
def test_mcnemar_of_few_problems_is_the_binomial_test(better: int, worse: int) -> None:
    p_value, test = mcnemar(better, worse)

    assert p_value == mcnemar(worse, better)[0]
    if better + worse == 0:
        assert p_value == 1
    elif better + worse <= 25:
        assert test == "mcnemar_exact"
        tail = sum(math.comb(better + worse, i) for i in range(min(better, worse) + 1)) / 2 ** (
            better + worse
        )
        assert p_value == pytest.approx(min(1, 2 * tail))
    else:
        assert test == "mcnemar_corrected"


def test_mcnemar_of_many_problems_is_corrected_for_continuity() -> None:
    p_value, test = mcnemar(40, 20)

    assert test == "mcnemar_corrected"
    assert p_value == pytest.approx(stats.chi2.sf(19**2 / 60, 1))
    assert mcnemar(30, 30)[0] == 1


def test_the_paired_bootstrap_agrees_with_the_t_test_where_that_holds() -> None:
    draw = np.random.default_rng(11)
    a = draw.random(400)
    b = a + draw.normal(0.01, 0.1, 400)

    p_value, _ = paired_bootstrap(a, b)

    assert p_value == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.02)
    assert paired_bootstrap(a, a)[0] == 1
    assert paired_bootstrap(a, a + 0.2)[0] < 0.001


def test_two_models_are_compared_problem_by_problem() -> None:
    found = compare_pairs([0, 0, 1, 1, 0], [1, 1, 1, 0, 0])

    assert (found.improved, found.worsened, found.n) == (2, 1, 5)
    assert found.difference == pytest.approx(0.2)
    assert found.test == "mcnemar_exact"
    assert found.interval is not None
    assert found.interval.low < 0 < found.interval.high
    assert compare_pairs([0.5, 0.2], [0.1, 0.2]).test == "paired_bootstrap"
    assert compare_pairs([1], [0]).interval is None
    with pytest.raises(ValueError, match="no pairs"):
        compare_pairs([1, 2], [1])


@given(st.integers(1, 9), st.data())
def test_pass_at_k_is_the_part_of_draws_with_a_right_one(n: int, data: st.DataObject) -> None:
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    right = [index < correct for index in range(n)]
    draws = list(combinations(right, k))

    assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_pass_at_k_needs_as_many_programs() -> None:
    with pytest.raises(ValueError, match="cannot be estimated"):
        pass_at_k(4, 1, 5)

    assert pass_at_k_score([(10, 0), (10, 10)], 5).value == 0.5


def test_samples_become_scores_groups_and_counts() -> None:
    samples = [
        a_sample(0, 1.0, groups={"level": "1", "type": "x"}, output_tokens=3, prompt_tokens=1),
        a_sample(1, 0.0, groups={"level": "2"}, output_tokens=4, parts={"strict": 0, "flexible": 1}),
        a_sample(2, 0.0, verdict=Verdict.FAILED, parts={}, error="engine ended"),
        a_sample(3, 0.0, verdict=Verdict.TRUNCATED),
    ]
    extra = Score(metric="macro", value=0.5, n=2)

    found = summarise(
        iter(samples),
        label="gsm8k",
        benchmark="gsm8k",
        metrics=["strict"],
        group_kinds=["level"],
        extras=[extra],
    )

    assert [score.metric for score in found.scores] == ["strict", "macro"]
    assert found.scores[0].value == 0.25
    assert [(each.kind, each.name, each.score.value) for each in found.groups] == [
        ("level", "1", 1.0),
        ("level", "2", 0.0),
    ]
    assert (found.counts.total, found.counts.failed, found.counts.truncated, found.counts.wrong) == (
        4,
        1,
        1,
        1,
    )
    assert (found.prompt_tokens, found.output_tokens, found.problems) == (1, 7, 4)


def test_a_score_that_is_no_mean_may_be_the_headline() -> None:
    samples = [a_sample(0, float(number == 0), number=number) for number in range(4)]
    extras = [pass_at_k_score([(4, 1)], 1), pass_at_k_score([(4, 1)], 4)]

    found = summarise(samples, label="h", benchmark="humaneval", metrics=["pass@1"], extras=extras)

    assert [(score.metric, score.value) for score in found.scores] == [("pass@1", 0.25), ("pass@4", 1.0)]
    assert (found.problems, found.counts.total) == (1, 4)


def test_an_answer_without_its_metric_is_an_error() -> None:
    with pytest.raises(ValueError, match="p0 of g has no flexible"):
        summarise([a_sample(0, 1.0)], label="g", benchmark="gsm8k", metrics=["flexible"])


def test_holm_multiplies_step_by_step_and_never_changes_the_order() -> None:
    # As R's p.adjust(method = "holm") computes it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []
