"""Groups without spread: their share, whether they are right or wrong, and the tokens spent on them."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trellis_train.hooks.group_metrics import measure_groups
from trellis_train.hooks.step_responses import StepResponses, read_step

Member = tuple[str, float, int, float | None]


def make_step(members: Sequence[Member]) -> StepResponses:
    """Responses of (group, score, tokens, accuracy)."""
    return StepResponses(
        groups=[group for group, *_ in members],
        scores=[score for _, score, *_ in members],
        tokens=[torch.arange(count) for _, _, count, _ in members],
        written=[count for _, _, count, _ in members],
        infos=[{} if accuracy is None else {"acc": accuracy} for *_, accuracy in members],
    )


def test_groups_without_spread_are_counted_with_what_was_spent_on_them() -> None:
    step = make_step(
        [
            *[("a", 1.1, 10, 1.0), ("a", 1.1, 10, 1.0), ("b", 0.1, 30, 0.0), ("b", 0.1, 30, 0.0)],
            *[("c", 1.1, 5, 1.0), ("c", 0.1, 5, 0.0), ("d", 0.0, 5, 0.0), ("d", 0.1, 5, 0.0)],
        ]
    )

    assert measure_groups(step) == {
        "training/uniform_group_fraction": 0.5,
        "training/uniform_group_token_fraction": 0.8,
        "training/all_correct_group_fraction": 0.25,
        "training/all_wrong_group_fraction": 0.25,
    }


def test_right_and_wrong_are_not_guessed_where_rewards_do_not_say() -> None:
    found = measure_groups(make_step([("a", 1.0, 4, 1.0), ("a", 1.0, 4, None)]))

    assert set(found) == {"training/uniform_group_fraction", "training/uniform_group_token_fraction"}


def test_a_group_of_one_is_no_group() -> None:
    assert measure_groups(make_step([("a", 0.0, 4, 0.0), ("b", 1.0, 4, 1.0)])) == {}


def test_a_step_is_read_without_the_rows_that_fill_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import transfer_queue

    info: Mapping[str, Any] = {"score": 1.0, "acc": torch.tensor(1.0), "note": "text"}
    columns = {
        "responses": torch.nested.as_nested_tensor([torch.tensor([5, 6, 7])], layout=torch.jagged),
        "response_mask": torch.nested.as_nested_tensor([torch.tensor([1, 0, 1])], layout=torch.jagged),
        "rm_scores": torch.nested.as_nested_tensor([torch.tensor([0.0, 0.0, 1.0])], layout=torch.jagged),
        "extra_fields": [SimpleNamespace(data={"reward_extra_info": info})],
    }
    monkeypatch.setattr(
        transfer_queue, "kv_batch_get", lambda *, keys, **_: columns if keys == ["a_0_0"] else {}
    )
    batch = SimpleNamespace(keys=["a_0_0", "x_0_0"], tags=[{}, {"is_padding": True}], partition_id="train")

    step = read_step(batch)

    assert (step.groups, step.scores, step.written) == (["a"], [1.0], [2])
    assert step.tokens[0].tolist() == [5, 6, 7]
    assert step.infos == [{"score": 1.0, "acc": 1.0}]
