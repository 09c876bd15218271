"""The five metrics of tool use: what they give for good, empty and reckless responses (B10)."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.tooluse.data.benchmark import make_benchmark
from trellis_train.agents.tooluse.data.simulator import Toolbox, answer_of
from trellis_train.agents.tooluse.data.tools import make_tools
from trellis_train.agents.tooluse.evaluator.__main__ import main
from trellis_train.agents.tooluse.evaluator.metrics import METRICS, WEIGHTS, measure, summarise
from trellis_train.agents.tooluse.formatting.training_rows import rl_row
from trellis_train.agents.tooluse.scoring.reward import write_reference
from trellis_train.agents.tooluse.scoring.truth import GroundTruth, Step
from trellis_train.agents.tooluse.tasks import BadTask, Task, read_task


def tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"About {name}.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "returns": {"shape": "value", "object": name, "measure": "value", "minimum": 0, "maximum": 10**6},
    }


TOOLS = [tool(name) for name in ("weather", "traffic", "hotel", "flight")]
TOOLBOX = Toolbox(TOOLS)


def truth(*names: str, answer: str | None = None) -> GroundTruth:
    steps = [Step(name=name, arguments={"city": f"city {place}"}) for place, name in enumerate(names)]
    result = None
    if steps:
        last = steps[-1]
        result = answer_of(TOOLBOX.tools[last.name], TOOLBOX.call(last.name, last.arguments))
    return GroundTruth(steps=steps, answer=answer, result=result, available_tools=list(TOOLBOX.tools))


TRUTHS = [truth("weather"), truth("flight", "hotel", "weather"), truth(), truth(answer="42"), truth("hotel")]


def everything(reference: GroundTruth) -> str:
    """A call of every tool there is, with arguments that it takes."""
    del reference
    return "".join(render_tool_call(name, {"city": "Oslo"}) for name in TOOLBOX.tools)


def summary_of(respond: Callable[[GroundTruth], str]) -> dict[str, dict[str, float]]:
    return summarise(measure(respond(each), each, TOOLBOX) for each in TRUTHS)


def test_an_oracle_scores_one_on_all_five_metrics() -> None:
    summary = summary_of(write_reference)

    assert summary == {name: {"mean": 1.0, "std": 0.0, "count": len(TRUTHS)} for name in METRICS}


@pytest.mark.parametrize("respond", [lambda _: "", everything], ids=["empty", "calls everything"])
def test_an_empty_responder_and_one_that_calls_everything_do_not(
    respond: Callable[[GroundTruth], str],
) -> None:
    summary = summary_of(respond)

    assert all(summary[name]["mean"] < 1.0 for name in METRICS), summary
    assert summary["end_to_end_success"]["mean"] <= 0.4


def test_the_overall_metric_is_the_weighted_mean_of_the_five() -> None:
    reference = truth("weather", "hotel")

    values = measure(render_tool_call("weather", {"city": "city 0"}), reference, TOOLBOX)

    # F1 2/3, no plan, 1 of 2 steps: no more than needed, order 1/2, another tool's result
    assert values["tool_selection_accuracy"] == pytest.approx(2 / 3)
    assert [values[name] for name in list(WEIGHTS)[1:]] == [0.0, 1.0, 0.5, 0.0]
    assert values["overall"] == pytest.approx(0.30 * 2 / 3 + 0.15 + 0.05)


def test_arguments_that_the_tool_refuses_or_that_give_another_result_do_not_come_to_the_answer() -> None:
    reference = truth("weather")

    refused = measure(render_tool_call("weather", {"town": "city 0"}), reference, TOOLBOX)
    other = measure(render_tool_call("weather", {"city": "elsewhere"}), reference, TOOLBOX)

    assert refused["end_to_end_success"] == other["end_to_end_success"] == 0.0
    assert refused["plan_success_rate"] == other["plan_success_rate"] == 1.0


def test_a_plan_with_too_many_calls_or_an_invented_tool_is_no_success() -> None:
    reference = truth("weather")
    right = write_reference(reference)
    traffic = render_tool_call("traffic", {"city": "x"})

    assert measure(traffic + right, reference, TOOLBOX)["plan_success_rate"] == 1.0
    assert measure(traffic * 2 + right, reference, TOOLBOX)["plan_success_rate"] == 0.0
    assert measure(render_tool_call("fly", {}) + right, reference, TOOLBOX)["plan_success_rate"] == 0.0


def row(reference: GroundTruth, number: int) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": f"request {number}"}],
        "reward_model": {"style": "rule", "ground_truth": reference.to_text()},
        "extra_info": {"index": number, "tools": json.dumps(TOOLS)},
    }


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def test_the_command_prints_mean_spread_and_count_of_the_metrics_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", [row(each, number) for number, each in enumerate(TRUTHS)])
    arguments = ["--model", "m", "--data", str(data), "--metrics", "overall,end_to_end_success"]
    output = tmp_path / "samples.jsonl"

    def sampler(tasks: Sequence[Task], sampling: Any) -> list[list[str]]:
        return [[write_reference(task.truth) if place else ""] for place, task in enumerate(tasks)]

    exit_code = main([*arguments, "--output", str(output)], sampler)

    printed = json.loads(capsys.readouterr().out)
    assert exit_code == 0
    assert printed.keys() == {"overall", "end_to_end_success"}
    # four of five: mean .8, and a sample's spread of sqrt(.2)
    assert printed["end_to_end_success"] == {"mean": 0.8, "std": pytest.approx(0.2**0.5), "count": 5}
    assert len(output.read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "cannot be read"),
        ("", "is empty"),
        ('{"prompt": []}', "not a list of messages"),
        ('{"prompt": [{"role": "user", "content": "?"}]}', "ground_truth is missing"),
        (json.dumps({**row(GroundTruth(), 0), "extra_info": {}}), "neither extra_info.tools"),
        (json.dumps({**row(truth(), 0), "extra_info": {"tools": "[3]"}}), "not a list of tools"),
    ],
)
def test_rows_that_cannot_be_measured_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, reason: str
) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text(content)

    exit_code = main(["--model", "m", "--data", str(data)], lambda tasks, sampling: [])

    assert exit_code == 65
    assert reason in capsys.readouterr().err


def test_a_folder_without_a_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_rows(tmp_path / "rows.jsonl", [row(truth(), 0)])

    exit_code = main(["--model", str(tmp_path / "none"), "--data", str(data)])

    assert exit_code == 65
    assert "contains no model" in capsys.readouterr().err


def test_an_oracle_scores_one_on_the_generated_benchmark_and_the_others_do_not() -> None:
    tools = make_tools(42)
    by_name = {each.name: each.row for each in tools.all}
    samples = [sample for sample in make_benchmark(tools, seed=42) if sample["split"] == "test"]
    tasks = [
        read_task(rl_row(sample, by_name, index=place), str(place)) for place, sample in enumerate(samples)
    ]

    def reckless(task: Task) -> str:
        return "".join(render_tool_call(name, {}) for name in task.toolbox.tools)

    def summary(respond: Callable[[Task], str]) -> dict[str, dict[str, float]]:
        return summarise(measure(respond(task), task.truth, task.toolbox) for task in tasks)

    assert {each["mean"] for each in summary(lambda task: write_reference(task.truth)).values()} == {1.0}
    for respond in (lambda _: "", reckless):
        assert all(each["mean"] < 1.0 for each in summary(respond).values())


def test_tools_that_people_bring_are_measured_without_being_simulated() -> None:
    """In OpenAI's form; no results are made up, so the calls have to be the reference's."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}
        for name in ("weather", "news")
    ]
    truth = GroundTruth(steps=[Step(name="weather", arguments={"city": "Oslo"})])
    row = {
        "prompt": [{"role": "user", "content": "Oslo?"}],
        "reward_model": {"ground_truth": truth.to_text()},
        "tools": json.dumps(tools),
    }

    task = read_task(row, "row 1")
    right, wrong, invented = (
        measure(render_tool_call(name, {"city": city}), task.truth, task.toolbox)
        for name, city in (("weather", "Oslo"), ("weather", "Rome"), ("storm", "Oslo"))
    )

    assert set(right.values()) == {1.0}
    assert (wrong["tool_selection_accuracy"], wrong["end_to_end_success"]) == (1.0, 0.0)
    assert (invented["plan_success_rate"], invented["end_to_end_success"]) == (0.0, 0.0)


def test_names_of_the_tools_are_enough_and_none_is_an_error() -> None:
    row = {"prompt": [{"role": "user", "content": "?"}], "reward_model": {}}
    named = GroundTruth(steps=[Step(name="a")], available_tools=["a", "b"])
    unknown = GroundTruth(steps=[Step(name="a")])

    task = read_task({**row, "reward_model": {"ground_truth": named.to_text()}}, "row 1")
    lost = read_task({**row, "reward_model": {"ground_truth": unknown.to_text()}}, "row 2")

    assert measure(render_tool_call("a", {}), task.truth, task.toolbox)["overall"] == 1.0
    with pytest.raises(BadTask, match="neither extra_info"):
        lost.toolbox  # noqa: B018 - the property raises
