"""Training from a model's own responses: pairs of them, and two steps of each RL algorithm (B8, B11)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_contracts.hashing import hash_file
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

PAIR_STEPS, SMALLEST_MARGIN = 12, 0.1


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


@pytest.mark.proves("agent_dpo")
def test_dpo_learns_from_pairs_of_the_models_own_responses(
    taught: Path, tool_use: ToolUse, tmp_path: Path
) -> None:
    """As the pipeline's preference stage: prompts with references, responses of the supervised model."""
    run = compose_job(
        tmp_path / "dpo",
        recipe="agent_dpo",
        model=taught,
        rows=tool_use.rows("rl", "train", 60),
        params={
            "num_samples": 4,
            "max_sample_tokens": 48,
            "min_margin": SMALLEST_MARGIN,
            "total_steps": PAIR_STEPS,
            "batch_size": 8,
            "learning_rate": 5e-4,
            "validation_rows": 0,
            "validate_every": 0,
            "save_every": 0,
        },
    )
    sampled = tmp_path / "dpo" / "sampled-pairs"
    record = json.loads((sampled / "train.provenance.json").read_text())
    pairs = [json.loads(line) for line in (sampled / "train.jsonl").read_bytes().splitlines()]

    run_engine(run)

    margins = list(run.curve("rewards/margins").values())
    print(f"{record['pairs']}; margins in training {margins}; {run.seconds:.0f} s")
    assert record["model"]["sha256"] == {"model.safetensors": hash_file(taught / "model.safetensors")}
    assert (record["pairs"]["prompts"], record["sampling"]["samples"]) == (60, 4)
    assert record["pairs"]["sha256"] == hash_file(sampled / "train.jsonl")
    assert len(pairs) == record["pairs"]["pairs"] >= 8
    assert all(pair["margin"] >= SMALLEST_MARGIN for pair in pairs)
    assert len(margins) == PAIR_STEPS
    assert margins[0] == pytest.approx(0, abs=1e-4)
    assert sum(margins[-3:]) / 3 > 0.05
