"""Arguments against schemas that strangers write: nothing is opened, and no text takes for ever."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from trellis_train.agents.argument_check import BadSchema, check_schema, find_argument_fault
from trellis_train.agents.tooluse.tasks import BadTask, read_task


def of_property(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def test_a_fault_is_told_with_its_place() -> None:
    assert find_argument_fault(of_property({"type": "string"}), {"a": "b"}) is None
    assert find_argument_fault(of_property({"type": "string"}), {"a": 3}) == 'a: 3 is not of type "string"'
    assert find_argument_fault({"required": ["a"]}, {}) == '"a" is a required property'
    long = find_argument_fault(of_property({"type": "integer"}), {"a": "x" * 999}, most=50)
    assert (len(long or ""), (long or "")[-24:]) == (50, 'is not of type "integer"'[-24:])


@pytest.mark.parametrize("scheme", ["file://{}", "{}"])
def test_no_file_is_opened(scheme: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"type": "integer"}')
    schema = of_property({"$ref": scheme.format(tmp_path / "other.json")})

    with pytest.raises(BadSchema):
        check_schema(schema)
    assert "cannot be used" in (find_argument_fault(schema, {"a": "text"}) or "")


def test_a_pattern_takes_no_time_on_a_text_that_almost_matches() -> None:
    started = time.perf_counter()

    fault = find_argument_fault(of_property({"pattern": r"^(\w+\s?)*$"}), {"a": "a" * 5000 + "!"})

    assert "does not match" in (fault or "")
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize("value", ["\ud83d", 10**400, [[[]]]])
def test_whatever_a_model_writes_is_checked(value: Any) -> None:
    assert (
        find_argument_fault(of_property({"type": ["string", "integer", "array", "null"]}), {"a": value})
        is None
    )


def task_of(tool: Any) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": "a"}],
        "reward_model": {"ground_truth": json.dumps({"steps": [{"name": "a"}]})},
        "extra_info": {"tools": [tool]},
    }


VALUE = {"shape": "value", "measure": "price", "minimum": 1, "maximum": 9}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"returns": {}}, "returns.shape must be one of"),
        ({"returns": {"shape": "value", "measure": "m", "minimum": 1}}, "returns.maximum is missing"),
        ({"returns": {**VALUE, "minimum": 10}}, "minimum is above"),
        ({"returns": {**VALUE, "shape": "record"}}, "required parameter id"),
        ({"parameters": of_property({"$ref": "file:///etc/hostname"})}, "parameters cannot be used"),
        ({"parameters": of_property({"$ref": "#/x"})}, "parameters cannot be used"),
        ({"parameters": None}, "not an object"),
    ],
)
def test_a_row_with_a_tool_that_cannot_be_simulated_is_refused(changes: dict[str, Any], problem: str) -> None:
    tool = {"name": "a", "parameters": {"type": "object"}, "returns": VALUE}
    assert read_task(task_of(tool), "row 1").toolbox.call("a", {})["success"]

    with pytest.raises(BadTask, match=f"row 1: the tool 'a' cannot be simulated: .*{problem}"):
        read_task(task_of(json.loads(json.dumps(tool)) | changes), "row 1")


def test_arguments_that_a_lenient_schema_lets_through_are_answered() -> None:
    items = {**VALUE, "shape": "items", "prefix": "P"}
    toolbox = read_task(task_of({"name": "a", "parameters": {}, "returns": items}), "row 1").toolbox

    for limit in (0, -3, "many", None, True, 1e308, float("nan")):
        assert toolbox.call("a", {"limit": limit})["count"] >= 1
    assert toolbox.call("a", ["limit"])["error"]["code"] == "BAD_ARGUMENTS"


def test_a_tool_without_results_may_have_any_description() -> None:
    """Rows of other datasets, whose parameters are no JSON Schema, are compared by their calls alone."""
    task = read_task(task_of({"name": "a", "parameters": {"q": {"type": "str"}}}), "row 1")

    assert not task.toolbox.can_simulate
