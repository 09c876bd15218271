"""The tool-use pipeline under the names of its design: the settings and the reward are those that train."""

from pathlib import Path
from typing import Any

import pytest
import trellis
from trellis_recipes.tool_use_settings import RLSettings, SFTSettings, load_settings
from trellis_train.agents.episode.tool_calls import render_tool_call


def row(number: int, text: str = "hello there") -> dict[str, Any]:
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": f"answer {number}"}]
    return {"id": f"row-{number}", "messages": messages, "metadata": {"loss": number}}


def test_the_defaults_are_those_of_the_pipeline_and_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    sft = trellis.AgentSFTConfig(num_epochs=2, lora_r=8, task_weights={"planning": 1.0})
    rl = trellis.RLTrainingConfig(algorithm="grpo", grpo_config={"group_size": 8})

    read = load_settings(trellis.write_settings(tmp_path / "settings.yaml", sft=sft, rl=rl))

    assert (read.sft.epochs, read.sft.lora.r, read.sft.task_weights) == (2, 8, {"multi_step_planning": 1.0})
    assert (read.rl.algorithm, read.rl.grpo.group_size) == ("grpo", 8)
    plain = load_settings(trellis.write_settings(tmp_path / "plain.yaml", sft=trellis.AgentSFTConfig()))
    assert plain.sft.knobs() == SFTSettings().knobs()
    assert trellis.RLTrainingConfig().dpo_config == RLSettings().dpo.model_dump()


@pytest.mark.parametrize(
    "wrong", [{"num_epochs": 0}, {"task_weights": {"cooking": 1}}, {"lr_scheduler": "up"}]
)
def test_a_value_that_cannot_be_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        trellis.AgentSFTConfig(**wrong)


def test_the_reward_is_the_one_that_trains() -> None:
    model = trellis.AgentRewardModel(trellis.AgentRewardConfig(penalties={"wrong_tool": -0.9}))
    right, wrong = render_tool_call("find", {}), render_tool_call("book", {})
    truth = {"target_tools": ["find"], "optimal_steps": 1}

    good, bad = (model.compute_reward("?", text, truth) for text in (right, wrong))
    failed = model.compute_reward("?", right, truth, [{"success": False, "timed_out": True}])

    assert (good["total"], good["penalties"]) == (1.0, {})
    assert set(good["breakdown"]) == set(trellis.AgentRewardConfig().weights)
    assert bad["penalties"]["wrong_tool"] == -0.9
    assert bad["signed"] < 0 == bad["total"]
    assert "timeout" in failed["penalties"]
    assert bad["feedback"]
    with pytest.raises(ValueError, match="no weight speed"):
        trellis.AgentRewardModel(trellis.AgentRewardConfig(weights={"speed": 1}))


def test_rows_are_chosen_and_replayed_across_runs(tmp_path: Path) -> None:
    rows = [row(number) for number in range(6)]

    chosen = trellis.CoresetSelector("loss_topk").select(rows, 2)
    first = trellis.OnlineContinualLearner(4, 0.5, path=tmp_path / "buffer").update(rows[:4])
    second = trellis.OnlineContinualLearner(4, 0.5, path=tmp_path / "buffer").update(rows[4:])

    assert [each["id"] for each in chosen] == ["row-5", "row-4"]
    assert first == rows[:4]
    assert len(second) == 3
    assert second[2]["id"] in {each["id"] for each in rows[:4]}
