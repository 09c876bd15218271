"""A response scored where it is gets what verl's own detour gives it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from trellis_train.rewards.verl_adapter import compute_score
from trellis_train.rollout.scoring import LocalRewardWorker, ResponseView, describe_sample

ROW = {
    "data_source": "addition",
    "reward_model": {"style": "rule", "ground_truth": "42"},
    "raw_prompt": [{"role": "user", "content": "40+2="}],
    "uid": "p",
    "session_id": 0,
}


class Tokenizer:
    """Tokens are characters' numbers."""

    def decode(self, ids: Any, *, skip_special_tokens: bool) -> str:
        return "".join(chr(int(each)) for each in ids)


def output_of(text: str) -> Any:
    return SimpleNamespace(
        prompt_ids=[1, 2], response_ids=[ord(each) for each in text], num_turns=2, extra_fields={"turns": []}
    )


def manager_of(name: str, function: Any) -> Any:
    from omegaconf import OmegaConf
    from verl.experimental.reward_loop.reward_manager.registry import get_reward_manager_cls

    overlong = {"enable": True, "len": 2, "penalty_factor": 1.0, "log": True}
    config = OmegaConf.create(
        {"reward": {"reward_kwargs": {"overlong_buffer_cfg": overlong, "max_resp_len": 3}}}
    )
    return get_reward_manager_cls(name)(config=config, tokenizer=Tokenizer(), compute_score=function)


def score_locally(name: str, text: str, function: Any = compute_score) -> Any:
    async def score() -> Any:
        manager = manager_of(name, function)
        worker = LocalRewardWorker(SimpleNamespace(reward_manager=manager, compute_score=manager.run_single))
        assert worker.scores_views
        output = output_of(text)
        return await worker.score(output, {**ROW, "extra_info": describe_sample([output], ROW)})

    return asyncio.run(score())


def score_as_verl_does(name: str, text: str, function: Any = compute_score) -> Any:
    from tensordict import TensorDict
    from verl.protocol import DataProto

    async def score() -> Any:
        output = output_of(text)
        row = {**ROW, "extra_info": describe_sample([output], ROW)}
        responses = torch.tensor([output.response_ids])
        data = DataProto(
            batch=TensorDict(
                {"responses": responses, "attention_mask": torch.ones_like(responses)}, batch_size=1
            ),
            non_tensor_batch={
                **{name: np.array([value]) for name, value in row.items()},
                "__num_turns__": np.array([output.num_turns]),
                "tool_extra_fields": np.array([output.extra_fields], dtype=object),
            },
        )
        return await manager_of(name, function).run_single(data)

    return asyncio.run(score())


@pytest.mark.parametrize("manager", ["naive", "dapo"])
@pytest.mark.parametrize("text", ["42", "41", "42 42"])
def test_scores_and_their_parts_are_those_of_verls_detour(manager: str, text: str) -> None:
    ours, theirs = score_locally(manager, text), score_as_verl_does(manager, text)

    assert float(ours["reward_score"]) == float(theirs["reward_score"])
    assert {name: float(value) for name, value in ours["reward_extra_info"].items()} == {
        name: float(value) for name, value in theirs["reward_extra_info"].items()
    }


def test_a_reward_sees_the_same_row_either_way() -> None:
    seen: list[dict[str, Any]] = []

    def note(**given: Any) -> float:
        seen.append(given)
        return 1.0

    score_locally("naive", "42", note)
    score_as_verl_does("naive", "42", note)

    ours, theirs = seen
    assert ours == theirs
    assert type(ours["extra_info"]["num_turns"]) is type(theirs["extra_info"]["num_turns"])


def test_a_view_is_one_response_however_it_is_sliced() -> None:
    view = ResponseView(output_of("ab"), ROW)

    assert view[-1:][0].batch["responses"].tolist() == [ord("a"), ord("b")]
