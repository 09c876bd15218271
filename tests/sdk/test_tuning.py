"""``trellis.tune`` and ``trellis tune``: what is checked before anything is trained."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import trellis
from trellis import tuning
from trellis_cli.main import app
from trellis_contracts import engine_install
from typer.testing import CliRunner

CONFIG = "model: {model_path: /model}\nbuffer: {explorer_input: {taskset: {path: /tasks.jsonl}}}\n"
RIGHT = """
from trellis import TunableChatModel, tune
async def workflow(task: dict, model: TunableChatModel) -> float:
    reply = await model(task["messages"])
    return float(reply.text == task["answer"])
"""
WRONG = "def workflow(task: list, model) -> str:\n    return ''\n"


async def right(task: dict[str, Any], model: trellis.TunableChatModel) -> float:
    return 0.0


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tune.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A configuration whose model and rows are there."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "rows.jsonl").write_text('{"question": "1+1", "answer": "2"}\n')
    path = tmp_path / "there.yaml"
    taskset = f"{{path: {tmp_path / 'rows.jsonl'}}}"
    path.write_text(
        f"model: {{model_path: {tmp_path}}}\nbuffer: {{explorer_input: {{taskset: {taskset}}}}}\n"
    )
    return path


def test_without_the_engine_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    # C2: even where nothing else is right.
    def hide(name: str) -> Any:
        return None if name == "vllm" else importlib.util.find_spec(name)

    monkeypatch.setattr(engine_install, "find_spec", hide)
    with pytest.raises(ImportError, match=r"pip install '\.\[train\]'"):
        trellis.tune("no function", config)  # type: ignore[arg-type]


def test_signature_and_configuration_are_checked_first(config: Path) -> None:
    with pytest.raises(ValueError, match="NOT_ASYNC"):
        trellis.tune(lambda task, model: 0.0, config)
    config.write_text("algorithm: {repeat: 3}\n")
    with pytest.raises(ValueError, match=r"Invalid configuration: algorithm\.repeat"):
        trellis.tune(right, config)


def test_what_the_configuration_names_has_to_be_there(config: Path) -> None:
    with pytest.raises(ValueError, match=r"NO_MODEL.*got /model; NO_DATASET.*got /tasks\.jsonl"):
        trellis.tune(right, config, output=config.parent / "run")


def test_a_workflow_that_fails_is_found_before_anything_is_trained(places: Path) -> None:
    async def broken(task: dict[str, Any], model: trellis.TunableChatModel) -> float:
        await model(task["messages"])
        return float(task["qestion"] == "")

    with pytest.raises(
        ValueError, match=r"SESSION_FAILED.*KeyError: 'qestion' \(test_tuning\.py, line \d+\)"
    ):
        trellis.tune(broken, places, output=places.parent / "run")


def test_a_training_that_fails_says_how(config: Path) -> None:
    with pytest.raises(trellis.TuneFailed, match="exit code 2"):
        tuning.run(config, "workflow.py", output=config.parent / "run")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["tune", *arguments])


def test_the_command_checks_a_file_and_a_configuration(tmp_path: Path, config: Path, places: Path) -> None:
    file = tmp_path / "right.py"
    file.write_text(RIGHT)
    assert "workflow can be trained" in invoke("validate", str(file), "--config", str(places)).output

    absent = invoke("validate", str(file), "--config", str(config))
    assert absent.exit_code == 2
    assert "NO_DATASET (buffer.explorer_input.taskset.path)" in absent.output
    assert "NO_MODEL" in str(invoke("run", str(config), str(file)).exception)

    config.write_text("nonsense: 1\n")
    refused = invoke("validate", str(file), "--config", str(config))
    assert refused.exit_code != 0
    assert "nonsense" in str(refused.exception)


def test_the_command_names_all_faults(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("async def workflow(task: list, model) -> str:\n    return ''\n")

    refused = invoke("validate", str(file), "--json")

    assert refused.exit_code != 0
    found, _ = json.JSONDecoder().raw_decode(refused.output)
    assert [fault["code"] for fault in found["faults"]] == ["PARAM_TYPE", "MISSING_ANNOTATION", "RETURN_TYPE"]
