"""What is kept of tokens: which steps, which responses, which values; on tensors as the queue holds them."""

import math
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trellis_contracts.events import MAX_TRACED_TOKENS
from trellis_train.hooks import token_traces
from trellis_train.hooks.rollouts import collect_rollouts
from trellis_train.hooks.token_traces import (
    CurveWatch,
    Extreme,
    TokenTexts,
    TokenTracer,
    TokenTracing,
    TraceSchedule,
    choose_traced,
    find_extreme,
    find_extremes,
    trace,
)


class Tokenizer:
    """Tokens are bytes of UTF-8."""

    def __init__(self) -> None:
        self.calls = 0

    def decode(self, ids: Any, skip_special_tokens: bool) -> str:
        self.calls += 1
        return bytes(int(token) for token in ids).decode(errors="replace")


def nested(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def make_row(count: int = 4, **more: Any) -> dict[str, torch.Tensor]:
    return {
        "responses": torch.full((count,), ord("a")),
        "response_mask": torch.ones(count, dtype=torch.long),
        "old_log_probs": torch.full((count,), -1.0),
        "rollout_log_probs": torch.full((count,), -1.5),
        "ref_log_prob": torch.full((count,), -1.0 + math.log(2)),
        "entropy": torch.full((count,), 0.25),
        "advantages": torch.full((count,), 0.5),
        **more,
    }


def test_every_token_has_what_was_measured_of_it() -> None:
    kept = trace(make_row(), TokenTexts(Tokenizer()), has_trainer_log_probs=True)

    assert (kept.first, kept.texts) == (0, ["a"] * 4)
    assert kept.log_prob == [-1.0] * 4
    assert kept.entropy == [0.25] * 4
    assert kept.advantage == [0.5] * 4
    assert kept.difference == [0.5] * 4
    assert kept.kl == pytest.approx([1 - math.log(2)] * 4, abs=1e-3)


def test_what_a_run_does_not_measure_is_not_made_up() -> None:
    row = make_row()
    for name in ("ref_log_prob", "entropy"):
        del row[name]

    kept = trace(row, TokenTexts(Tokenizer()), has_trainer_log_probs=False)

    assert (kept.kl, kept.entropy, kept.difference) == (None, None, None)


def test_tokens_of_tools_and_values_that_are_no_numbers_have_no_value() -> None:
    row = make_row(
        response_mask=torch.tensor([1, 0, 1, 1]), entropy=torch.tensor([0.1, math.nan, math.inf, 0.2])
    )

    kept = trace(row, TokenTexts(Tokenizer()), has_trainer_log_probs=True)

    assert kept.entropy == [0.1, None, None, 0.2]
    assert kept.log_prob == [-1.0, None, -1.0, -1.0]
    assert kept.not_finite == [2]


def test_of_a_long_response_what_is_around_its_extreme_token_is_kept() -> None:
    count = 4 * MAX_TRACED_TOKENS
    old = torch.full((count,), -1.5)
    old[700] = -9.0

    kept = trace(make_row(count, old_log_probs=old), TokenTexts(Tokenizer()), has_trainer_log_probs=True)

    assert len(kept.texts) == MAX_TRACED_TOKENS
    assert kept.log_prob is not None
    assert kept.first + kept.log_prob.index(-9.0) == 700


def test_a_character_of_several_tokens_stands_at_the_last_of_them() -> None:
    tokenizer = Tokenizer()
    texts = TokenTexts(tokenizer)

    assert texts.split(list("é中!".encode())) == ["", "é", "", "", "中", "!"]
    assert texts.split([0xFF, 0xFF, 0xFF, 0xFF, ord("x")]) == ["", "", "", "\ufffd" * 4, "x"]
    before = tokenizer.calls
    assert texts.split(list("!é".encode())) == ["!", "", "é"]
    assert tokenizer.calls == before


def test_the_extreme_token_leads_to_its_response() -> None:
    trainer = [torch.tensor([-1.0, -1.0]), torch.tensor([-1.0, -4.0, -1.0]), torch.tensor([-1.0])]
    engine = [torch.full((len(row),), -1.0) for row in trainer]
    masks = [torch.ones(len(row), dtype=torch.long) for row in trainer]

    assert find_extreme(["a", "b", "c"], trainer, engine, masks) == Extreme("b", 3.0)
    masks[1][1] = 0
    trainer[2][0] = math.nan
    assert find_extreme(["a", "b", "c"], trainer, engine, masks) == Extreme("c", math.inf)
    assert find_extreme(["a"], trainer[:1], engine[:1], [torch.zeros(2)]) is None


def test_extreme_best_and_worst_responses_are_kept() -> None:
    scores = {f"r{place}": float(place) for place in range(8)}

    assert choose_traced(list(scores), scores, [Extreme("r3", 1.0)]) == ["r3", "r7", "r0", "r6"]
    assert choose_traced(list(scores), scores, [Extreme("r3", 1.0), Extreme("r2", 2.0, "kl")]) == [
        "r3",
        "r2",
        "r7",
        "r0",
    ]
    assert choose_traced(["r1"], scores, [Extreme("gone", 1.0)]) == ["r1"]


def test_tokens_of_few_steps_are_kept_however_long_the_run() -> None:
    schedule = TraceSchedule()
    kept = [step for step in range(1, 10_001) if schedule.is_due(step, 10_000, Extreme("a", 0.1))]

    assert len(kept) == token_traces.MAX_TRACED_STEPS
    assert all(TraceSchedule().is_due(step, 40, None) for step in range(1, 41))


def test_a_step_that_stands_out_is_kept_up_to_a_bound() -> None:
    schedule = TraceSchedule()
    kept = [
        step
        for step in range(1, 4001)
        if schedule.is_due(step, 1_000_000, Extreme("a", 2.0 if step % 20 == 19 else 0.1))
    ]

    assert kept[:2] == [19, 39]
    assert len(kept) == token_traces.MAX_SPIKES


def curve(*values: float, name: str = "actor/kl_loss") -> list[list[str]]:
    """What stands out at each step of a curve."""
    watched = CurveWatch()
    return [watched.find_spikes({name: value}) for value in values]


@pytest.mark.parametrize(
    ("name", "usual", "wrong", "measure"),
    [
        ("actor/kl_loss", 0.02, 0.2, "kl"),
        ("actor/entropy", 0.5, 1.2, "entropy"),
        ("actor/entropy", 0.5, 0.05, "entropy"),
        ("critic/advantages/max", 1.5, 4.0, "advantage"),
        ("critic/advantages/min", -1.5, -4.0, "advantage"),
        ("actor/grad_norm", 0.4, 3.0, "advantage"),
        ("actor/entropy", 0.5, math.nan, "entropy"),
    ],
)
def test_a_curve_that_leaves_its_usual_range_stands_out(
    name: str, usual: float, wrong: float, measure: str
) -> None:
    before = [usual * (1 + 0.02 * (place % 3)) for place in range(10)]

    found = curve(*before, wrong, usual, name=name)

    assert found == [[]] * 10 + [[measure], []]


def test_a_curve_that_moves_slowly_or_only_scatters_does_not_stand_out() -> None:
    noise = random.Random(0)
    falling = [0.7 * math.exp(-step / 60) for step in range(300)]
    scattered = [0.4 * math.exp(noise.gauss(0, 0.3)) for _ in range(2000)]

    assert not any(curve(*falling, name="actor/entropy"))
    assert sum(map(bool, curve(*scattered, name="actor/grad_norm"))) < 40
    assert not any(curve(*[0.0] * 20, 1e-4))
    assert not any(curve(*[1.0, 50.0] * 3))


def test_the_drift_within_an_update_leads_to_no_tokens() -> None:
    assert not any(curve(*[0.001] * 20, 0.5, name="actor/ppo_kl"))


def test_a_curve_that_is_no_number_stands_out_once() -> None:
    found = curve(*[0.5] * 3, math.nan, math.nan, math.inf, 0.5, math.nan, name="actor/entropy")

    assert [bool(each) for each in found] == [False, False, False, True, False, False, False, True]


def test_each_measure_and_the_difference_have_a_bound_of_their_own() -> None:
    schedule = TraceSchedule()
    kept: dict[str, list[int]] = {"kl": [], "entropy": [], "difference": []}
    for step in range(1, 4001):
        kind = {4: "kl", 9: "entropy", 19: "difference"}.get(step % 20)
        spikes = [kind] if kind in ("kl", "entropy") else []
        wanted = schedule.list_wanted(step, 1_000_000, spikes)
        behind = [Extreme("k", 1.0, measure) for measure in wanted]
        extreme = Extreme("a", 2.0 if kind == "difference" else 0.1)
        if schedule.is_due(step, 1_000_000, extreme, behind) and kind is not None:
            kept[kind].append(step)

    assert kept["kl"] == [4 + 20 * place for place in range(token_traces.MAX_CURVE_SPIKES)]
    assert kept["entropy"] == [9 + 20 * place for place in range(token_traces.MAX_CURVE_SPIKES)]
    assert len(kept["difference"]) == token_traces.MAX_SPIKES


def test_a_spike_without_a_response_behind_it_makes_no_step_worth_keeping() -> None:
    tracer = TokenTracer(Tokenizer())
    asked: list[Sequence[str]] = []

    def find(measures: Sequence[str]) -> list[Extreme]:
        asked.append(measures)
        return []

    planned = [
        tracer.plan(
            step,
            1_000_000,
            None,
            {"actor/entropy": 5.0 if step % 20 == 0 else 0.5},
            find,
            has_trainer_log_probs=True,
        )
        for step in range(1, 1001)
    ]

    assert not any(planned)
    # Looking for it reads the whole batch.
    assert asked == [["entropy"]] * token_traces.MAX_CURVE_SPIKES


def plan_steps(found: list[Sequence[str]]) -> list[TokenTracing | None]:
    """What is planned for steps of which the last has a spike in KL and entropy."""
    tracer = TokenTracer(Tokenizer())

    def find(measures: Sequence[str]) -> list[Extreme]:
        found.append(measures)
        return [Extreme("k", 1.0, "kl")]

    return [
        tracer.plan(
            step,
            1_000_000,
            Extreme("d", 0.1),
            {
                "actor/kl_loss": 0.5 if step == 20 else 0.02,
                "actor/entropy": 5.0 if step == 20 else 0.5,
                "text": "x",
            },
            find,
            has_trainer_log_probs=True,
        )
        for step in range(1, 21)
    ]


def test_responses_behind_a_spike_are_looked_for_at_its_step_only() -> None:
    asked: list[Sequence[str]] = []

    *others, last = plan_steps(asked)

    assert others == [None] * 19
    assert asked == [["kl", "entropy"]]
    assert last is not None
    assert [extreme.key for extreme in last.extremes] == ["k", "d"]


def test_the_response_behind_a_spike_is_the_one_with_the_largest_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import transfer_queue

    tool = torch.tensor([0, 0, 1, 1])
    rows = {
        "a_0_0": make_row(),
        "b_0_0": make_row(entropy=torch.tensor([0.0, 0.0, 2.0, 2.0]), response_mask=tool),
        "c_0_0": make_row(entropy=torch.tensor([9.0, 9.0, 0.0, 0.0]), response_mask=tool),
        "d_0_0": make_row(
            ref_log_prob=torch.tensor([-1.0, -4.0, -4.0, -1.0]), advantages=torch.full((4,), -2.0)
        ),
        "e_0_0": make_row(entropy=torch.full((4,), 50.0)),
        "e_0_1": make_row(),
    }

    def kv_batch_get(*, keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, Any]:
        return {
            name: nested([rows[key][name] for key in keys]) for name in select_fields if name in rows["a_0_0"]
        }

    monkeypatch.setattr(transfer_queue, "kv_batch_get", kv_batch_get)
    batch = SimpleNamespace(keys=list(rows), tags=[{} for _ in rows], partition_id="train")

    found = find_extremes(batch, ["kl", "entropy", "advantage"])

    assert [(each.key, each.measure) for each in found] == [
        ("d_0_0", "kl"), ("b_0_0", "entropy"), ("d_0_0", "advantage")
    ]  # fmt: skip
    rows["c_0_0"]["entropy"] = torch.tensor([0.0, 0.0, math.nan, 0.0])
    assert find_extremes(batch, ["entropy"]) == [Extreme("c_0_0", math.inf, "entropy")]
    for row in rows.values():
        del row["ref_log_prob"]
    assert find_extremes(batch, ["kl"]) == []


def test_of_a_long_response_what_is_around_the_token_behind_the_spike_is_kept() -> None:
    count = 4 * MAX_TRACED_TOKENS
    old, entropy = torch.full((count,), -1.5), torch.full((count,), 0.25)
    old[700], entropy[100] = -9.0, 4.0
    row = make_row(count, old_log_probs=old, entropy=entropy)

    kept = trace(row, TokenTexts(Tokenizer()), has_trainer_log_probs=True, around="entropy")

    assert kept.entropy is not None
    assert kept.first + kept.entropy.index(4.0) == 100


def test_a_sample_has_the_tokens_of_a_few_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    import transfer_queue

    rows = {f"p{prompt}_{session}_0": make_row(3) for prompt in range(20) for session in range(2)}
    for key, row in rows.items():
        row |= {"prompts": torch.tensor([1]), "rm_scores": torch.tensor([0.0, 0.0, float(key == "p0_1_0")])}

    def kv_batch_get(*, keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, Any]:
        return {
            name: nested([rows[key][name] for key in keys]) for name in select_fields if name in rows[keys[0]]
        }

    monkeypatch.setattr(transfer_queue, "kv_batch_get", kv_batch_get)
    batch = SimpleNamespace(keys=list(rows), tags=[{} for _ in rows], partition_id="train")
    tokenizer = Tokenizer()
    tracing = TokenTracing(TokenTexts(tokenizer), True, [Extreme("p7_1_0", 3.0)])

    event = collect_rollouts(
        batch=batch, tokenizer=tokenizer, step=1, split="train", max_response_tokens=3, tracing=tracing
    )

    traced = [rollout for rollout in event.rollouts if rollout.tokens is not None]
    assert len(traced) == token_traces.MAX_TRACED
    assert "p7" in {rollout.group for rollout in traced}
    assert traced[0].tokens is not None
    assert traced[0].tokens.difference == [0.5] * 3
    assert tracing.watch.seconds > 0
