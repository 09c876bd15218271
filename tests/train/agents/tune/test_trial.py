"""A workflow is played with a scripted model, in the sandbox, before anything is called trainable."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import PREPARED_FOLDER, TRAIN_FILE
from trellis_train.agents.preflight import check_first_sessions
from trellis_train.agents.starter import make_tokenizer
from trellis_train.agents.tune.mapping import map_config
from trellis_train.agents.tune.places import bring
from trellis_train.agents.tune.program import WorkflowSource
from trellis_train.agents.tune.settings import read_config
from trellis_train.agents.tune.trial import find_place_faults, find_session_faults, made_up_task
from trellis_train.agents.unusable import AgentUnusable

HEAD = "from trellis import TunableChatModel\n"
WORKFLOW = "async def workflow(task: dict, model: TunableChatModel) -> float:\n"
ASKS = "    reply = await model(task['messages'])\n"
TOOLS = """
    tool = {"type": "function", "function": {"name": "add", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}
    messages = list(task["messages"])
    while True:
        reply = await model(messages, tools=[tool])
        messages.append(reply.message)
        if not reply.tool_calls:
            return float(reply.text == task["answer"])
        call = reply.tool_calls[0]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(call.arguments["a"] + 1)})
"""


def faults_of(folder: Path, code: str) -> list[tuple[str, str, str]]:
    file = folder / "agent.py"
    file.write_text(code)
    found = find_session_faults(WorkflowSource.read(str(file)), [made_up_task()], folder=folder)
    return [(fault.code, fault.got, fault.detail) for fault in found]


def test_a_typo_is_found_with_its_line_and_traceback(tmp_path: Path) -> None:
    ((code, got, detail),) = faults_of(
        tmp_path, f"{HEAD}{WORKFLOW}{ASKS}    return float(task['qestion'] == '')\n"
    )

    assert code == "SESSION_FAILED"
    assert "KeyError: 'qestion' (agent.py, line 4)" in got
    assert "return float(task['qestion'] == '')" in detail


@pytest.mark.parametrize(
    "body",
    [
        f"{ASKS}    return float(reply.text == task['answer'])\n",
        TOOLS,
        # It never ends by what the script says, which a real model might have said.
        "    while True:\n        await model(task['messages'])\n",
    ],
    ids=["answers", "uses tools", "goes on"],
)
def test_a_workflow_that_can_play_has_no_fault(tmp_path: Path, body: str) -> None:
    assert faults_of(tmp_path, HEAD + WORKFLOW + body) == []


def test_a_module_beside_the_file_is_named_as_what_the_sandbox_lacks(tmp_path: Path) -> None:
    (tmp_path / "prompts.py").write_text("TEXT = ''\n")

    ((code, got, _),) = faults_of(tmp_path, f"import prompts\n{HEAD}{WORKFLOW}{ASKS}    return 1.0\n")

    assert code == "NOT_LOADABLE"
    assert "No module named 'prompts'" in got
    assert "prompts is next to the file" in got


def test_a_workflow_that_never_asks_the_model_teaches_nothing(tmp_path: Path) -> None:
    ((code, got, _),) = faults_of(tmp_path, f"{HEAD}{WORKFLOW}    return 1.0\n")
    assert code == "SESSION_FAILED"
    assert "never called the model" in got


def place_faults(model: Path, rows: Path) -> tuple[list[str], list[dict[str, Any]]]:
    config = {
        "model": {"model_path": str(model)},
        "buffer": {"explorer_input": {"taskset": {"path": str(rows)}}},
    }
    job, missing = bring(map_config(*read_config(config), platform="cpu"), has_weights=False)
    faults, tasks = find_place_faults(job)
    return [fault.code for fault in [*missing, *faults]], tasks


def test_models_and_rows_that_are_not_there_are_faults_and_rows_become_tasks(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    assert place_faults(tmp_path / "none", rows) == (["NO_MODEL", "NO_DATASET"], [])
    (tmp_path / "config.json").write_text("{}")
    for text in ("", '{"question": "1+1"}\n', "[]\n", "no json\n"):
        rows.write_text(text)
        assert place_faults(tmp_path, rows) == (["BAD_ROWS"], [])
    rows.write_text("".join(json.dumps({"question": f"{i}+1", "answer": str(i)}) + "\n" for i in range(9)))

    faults, tasks = place_faults(tmp_path, rows)

    assert faults == []
    assert [(task["question"], task["answer"]) for task in tasks] == [
        ("0+1", "0"),
        ("1+1", "1"),
        ("2+1", "2"),
    ]


def test_a_job_whose_workflow_fails_before_its_first_call_ends_before_its_engine_starts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "agent.py"
    prompt = [{"role": "user", "content": "1+1"}]
    row = {
        "prompt": prompt,
        "data_source": "d",
        "reward_model": {"ground_truth": "2"},
        "extra_info": {"index": 0},
    }
    (tmp_path / PREPARED_FOLDER).mkdir()
    pq.write_table(pa.Table.from_pylist([row] * 4), tmp_path / PREPARED_FOLDER / TRAIN_FILE)

    class Spec:
        agent = AgentTask(kind="tune", workflow_path=str(file))
        attempt_dir = str(tmp_path)

    file.write_text(f"{HEAD}{WORKFLOW}    task['qestion']\n{ASKS}    return 1.0\n")
    with pytest.raises(AgentUnusable, match=r"KeyError: 'qestion' \(agent.py, line 3\).* question, answer"):
        check_first_sessions(Spec())  # type: ignore[arg-type]
    # What a reply led to is left to the run: the script is no model.
    file.write_text(f"{HEAD}{WORKFLOW}{ASKS}    return float(reply.text.index('?'))\n")
    check_first_sessions(Spec())  # type: ignore[arg-type]


def test_a_workflow_with_tools_needs_a_model_that_is_shown_them(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    tokenizer = make_tokenizer(["1 + 1"] * 3, vocabulary=300)
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    file = tmp_path / "agent.py"
    tool = {"type": "function", "function": {"name": "price", "parameters": {"type": "object"}}}

    def codes(call: str, **setting: str) -> list[str]:
        config = {
            "model": {"model_path": str(folder)},
            "buffer": {"explorer_input": {"taskset": {"path": "rows.jsonl"}}},
            "explorer": {"rollout_model": setting},
        }
        file.write_text(f"{HEAD}{WORKFLOW}    await {call}\n    return 1.0\n")
        job = map_config(*read_config(config), platform="cpu")
        source = WorkflowSource.read(str(file))
        return [fault.code for fault in find_session_faults(source, [made_up_task()], job=job)]

    assert codes(f"model(task['messages'], tools=[{tool}])") == ["TOOLS_NOT_SHOWN"]
    assert codes(f"model(task['messages'], tools=[{tool}])", tool_template="hermes") == []
    assert codes("model(task['messages'])") == []
