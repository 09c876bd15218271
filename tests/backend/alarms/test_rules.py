"""Each rule on curves that it must see, and on those next to them that it must not."""

import math
import random
from collections.abc import Iterable, Sequence

import pytest
from trellis_api.jobs.alarms.alarm_texts import TEXTS
from trellis_api.jobs.alarms.detector import Change, observe
from trellis_api.jobs.alarms.rules import RULES, SEVERITIES
from trellis_api.jobs.alarms.watch import Watch

NAN, INF = math.nan, math.inf


def run(*curves: tuple[str, Sequence[float]], watch: Watch | None = None) -> list[Change]:
    """What the rules say to curves of equal length, from step 1 on."""
    length = max(len(values) for _, values in curves)
    steps = [(step + 1, {key: values[step] for key, values in curves}) for step in range(length)]
    return observe(watch or Watch(), steps)


def codes(changes: Iterable[Change], kind: str = "raised") -> list[tuple[str, int]]:
    return [(change.code, change.step) for change in changes if change.kind == kind]


def scores(highest: Sequence[float], lowest: Sequence[float]) -> list[Change]:
    return run(("critic/score/max", highest), ("critic/score/min", lowest))


def noisy(level: float, count: int, spread: float = 0.3, seed: int = 0) -> list[float]:
    numbers = random.Random(seed)
    return [level * (1 + spread * (2 * numbers.random() - 1)) for _ in range(count)]


@pytest.mark.parametrize(
    "key",
    [
        "actor/pg_loss",
        "critic/vf_loss",
        "train/loss",
        "val/loss",
        "loss",
        "eval_loss",
        "actor/kl_loss",
        "actor/grad_norm",
        "critic/grad_norm",
        "grad_norm",
        "train/grad_norm",
    ],
)
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_loss_that_is_no_number_is_said_at_once(key: str, value: float) -> None:
    changes = run((key, [0.7, value]))

    assert codes(changes) == [("loss_not_finite", 2)]
    assert changes[0].metric == key
    assert changes[0].value is None


@pytest.mark.parametrize(
    "key", ["training/rollout_actor_probs_pearson_corr", "critic/vf_explained_var", "losses", "val/score"]
)
def test_a_metric_that_is_no_loss_may_be_no_number(key: str) -> None:
    assert run((key, [1.0, NAN, INF])) == []


@pytest.mark.parametrize("key", ["training/rollout_importance_weight_mean", "rollout_corr/rollout_is_mean"])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_importance_weights_that_are_no_numbers_are_a_mismatch(key: str, value: float) -> None:
    changes = run((key, [1.0, value, value, 1.0, 1.0, 1.0]))

    assert codes(changes) == [("rollout_mismatch", 3)]
    assert (changes[0].value, changes[0].threshold) == (None, None)
    assert codes(changes, "cleared") == [("rollout_mismatch", 6)]
    assert run((key, [1.0, value, 1.0, value, 1.0])) == []


def test_a_loss_that_is_finite_again_clears_after_three_steps() -> None:
    changes = run(("train/loss", [1.0, NAN, NAN, 1.0, 1.0, 1.0, 1.0]))

    assert codes(changes) == [("loss_not_finite", 2)]
    assert codes(changes, "seen") == [("loss_not_finite", 3)]
    assert codes(changes, "cleared") == [("loss_not_finite", 6)]


def test_two_keys_of_one_alarm_clear_together() -> None:
    changes = run(("actor/pg_loss", [NAN, *[0.0] * 8]), ("actor/grad_norm", [NAN] * 4 + [1.0] * 5))

    assert codes(changes) == [("loss_not_finite", 1)]
    assert codes(changes, "cleared") == [("loss_not_finite", 7)]


def test_a_diverging_loss_is_seen_and_a_spike_is_not() -> None:
    diverged = run(("train/loss", [2.5, 2.4, 9.0, 20.0, 40.0]))
    spike = run(("train/loss", [2.5, 2.4, 30.0, 30.0, 2.5, 2.4, 2.3]))
    doubled = run(("train/loss", [1.0, *[2.4] * 10]))

    assert codes(diverged) == [("loss_exploding", 5)]
    assert diverged[0].first_step == 3
    assert spike == []
    assert doubled == []


def test_a_loss_that_diverges_from_the_first_step_is_seen() -> None:
    assert codes(run(("loss", [5.6, 60.0, 80.0, 70.0]))) == [("loss_exploding", 4)]


@pytest.mark.parametrize("key", ["actor/grad_norm", "critic/grad_norm", "train/grad_norm", "grad_norm"])
def test_an_exploding_gradient_is_seen(key: str) -> None:
    changes = run((key, [*noisy(0.5, 20), 30.0, 40.0, 50.0]))

    assert codes(changes) == [("grad_norm_exploding", 23)]


def test_gradients_that_are_large_but_usual_or_spike_once_are_fine() -> None:
    assert run(("actor/grad_norm", noisy(80.0, 60))) == []
    assert run(("actor/grad_norm", [*noisy(0.5, 20), 50.0, 50.0, *noisy(0.5, 20)])) == []
    assert run(("actor/grad_norm", [*noisy(0.01, 20), *[0.9] * 10])) == []


@pytest.mark.parametrize(
    ("key", "usual", "wrong"),
    [
        ("actor/ppo_kl", 0.01, 0.8),
        ("actor/ppo_kl", -0.01, -0.8),
        ("actor/kl_loss", 0.05, 2.0),
        ("actor/reward_kl_penalty", 0.1, 3.0),
        ("kl", 5.0, 300.0),
    ],
)
def test_an_exploding_kl_is_seen(key: str, usual: float, wrong: float) -> None:
    changes = run((key, [*noisy(usual, 20), wrong, wrong]))

    assert codes(changes) == [("kl_exploding", 22)]
    assert changes[0].value == pytest.approx(abs(wrong))


def test_a_kl_without_a_past_is_held_against_an_absolute_bound() -> None:
    assert codes(run(("actor/ppo_kl", [0.0, 7.0, 9.0]))) == [("kl_exploding", 3)]
    assert run(("actor/ppo_kl", [0.0, 4.0, 4.5])) == []


@pytest.mark.parametrize("key", ["actor/ppo_kl", "actor/kl_loss", "actor/reward_kl_penalty", "kl"])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("steps_before", [0, 20])
def test_a_kl_that_is_no_number_is_seen(key: str, value: float, steps_before: int) -> None:
    changes = run((key, [*noisy(0.01, steps_before), value, value, 0.01, 0.01, 0.01]))

    (raised,) = (change for change in changes if change.kind == "raised" and change.code == "kl_exploding")
    assert (raised.step, raised.first_step) == (steps_before + 2, steps_before + 1)
    assert (raised.value, raised.threshold) == (None, None)
    assert ("kl_exploding", steps_before + 5) in codes(changes, "cleared")


def test_a_gradient_norm_that_is_no_number_is_said_once() -> None:
    assert codes(run(("actor/grad_norm", [*noisy(0.5, 20), *[INF] * 5]))) == [("loss_not_finite", 21)]


def test_a_kl_that_grows_slowly_is_fine() -> None:
    rising = [0.02 * 1.05**step for step in range(80)]

    assert run(("actor/kl_loss", rising[:79])) == []
    assert run(("actor/ppo_kl", [*noisy(0.001, 20), *[0.4] * 5])) == []


def test_a_kl_alarm_holds_until_the_kl_is_well_below_its_bound() -> None:
    changes = run(("actor/ppo_kl", [*[0.01] * 10, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2]))

    assert codes(changes, "seen") == [("kl_exploding", step) for step in (13, 14, 15)]
    assert codes(changes, "cleared") == [("kl_exploding", 18)]


def test_a_collapsed_entropy_is_seen() -> None:
    changes = run(("actor/entropy", [*noisy(0.6, 10), 0.3, 0.1, *[0.01] * 5]))

    assert codes(changes) == [("entropy_collapse", 17)]
    assert changes[0].threshold == pytest.approx(0.05)


@pytest.mark.parametrize("steps_before", [1, 2, 3, 7, 8])
def test_an_entropy_that_collapses_within_the_first_steps_is_seen(steps_before: int) -> None:
    """What a far too high learning rate does, from the first update on."""
    changes = run(("actor/entropy", [*[0.6] * steps_before, *[0.001] * 30]))

    assert codes(changes) == [("entropy_collapse", steps_before + 5)]
    assert (changes[0].first_step, changes[0].threshold) == (steps_before + 1, 0.05)
    assert codes(changes, "cleared") == []


def test_an_entropy_that_falls_step_by_step_from_the_first_update_on_is_seen() -> None:
    falling = [0.6 * 0.6**step for step in range(20)]

    ((code, step),) = codes(run(("actor/entropy", falling)))

    assert code == "entropy_collapse"
    assert falling[step - 6] >= 0.05 > falling[step - 5]


def test_an_entropy_that_rises_first_is_held_against_where_it_rose_to() -> None:
    rising = [0.02, 0.05, 0.1, 0.3, *noisy(0.6, 20)]

    assert run(("actor/entropy", rising)) == []
    assert codes(run(("actor/entropy", [*rising, *[0.01] * 5]))) == [("entropy_collapse", 29)]


@pytest.mark.parametrize("level", [1.0, 0.3, 0.1, 0.07, 0.05, 0.03, 0.01, 0.001])
def test_an_entropy_that_only_scatters_is_fine(level: float) -> None:
    """By a factor of two and more from step to step, as where batches are small."""
    for seed in range(20):
        numbers = random.Random(seed)
        curve = [level * math.exp(numbers.gauss(0, 0.5)) for _ in range(200)]
        assert run(("actor/entropy", curve)) == []


def test_an_entropy_that_is_low_from_the_start_or_falls_a_little_is_fine() -> None:
    assert run(("actor/entropy", noisy(0.02, 50))) == []
    assert run(("actor/entropy", [*noisy(0.6, 10), *[0.07] * 20])) == []
    assert run(("actor/entropy", [*noisy(0.6, 10), *[0.01] * 4, 0.2, *[0.01] * 4])) == []


def test_rewards_that_are_all_zero_are_seen_and_clear_with_the_first_point() -> None:
    changes = scores([0.0] * 6 + [1.0], [0.0] * 7)

    assert codes(changes) == [("rewards_all_zero", 5)]
    assert codes(changes, "cleared") == [("rewards_all_zero", 7)]


def test_a_single_reward_in_five_steps_is_enough() -> None:
    assert scores([0.0, 0.0, 0.0, 0.0, 1.0] * 4, [0.0] * 20) == []
    assert scores([0.0] * 20, [-0.5] * 20) == []


def test_rewards_that_are_all_equal_are_seen() -> None:
    assert codes(scores([1.0] * 5, [1.0] * 5)) == [("rewards_all_equal", 5)]
    assert codes(scores([-0.5] * 5, [-0.5] * 5)) == [("rewards_all_equal", 5)]
    assert scores([1.0] * 20, [0.9] * 20) == []


def test_uniform_groups_are_seen_once() -> None:
    fractions = ("training/uniform_group_fraction", [1.0] * 5)
    mixed = run(fractions, ("critic/score/max", [1.0] * 5), ("critic/score/min", [0.0] * 5))
    zero = run(fractions, ("critic/score/max", [0.0] * 5), ("critic/score/min", [0.0] * 5))
    most = run(("training/uniform_group_fraction", [0.95] * 20))

    assert codes(mixed) == [("rewards_all_equal", 5)]
    assert codes(zero) == [("rewards_all_zero", 5)]
    assert most == []


@pytest.mark.parametrize("key", ["training/rollout_importance_weight_mean", "rollout_corr/rollout_is_mean"])
@pytest.mark.parametrize(("weight", "is_wrong"), [(0.4, True), (2.5, True), (0.5, False), (2.0, False)])
def test_importance_weights_far_from_one_are_a_mismatch(key: str, weight: float, is_wrong: bool) -> None:
    changes = run((key, [1.0, weight, weight]))

    assert codes(changes) == ([("rollout_mismatch", 3)] if is_wrong else [])


def test_uncorrelated_probabilities_are_a_mismatch_only_where_they_differ() -> None:
    correlation = ("training/rollout_actor_probs_pearson_corr", [0.99, 0.5, 0.5, 0.5])
    large = run(correlation, ("training/rollout_probs_diff_mean", [0.001, 0.1, 0.1, 0.1]))
    tiny = run(correlation, ("training/rollout_probs_diff_mean", [0.001] * 4))

    assert codes(large) == [("rollout_mismatch", 4)]
    assert tiny == []


def test_truncated_responses_are_seen() -> None:
    assert codes(run(("response_length/clip_ratio", [0.95] * 5))) == [("responses_truncated", 5)]
    assert run(("response_length/clip_ratio", [0.85] * 20)) == []


def test_failing_sessions_of_an_agent_are_seen() -> None:
    assert codes(run(("agent/workflow_error/mean", [0.1, 0.36, 0.3]))) == [("sessions_failing", 3)]
    assert run(("agent/workflow_error/mean", [0.15, 0.3, 0.15, 0.3])) == []


def test_a_rising_validation_loss_is_seen() -> None:
    assert codes(run(("val/loss", [2.0, 1.0, 1.06, 1.1, 1.2]))) == [("validation_worse", 5)]
    assert run(("val/loss", [2.0, 1.0, 1.04, 1.04, 1.04, 1.04])) == []
    assert run(("val/loss", [2.0, 1.0, 1.2, 1.2, 0.9, 1.2, 1.2])) == []


def test_a_healthy_run_raises_nothing() -> None:
    steps = 300
    fall = [0.7 * math.exp(-step / 150) + 0.1 for step in range(steps)]
    curves = {
        "actor/pg_loss": [value - 0.5 for value in noisy(0.5, steps, 0.9)],
        "actor/grad_norm": noisy(0.4, steps, 0.9),
        "actor/ppo_kl": noisy(0.004, steps, 0.9),
        "actor/kl_loss": [0.001 + 0.0005 * step for step in range(steps)],
        "actor/entropy": fall,
        "critic/score/max": [1.0] * steps,
        "critic/score/min": [0.0] * steps,
        "training/rollout_importance_weight_mean": noisy(1.0, steps, 0.2),
        "training/rollout_actor_probs_pearson_corr": noisy(0.995, steps, 0.004),
        "training/rollout_probs_diff_mean": noisy(0.004, steps),
        "response_length/clip_ratio": noisy(0.3, steps, 0.9),
        "response_length/mean": [100.0 + step for step in range(steps)],
        "training/length_score_correlation": noisy(0.1, steps, 0.9),
        "training/repeated_ngram_fraction": noisy(0.2, steps, 0.5),
        "training/format_only_fraction": [max(0.0, 0.9 - 0.03 * step) for step in range(steps)],
        "train/loss": fall,
        "val/loss": fall,
    }

    assert run(*curves.items()) == []


def test_responses_that_grow_because_length_is_paid_are_seen() -> None:
    growing = [*[100.0] * 8, *[130.0] * 6]
    paid = run(("response_length/mean", growing), ("training/length_score_correlation", [0.6] * 14))
    free = run(("response_length/mean", growing), ("training/length_score_correlation", [0.2] * 14))
    steady = run(("response_length/mean", [100.0] * 14), ("training/length_score_correlation", [0.9] * 14))

    assert codes(paid) == [("reward_follows_length", 13)]
    assert (paid[0].metric, paid[0].threshold) == ("response_length/mean", 125.0)
    assert free == steady == run(("response_length/mean", growing)) == []


def test_a_score_that_rises_while_answers_get_worse_is_seen() -> None:
    score = [*[0.4] * 8, *[0.6] * 12]
    answers = [*[0.4] * 8, *[0.2] * 12]

    # The score's own recent values tell that it has risen; then five steps in a row.
    (raised,) = codes(run(("critic/score/mean", score), ("training/answer_reward_mean", answers)))
    assert raised[0] == "reward_parts_diverging"
    assert run(("critic/score/mean", [0.4] * 20), ("training/answer_reward_mean", answers)) == []
    assert run(("critic/score/mean", score), ("training/answer_reward_mean", score)) == []


def test_responses_that_begin_to_loop_are_seen() -> None:
    key = "training/repeated_ngram_fraction"

    assert codes(run((key, [*[0.1] * 8, 0.5, 0.6, 0.7]))) == [("responses_repeat", 11)]
    assert run((key, noisy(0.3, 40))) == []


def held_out(score: Sequence[float], accuracy: Sequence[float]) -> list[Change]:
    """A run that validates every fifth step."""
    steps = [
        (step, {"critic/score/mean": value, **_validated(step, accuracy)}) for step, value in enumerate(score)
    ]
    return observe(Watch(), steps)


def _validated(step: int, accuracy: Sequence[float]) -> dict[str, float]:
    return {} if step % 5 else {"val-core/sums/acc/mean@1": accuracy[step // 5]}


def test_a_reward_that_rises_without_the_held_out_result_is_seen() -> None:
    rising = [0.2 + 0.02 * step for step in range(36)]

    assert codes(held_out(rising, [0.2] * 8)) == [("reward_without_progress", 30)]
    assert held_out(rising, [0.2 + 0.09 * place for place in range(8)]) == []
    assert held_out([0.5] * 36, [0.2] * 8) == []
    assert held_out(rising, [0.99] * 8) == []


def test_responses_that_are_paid_for_their_format_alone_are_seen() -> None:
    key = "training/format_only_fraction"

    assert codes(run((key, [0.9] * 8))) == [("format_only", 8)]
    assert run((key, [0.9] * 7 + [0.3])) == []


@pytest.mark.parametrize("trick", ["empty", "format_only", "wrong"])
def test_a_trick_that_earns_as_much_as_the_policy_is_seen(trick: str) -> None:
    key, own = f"probe/{trick}/mean", "probe/rollouts/mean"

    assert codes(run((key, [0.4, 0.4]), (own, [0.45, 0.45]))) == [("probe_earns", 2)]
    assert run((key, [0.1, 0.1]), (own, [0.45, 0.45])) == []
    assert run((key, [0.0, 0.0]), (own, [0.0, 0.0])) == []


def test_a_response_that_earns_more_three_times_over_is_seen() -> None:
    own = ("probe/rollouts/mean", [0.5, 0.5])

    assert codes(run(("probe/repeated/mean", [0.6, 0.6]), own)) == [("probe_earns", 2)]
    assert run(("probe/repeated/mean", [0.5, 0.5]), ("probe/truncated/mean", [0.5, 0.5]), own) == []


def test_every_alarm_has_texts_and_a_severity_and_nothing_else_has() -> None:
    others = {"stalled", "not_placed", "other_platform"}
    assert set(TEXTS) == set(SEVERITIES) == {rule.code for rule in RULES} | others
    for texts in TEXTS.values():
        assert all([texts.title.en, texts.title.zh, texts.advice.en, texts.advice.zh])


@pytest.mark.parametrize("code", ["kl_exploding", "rollout_mismatch"])
def test_alarms_of_values_that_may_be_no_numbers_say_what_that_means(code: str) -> None:
    advice = TEXTS[code].advice

    assert "NaN or infinite" in advice.en
    assert "NaN 或无穷大" in advice.zh
