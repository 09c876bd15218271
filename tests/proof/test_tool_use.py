"""Reinforcement learning on the use of tools, two steps of each algorithm (B11)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_testing.engine_runs import EngineRun, compose_job, run_engine
from trellis_testing.tool_use import ToolUse, make_tool_use

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
#: Weights that move do so by their gradients alone.
PARAMS = {
    "total_steps": 2,
    "batch_size": 8,
    "mini_batch_size": 8,
    "micro_batch_size": 8,
    "max_response_length": 48,
    "weight_decay": 0.0,
    "validate_every": 0,
    "validate_before": False,
    "save_every": 0,
}


@pytest.fixture(scope="module")
def tool_use(tmp_path_factory: pytest.TempPathFactory) -> ToolUse:
    return make_tool_use(tmp_path_factory.mktemp("tool_use"))


@pytest.fixture(scope="module")
def taught(tool_use: ToolUse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that calls now and then, so that responses to a prompt differ in what they earn."""
    run = compose_job(
        tmp_path_factory.mktemp("sft"),
        recipe="agent_sft",
        model=tool_use.model,
        rows=tool_use.rows("sft", "train", 600),
        params={"total_steps": 80, "validation_rows": 0, "batch_size": 8, "learning_rate": 5e-3},
    )
    return Path(run_engine(run).checkpoint()["hf_path"])


def train(
    folder: Path, recipe: str, model: Path, tool_use: ToolUse, ray: dict[str, str], **params: object
) -> EngineRun:
    run = compose_job(
        folder,
        recipe=recipe,
        model=model,
        rows=tool_use.rows("rl", "train", 30),
        validation=tool_use.rows("rl", "dev", 6),
        params={**PARAMS, **params},
    )
    return run_engine(run, environment=ray)


def largest_change(before: Path, after: Path) -> float:
    """Of any weight."""
    from safetensors.torch import load_file

    old, new = (load_file(folder / "model.safetensors") for folder in (before, after))
    return max(float((new[name].float() - old[name].float()).abs().max()) for name in old)


def expect_two_steps(run: EngineRun, model: Path) -> None:
    scores = run.curve("critic/score/mean")
    events = run.events("rollouts")
    parts = [rollout["reward_parts"] for event in events for rollout in event["rollouts"]]
    change = largest_change(model, Path(run.checkpoint()["hf_path"]))
    print(run.spec.recipe, "scores", scores, "largest change", change, "seconds", run.seconds)

    assert list(scores) == [1, 2]
    assert all(norm > 0 for norm in run.curve("actor/grad_norm").values())
    assert change > 1e-5
    assert parts
    assert all("tool_use" in each for each in parts)


@pytest.mark.proves("agent_ppo")
def test_ppo_trains_policy_and_critic(
    tool_use: ToolUse, join_ray: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    run = train(tmp_path / "ppo", "agent_ppo", tool_use.model, tool_use, join_ray(), group_size=1)

    expect_two_steps(run, tool_use.model)
    assert list(run.curve("critic/vf_loss")) == [1, 2]


@pytest.mark.proves("agent_grpo")
@pytest.mark.parametrize("use_advantage", [True, False], ids=["compared", "alone"])
def test_grpo_trains_the_policy(
    use_advantage: bool,
    taught: Path,
    tool_use: ToolUse,
    join_ray: Callable[[], dict[str, str]],
    tmp_path: Path,
) -> None:
    run = train(
        tmp_path / "grpo",
        "agent_grpo",
        taught,
        tool_use,
        join_ray(),
        group_size=4,
        micro_batch_size=16,
        use_advantage=use_advantage,
    )

    expect_two_steps(run, taught)
