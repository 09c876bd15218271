"""Which rollouts are shown, and what an event says of them."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trellis_contracts.events import Split
from trellis_train.hooks import rollouts
from trellis_train.hooks.rollouts import choose_keys, clip_text, collect_rollouts


class Tokenizer:
    def decode(self, ids: torch.Tensor, skip_special_tokens: bool) -> str:
        return " ".join(str(int(token)) for token in ids)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """A TransferQueue of rows by key."""
    import transfer_queue

    rows: dict[str, dict[str, Any]] = {}

    def kv_batch_get(*, keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, Any]:
        assert partition_id in ("train", "val")
        return {name: [rows[key][name] for key in keys] for name in select_fields if name in rows[keys[0]]}

    monkeypatch.setattr(transfer_queue, "kv_batch_get", kv_batch_get)
    return rows


def make_row(response: list[int], score: float, **more: Any) -> dict[str, Any]:
    return {
        "prompts": torch.tensor([1, 2]),
        "responses": torch.tensor(response),
        "rm_scores": torch.tensor([0.0] * (len(response) - 1) + [score]),
        "response_mask": torch.ones(len(response), dtype=torch.long),
        "advantages": torch.full((len(response),), 0.5),
        "reward_model": {"ground_truth": "3"},
        "extra_fields": {
            "reward_extra_info": {
                "score": score,
                "exact": 1.0,
                "note": "text",
                "overlong": torch.tensor(-0.1),
            }
        },
        **more,
    }


def collect(
    keys: list[str], tags: list[dict[str, Any]] | None = None, split: Split = "train"
) -> list[rollouts.Rollout]:
    partition = "train" if split == "train" else "val"
    batch = SimpleNamespace(keys=keys, tags=tags or [{} for _ in keys], partition_id=partition)
    event = collect_rollouts(batch=batch, tokenizer=Tokenizer(), step=7, split=split, max_response_tokens=3)
    assert event.step == 7
    return event.rollouts


def test_what_an_agent_reports_of_its_reward_is_shown_with_the_response(queue: dict[str, Any]) -> None:
    fields = {"reward_extra_info": {"score": 0.5, "branches": 1.0}, "reward_parts": {"correct": 1.0}}
    queue["a_0_0"] = make_row([5], score=0.5, extra_fields=fields)

    (rollout,) = collect(["a_0_0"])

    assert rollout.reward_parts == {"branches": 1.0, "correct": 1.0}


def test_a_part_named_like_a_reported_number_does_not_replace_it(queue: dict[str, Any]) -> None:
    fields = {
        "reward_extra_info": {"score": 0.5, "recall": 0.8, "branches": 1.0},
        "reward_parts": {"recall": 0.24, "branches": 7.0, "score": 9.0, "style": 1.0},
    }
    queue["a_0_0"] = make_row([5], score=0.5, extra_fields=fields)

    (rollout,) = collect(["a_0_0"])

    assert rollout.reward_parts == {"recall": 0.8, "branches": 1.0, "style": 1.0}
    assert rollout.score == 0.5


def test_probes_are_made_of_the_best_response_to_each_prompt_whole(
    queue: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "MIN_TEXT_CHARS", 10)
    monkeypatch.setattr(rollouts, "MAX_EVENT_CHARS", 10)
    long = [7] * 50
    rows = {"raw_prompt": [{"role": "user", "content": "hard?"}], "extra_info": {"tools": ["a"]}}
    queue["a_0_0"] = make_row([5], score=0.1, data_source="sums", **rows)
    queue["a_1_0"] = make_row(long, score=0.9, data_source="sums", **rows)
    queue["b_0_0"] = make_row([5], score=0.2, extra_fields={"trajectory": {}}, data_source="sums", **rows)
    batch = SimpleNamespace(keys=list(queue), tags=[{} for _ in queue], partition_id="train")
    monkeypatch.setattr(rollouts, "_choose_episodes", lambda *args: set())
    found: list[Any] = []

    event = collect_rollouts(
        batch=batch, tokenizer=Tokenizer(), step=10, split="train", max_response_tokens=99, probe=found.extend
    )

    (best,) = found
    assert best.response == " ".join("7" * 50)
    assert len(event.rollouts[1].response) < len(best.response)
    assert (best.messages, best.answer, best.tokens) == (rows["raw_prompt"], "3", 50)
    assert best.row == {"tools": ["a"], "data_source": "sums"}
    assert best.earned["exact"] == 1.0


def test_a_probe_that_fails_takes_no_rollouts_with_it(queue: dict[str, Any]) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no")

    queue["a_0_0"] = make_row([5], score=0.5)
    batch = SimpleNamespace(keys=["a_0_0"], tags=[{}], partition_id="train")

    event = collect_rollouts(
        batch=batch, tokenizer=Tokenizer(), step=10, split="train", max_response_tokens=3, probe=fail
    )

    assert len(event.rollouts) == 1


def test_all_responses_to_a_prompt_are_shown_together() -> None:
    keys = ["b_1_0", "a_0_0", "b_0_0", "a_1_0"]

    assert [sample.key for sample in choose_keys(keys)] == ["b_0_0", "b_1_0", "a_0_0", "a_1_0"]


def test_prompts_beyond_the_bound_are_left_out_evenly() -> None:
    keys = [f"p{number}_0_0" for number in range(32)]

    assert [sample.uid for sample in choose_keys(keys, max_groups=4)] == ["p0", "p8", "p16", "p24"]


def test_of_several_outputs_of_a_session_the_last_counts() -> None:
    assert [sample.key for sample in choose_keys(["a_0_0", "a_0_1", "a_0_2"])] == ["a_0_2"]


def test_validation_shows_the_same_prompts_at_every_step_whatever_verl_calls_them(
    queue: dict[str, Any],
) -> None:
    names = [[f"{step}{number}-x" for number in range(20)] for step in range(2)]
    shown = []
    for step in names:
        for number, name in enumerate(step):
            queue[f"{name}_0_0"] = make_row([5, 6], score=0.1, prompts=torch.tensor([1, number]))
        # Answered in another order.
        keys = [f"{name}_0_0" for name in (step if step is names[0] else step[::-1])]
        shown.append([rollout.prompt for rollout in collect(keys, split="validation")])

    assert len(shown[0]) == rollouts.MAX_GROUPS
    assert shown[0] == shown[1]


def test_prompts_that_are_wanted_are_shown_beside_those_that_are_spread_over_the_batch() -> None:
    keys = [f"p{number}_0_0" for number in range(32)]

    shown = [sample.uid for sample in choose_keys(keys, max_groups=4, wanted={"p31", "p30"})]

    assert shown == ["p0", "p15", "p30", "p31"]


def test_half_of_the_training_prompts_are_the_same_in_every_epoch(queue: dict[str, Any]) -> None:
    shown = []
    for epoch in range(2):
        prompts = range(32) if epoch == 0 else reversed(range(32))
        keys = [f"{epoch}-{place}_0_0" for place in range(32)]
        for key, prompt in zip(keys, prompts, strict=True):
            queue[key] = make_row([5], score=0.0, prompts=torch.tensor([1, prompt]))
        shown.append({rollout.prompt_key for rollout in collect(keys)})

    assert [len(keys) for keys in shown] == [rollouts.MAX_GROUPS] * 2
    assert len(shown[0] & shown[1]) >= rollouts.FOLLOWED_GROUPS


def test_the_conversation_is_told_once_for_each_prompt(queue: dict[str, Any]) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 2?"}]
    for key in ("a_0_0", "a_1_0", "b_0_0"):
        queue[key] = make_row([5], score=0.0, raw_prompt=turns)
    queue["b_0_0"]["raw_prompt"] = [{"role": "user", "content": [{"type": "image"}]}]

    told = collect(["a_0_0", "a_1_0", "b_0_0"])

    assert [message.model_dump() for message in told[0].messages or []] == turns
    assert [rollout.messages for rollout in told[1:]] == [None, None]


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    clipped = clip_text("begin" + "x" * 1000 + "end", 20)

    assert clipped.startswith("begin")
    assert clipped.endswith("end")
    assert "[988 characters]" in clipped


def test_a_rollout_tells_its_score_its_parts_and_its_advantage(queue: dict[str, Any]) -> None:
    queue["a_0_0"] = make_row([5, 6], score=0.1)

    (rollout,) = collect(["a_0_0"])

    assert rollout.group == "a"
    assert (rollout.prompt, rollout.response, rollout.ground_truth) == ("1 2", "5 6", "3")
    assert (rollout.score, rollout.advantage) == (0.1, 0.5)
    assert rollout.reward_parts == {"exact": 1.0, "overlong": -0.1}
    assert (rollout.response_tokens, rollout.is_truncated) == (2, False)


def test_a_response_as_long_as_allowed_was_cut(queue: dict[str, Any]) -> None:
    queue["a_0_0"] = make_row([5, 6, 7], score=0.0)

    assert collect(["a_0_0"])[0].is_truncated


def test_validation_has_no_advantages(queue: dict[str, Any]) -> None:
    row = make_row([5], score=1.0)
    del row["advantages"]
    queue["a_0_0"] = row

    assert collect(["a_0_0"])[0].advantage is None


def test_rows_that_only_fill_up_a_batch_are_not_shown(queue: dict[str, Any]) -> None:
    queue["a_0_0"] = make_row([5], score=1.0)

    shown = collect(["a_0_0", "pad_0_0"], [{}, {"is_padding": True}])

    assert [rollout.group for rollout in shown] == ["a"]


def make_episode(text: str) -> dict[str, Any]:
    turns = [{"role": "assistant", "text": text, "tokens": 3, "is_trained": True, "calls": []}]
    return {"trajectory": {"turns": turns, "stop_reason": "answered", "duration_s": 1.0}}


def test_an_episode_is_told_turn_by_turn(queue: dict[str, dict[str, Any]]) -> None:
    queue["a_0_0"] = make_row([1], 1.0, extra_fields=make_episode("I look."))

    (rollout,) = collect(["a_0_0"])

    assert rollout.trajectory is not None
    assert rollout.trajectory.turns[0].text == "I look."
    assert rollout.trajectory.stop_reason == "answered"


def test_many_long_episodes_stay_within_a_batch_of_the_shipper(queue: dict[str, dict[str, Any]]) -> None:
    keys = [f"p{prompt}_{session}_0" for prompt in range(8) for session in range(16)]
    for key in keys:
        queue[key] = make_row([1], 1.0, extra_fields=make_episode("x" * 24_000))

    shown = collect(keys)

    told = [rollout for rollout in shown if rollout.trajectory is not None]
    assert len(told) == rollouts.MAX_EPISODES
    assert {rollout.group for rollout in told} == {f"p{prompt}" for prompt in range(8)}
    assert sum(len(rollout.model_dump_json()) for rollout in shown) < 1_000_000
