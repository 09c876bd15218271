"""Trainers are sent tensors, and batches are left as they were."""

from types import SimpleNamespace
from typing import Any

import pytest
from trellis_train.hooks.trained_columns import CALLS, COLUMNS, send_trained_columns, with_columns


class Workers:
    def __init__(self) -> None:
        self.seen: list[list[str] | None] = []

    def update_actor(self, batch: Any) -> str:
        self.seen.append(batch.fields)
        return "updated"


def trainer_of(workers: Workers, *, processor: Any = None, is_distilling: bool = False) -> Any:
    config = {"distillation": {"enabled": is_distilling}}
    return SimpleNamespace(actor_rollout_wg=workers, critic_wg=None, processor=processor, config=config)


def test_a_batch_names_the_trained_columns_while_it_is_sent_and_not_after() -> None:
    workers = Workers()
    trainer = trainer_of(workers)
    batch = SimpleNamespace(fields=["input_ids", "raw_prompt"])

    send_trained_columns(trainer)

    assert trainer.actor_rollout_wg.update_actor(batch) == "updated"
    assert workers.seen == [list(COLUMNS)]
    assert batch.fields == ["input_ids", "raw_prompt"]


def test_a_batch_is_itself_again_after_a_call_that_failed() -> None:
    def fail(batch: Any) -> None:
        raise RuntimeError("out of memory")

    batch = SimpleNamespace(fields=None)

    with pytest.raises(RuntimeError, match="out of memory"):
        with_columns(fail)(batch)
    assert batch.fields is None


@pytest.mark.parametrize("more", [{"processor": object()}, {"is_distilling": True}])
def test_media_and_what_a_teacher_said_travel_as_verl_sends_them(more: dict[str, Any]) -> None:
    workers = Workers()
    batch = SimpleNamespace(fields=["pixels"])
    trainer = trainer_of(workers, **more)

    send_trained_columns(trainer)
    trainer.actor_rollout_wg.update_actor(batch)

    assert workers.seen == [["pixels"]]


def test_verls_trainer_still_has_every_call() -> None:
    import inspect

    from verl.trainer.ppo.v1 import trainer_base

    source = inspect.getsource(trainer_base)

    for group, method in CALLS:
        assert f"self.{group}.{method}(batch)" in source
