"""What the mask of an episode does to the policy's gradient (verl's own loss, a real model)."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.linksearch.generate import generate
from trellis_train.agents.linksearch.loop import LinkSearchLoop
from trellis_train.agents.linksearch.query_rows import query_row, read_queries

from .conftest import configure

Gradient = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linksearch")
    generate(folder, profiles=60, train=3, evaluation=1, seed=7)
    return folder


@pytest.fixture(scope="module")
def model() -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=259,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16384,
    )
    return Qwen2ForCausalLM(config)


def play(environment: Path, mode: str) -> Any:
    """An episode of three turns: a search, a read, the answer."""
    query = next(read_queries(environment / "train.jsonl"))
    tokenizer = make_tool_tokenizer()
    script = [
        render_tool_call("search_profile", {"sql": query["gold_sql"]}),
        render_tool_call("read_profile", {"linkedin_handle": query["gold_handles"][0]}),
        render_tool_call("return_results", {"results": query["gold_handles"]}),
    ]

    async def run() -> Any:
        server = ScriptedServer(tokenizer, script)
        arguments = loop_arguments(server, tokenizer, prompt_length=8000, response_length=8000)
        loop = LinkSearchLoop(**arguments, environment_path=str(environment), options={"mode": mode})
        row = query_row(query, 0)
        return await loop.run({}, raw_prompt=row.pop("prompt"), **row)

    return asyncio.run(run())


def gradient_of(model: Qwen2ForCausalLM, output: Any, observed: torch.Tensor, *, shift: bool) -> Gradient:
    """By the model's weights, of verl's policy loss; ``shift`` changes the logits of the observed tokens."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.utils.config import omega_conf_to_dataclass

    model = copy.deepcopy(model)
    actor = omega_conf_to_dataclass(configure("linksearch").actor_rollout_ref.actor)
    actor.global_batch_info.update(
        dp_size=1, batch_num_tokens=sum(output.response_mask), global_batch_size=1, loss_scale_factor=None
    )
    ids = torch.tensor([output.prompt_ids + output.response_ids])
    start = len(output.prompt_ids)
    logits = model(ids).logits[:, start - 1 : -1]
    if shift:
        noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
        logits = logits + noise * observed[None, :, None]
    new = logits.log_softmax(-1).gather(-1, ids[:, start:, None])[..., 0]
    mask = torch.tensor([output.response_mask]).bool()
    loss, _ = get_policy_loss_fn(actor.policy_loss.loss_mode)(
        old_log_prob=new.detach(),
        log_prob=new,
        advantages=torch.full(new.shape, 1.5),
        response_mask=mask,
        loss_agg_mode=actor.loss_agg_mode,
        config=actor,
        rollout_is_weights=None,
    )
    loss.backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def farthest(first: Gradient, second: Gradient) -> float:
    """Largest difference over all weights, in units of the largest gradient."""
    scale = max(float(each.abs().max()) for each in first.values())
    return max(float((first[name] - second[name]).abs().max()) for name in first) / scale


def test_link_search_learns_by_grpo() -> None:
    agent, grpo = configure("linksearch"), configure("grpo")

    for name in ("adv_estimator", "norm_adv_by_std_in_grpo", "use_kl_in_reward"):
        assert agent.algorithm[name] == grpo.algorithm[name]
    for name in ("policy_loss", "loss_agg_mode", "clip_ratio", "clip_ratio_low", "clip_ratio_high"):
        assert agent.actor_rollout_ref.actor[name] == grpo.actor_rollout_ref.actor[name]


def test_logits_of_tool_tokens_leave_the_masked_gradient_and_change_it_in_rollout_mode(
    environment: Path, model: Qwen2ForCausalLM
) -> None:
    # A5
    masked, rollout = play(environment, "masked"), play(environment, "rollout")
    assert masked.response_ids == rollout.response_ids
    observed = 1.0 - torch.tensor(masked.response_mask, dtype=torch.float32)

    def moves(output: Any) -> float:
        plain = gradient_of(model, output, observed, shift=False)
        return farthest(plain, gradient_of(model, output, observed, shift=True))

    assert moves(masked) == 0.0
    assert moves(rollout) > 0.01
