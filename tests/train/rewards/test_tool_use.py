"""The reward of tool use as a term of a mixture."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.dry_run import DryRunTask, Probe
from trellis_contracts.recipe import DataFormat
from trellis_contracts.rewards import RewardResources, RewardTerm
from trellis_testing.engine_runs import Rows
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.tooluse.data.benchmark import make_benchmark
from trellis_train.agents.tooluse.data.tools import make_tools
from trellis_train.agents.tooluse.formatting.training_rows import rl_row
from trellis_train.agents.tooluse.scoring.truth import GroundTruth, Step
from trellis_train.rewards.dry_run import carry_out
from trellis_train.rewards.mixture import Mixture, Scored
from trellis_train.rewards.sample import Sample

SEED = 42
ANSWER = GroundTruth(
    steps=[Step(name="find", arguments={"q": "x"})], available_tools=["find", "pay"]
).to_text()
FIND = render_tool_call("find", {"q": "x"})


def scored(response: str, answer: str = ANSWER, **options: Any) -> Scored:
    options = {"scale": "signed", **options}
    mixture = Mixture.parse([{"name": "tool_use", "options": options}])
    return asyncio.run(mixture.score(Sample(response=response, answer=answer)))


def test_the_reference_call_counts_as_correct() -> None:
    result = scored(FIND)

    assert (result.score, result.acc) == (1.0, 1.0)


def test_the_parts_of_the_reward_stand_beside_it() -> None:
    result = scored(FIND + FIND)

    assert result.score == pytest.approx(0.75)
    assert result.parts == pytest.approx(
        {
            "tool_use": 0.75,
            "tool_use_completion": 1.0,
            "tool_use_tool_f1": 1.0,
            "tool_use_efficiency": 0.8,
            "tool_use_timing": 0.8,
            "tool_use_format": 1.0,
            "tool_use_penalties": -0.2,
        }
    )


def test_bad_responses_differ_unless_the_scale_is_cut_off() -> None:
    wrong, invented = render_tool_call("pay", {}), render_tool_call("fly", {})

    assert scored(wrong).score > scored(invented).score
    assert scored(wrong, scale="display").score == scored(invented, scale="display").score == 0.0


def test_a_row_without_a_reference_of_tool_use_is_an_error_of_that_row_with_the_same_keys() -> None:
    result = scored(FIND, answer="42")

    assert "not a valid tool-use ground truth" in result.errors["tool_use"]
    assert result.score == 0.0
    assert result.as_verl_result().keys() == scored(FIND).as_verl_result().keys()


def test_a_dry_run_on_generated_rows_tells_references_from_other_rows_calls(tmp_path: Path) -> None:
    tools = make_tools(SEED)
    by_name = {tool.name: tool.row for tool in tools.all}
    samples = list(make_benchmark(tools, seed=SEED))[::100]
    rows = [rl_row(sample, by_name, index=place) for place, sample in enumerate(samples)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    source = Rows(tmp_path / "rows.parquet", DataFormat.VERL_RL).as_source()
    task = DryRunTask(
        rewards=[RewardTerm(name="tool_use")],
        resources=RewardResources(),
        data=source,
        row_count=len(rows),
        seed=0,
    )

    result = asyncio.run(carry_out(task, tmp_path))

    means = {each.probe: each.mean for each in result.probes}
    assert means[Probe.GOLD] == 1.0
    assert means[Probe.WRONG] < 0.3
    assert (result.error_count, result.is_deterministic) == (0, True)
