"""The reward of tool use as a term of a mixture."""

import asyncio
import json
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
from trellis_train.agents.tooluse.data.simulator import answer_of, simulate
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


def scored(
    response: str, answer: str = ANSWER, *, row: dict[str, Any] | None = None, **options: Any
) -> Scored:
    options = {"scale": "signed", **options}
    mixture = Mixture.parse([{"name": "tool_use", "options": options}])
    return asyncio.run(mixture.score(Sample(response=response, answer=answer, row=row or {})))


FLIGHT = {
    "name": "find_flight",
    "parameters": {
        "type": "object",
        "properties": {"to": {"type": "string"}},
        "required": ["to"],
        "additionalProperties": False,
    },
    "returns": {"shape": "value", "measure": "price", "minimum": 1, "maximum": 10**6},
}
TO_OSLO = GroundTruth(
    steps=[Step(name="find_flight", arguments={"to": "Oslo"})],
    result=answer_of(FLIGHT, simulate(FLIGHT, {"to": "Oslo"})),
    available_tools=["find_flight"],
).to_text()


def flight(**arguments: Any) -> str:
    return render_tool_call("find_flight", arguments)


def test_other_arguments_than_those_of_the_reference_earn_less() -> None:
    for row in ({}, {"tools": json.dumps([FLIGHT])}):
        right, other, none, unknown = (
            scored(flight(**arguments), TO_OSLO, row=row)
            for arguments in ({"to": "Oslo"}, {"to": "Paris"}, {}, {"nonsense": 1})
        )

        assert (right.score, right.acc) == (1.0, 1.0)
        # Far enough apart that pairs are made of them.
        assert right.score - other.score > 0.1
        assert other.score > none.score == unknown.score
        assert other.acc == none.acc == 0.0


def test_calls_are_run_where_the_tools_of_the_row_can_be_simulated() -> None:
    row = {"tools": json.dumps([FLIGHT])}
    plain = {"tools": json.dumps([{name: FLIGHT[name] for name in ("name", "parameters")}])}

    # Coverage and success, but another price than the reference's; a refused call does nothing.
    assert scored(flight(to="Paris"), TO_OSLO, row=row).parts["tool_use_completion"] == pytest.approx(0.7)
    assert scored(flight(), TO_OSLO, row=row).parts["tool_use_completion"] == 0.0
    assert scored(flight(), TO_OSLO, row=row, run_calls=False).parts["tool_use_completion"] == 1.0
    assert scored(flight(), TO_OSLO, row=plain).parts["tool_use_completion"] == 1.0
    # Without what came of them and without arguments the names decide.
    assert scored(flight(), TO_OSLO, row=row, run_calls=False, compare_arguments=False).score == 1.0


def test_more_calls_than_a_row_allows_are_not_run_and_count_as_a_timeout() -> None:
    row = {"tools": json.dumps([FLIGHT])}
    many = "".join(flight(to=city) for city in ("Oslo", "Paris", "Rome"))

    in_time = scored(flight(to="Oslo") + flight(to="Rome"), TO_OSLO, row=row).parts["tool_use_penalties"]
    late = scored(many, TO_OSLO, row=row).parts["tool_use_penalties"]

    assert (in_time, late) == (0.0, -0.5)


def test_a_needless_call_earns_no_more_because_it_works() -> None:
    row, none = {"tools": json.dumps([FLIGHT])}, GroundTruth(available_tools=["find_flight"]).to_text()

    run, not_run = (scored(flight(to="Oslo"), none, row=row, run_calls=runs).score for runs in (True, False))

    assert run <= not_run < scored("Good morning.", none, row=row).score == 1.0


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
