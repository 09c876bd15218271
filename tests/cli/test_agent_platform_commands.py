"""`trellis environments` and `trellis job-pipelines` against a real API; the tests do the workers' part."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from trellis_api.core.database import Database
from trellis_api.environments.models import Environment
from trellis_cli.errors import ExitCode
from trellis_contracts.states import JobState
from trellis_testing.commands import trellis, trellis_process
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.job_pipelines import PipelineRig
from trellis_testing.waiting import wait_until
from trellis_tools.bench.light_platform import LightPlatform
from trellis_workers.environments import calls, make

SMALL = ("--set", "profiles=60", "--set", "train=8", "--set", "eval=3")


@pytest.fixture(scope="module")
def database(platform: LightPlatform) -> Iterator[Database]:
    opened = Database(platform.settings)
    yield opened
    opened.dispose()


@pytest.fixture
def rig(platform: LightPlatform, database: Database) -> PipelineRig:
    return PipelineRig(database, platform.settings)


def work(platform: LightPlatform, database: Database) -> None:
    """What the workers' sweeps do."""
    make.make_waiting(platform.settings, database)
    finish_data_tasks(platform.settings, database)
    make.take_in_waiting(platform.settings, database)
    calls.call_waiting(platform.settings, database)


def read(platform: LightPlatform, *arguments: str) -> Any:
    done = trellis(platform, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_an_environment_is_made_listed_tried_and_deleted(platform: LightPlatform, database: Database) -> None:
    assert "profiles" in trellis(platform, "environments", "kinds").stdout
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(trellis_process, platform, "environments", "make", "people", *SMALL, "--json")
        wait_until(lambda: (work(platform, database), making.done())[1], 60, "it is made", pause_s=0.3)
    made = json.loads(making.result().stdout)
    assert (made["state"], made["counts"]["profiles"]) == ("ready", 60)

    hostile = ("environments", "call", "people", "search_profile", '{"sql": "DROP TABLE profiles"}')
    with ThreadPoolExecutor(1) as pool:
        calling = pool.submit(trellis_process, platform, *hostile, "--json")
        wait_until(lambda: (work(platform, database), calling.done())[1], 30, "it answers", pause_s=0.3)
    assert json.loads(calling.result().stdout)["error"] == "NOT_SELECT"

    shown = trellis(platform, "environments", "show", "people").stdout
    assert "return_results" in shown
    assert "train: 8" in shown
    assert [each["name"] for each in read(platform, "environments", "list")] == ["people"]
    assert trellis(platform, "environments", "delete", "people").returncode == 0
    assert read(platform, "environments", "list") == []


@pytest.mark.slow
def test_wrong_environments_end_with_what_is_wrong(platform: LightPlatform, database: Database) -> None:
    refused = trellis(platform, "environments", "make", "x", "--set", "profile=3")
    assert refused.returncode == ExitCode.REFUSED
    assert "did you mean profiles?" in refused.stderr
    assert trellis(platform, "environments", "show", "nobody").returncode == ExitCode.REFUSED
    assert trellis(platform, "environments", "call", "x", "t", "{").returncode == ExitCode.USAGE

    with database.write() as session:
        session.add(
            Environment(
                id="env_aaaaaaaaaaaa", name="broken", kind="linksearch", parameters={}, state="failed",
                reason="The disk is full.",
            )
        )  # fmt: skip
    assert "The disk is full." in trellis(platform, "environments", "show", "broken").stdout


def test_a_pipeline_is_submitted_by_names_followed_stopped_and_run_again(
    platform: LightPlatform, rig: PipelineRig, tmp_path: Path
) -> None:
    model = platform.client.get(f"/models/{platform.model}")["name"]
    dataset = platform.client.get(f"/datasets/{platform.dataset}")["name"]
    stage = {"recipe": "grpo", "preset": "cpu-tiny", "dataset": dataset}
    file = tmp_path / "pipeline.yaml"
    stages = [
        {"id": "first", **stage, "model": {"base": model}},
        {"id": "second", **stage, "model": {"stage": "first"}},
    ]
    file.write_text(yaml.safe_dump({"name": "two stages", "stages": stages}))
    made = read(platform, "job-pipelines", "submit", "-f", str(file))
    assert made["state"] == "running"

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(trellis_process, platform, "job-pipelines", "show", "two stages", "--wait")
        rig.look()
        rig.end_stage(made["id"], "first")
        rig.look()
        rig.end_stage(made["id"], "second")
        rig.look()
        done = following.result(timeout=60)
    assert done.returncode == 0, done.stderr
    assert "second" in done.stderr

    again = read(platform, "job-pipelines", "start", made["id"])
    rig.look()
    assert {each["state"] for each in read(platform, "job-pipelines", "show", again["id"])["stages"]} == {
        "skipped"
    }
    assert read(platform, "job-pipelines", "rerun", made["id"], "second")["state"] == "running"
    rig.look()
    assert read(platform, "job-pipelines", "stop", made["id"])["stages"][0]["state"] == "skipped"
    rig.look()

    listed = trellis(platform, "job-pipelines", "list").stdout
    assert "second:stopped" in listed
    assert trellis(platform, "job-pipelines", "delete", made["id"]).returncode == 0


def test_the_tool_use_pipeline_trains_on_rows_of_ones_own(platform: LightPlatform, tmp_path: Path) -> None:
    calls = '<tool_call>{"name": "price_of", "arguments": {"item": "apple"}}</tool_call>'
    asked = {"role": "user", "content": "What is an apple?"}
    truth = json.dumps({"steps": [{"name": "price_of", "arguments": {"item": "apple"}}]})
    tool = {"type": "function", "function": {"name": "price_of", "parameters": {"type": "object"}}}
    rows = {
        "our dialogs": {"messages": [asked, {"role": "assistant", "content": calls}]},
        "our prompts": {
            "data_source": "ours",
            "prompt": [asked],
            "reward_model": {"style": "rule", "ground_truth": truth},
            "tools": json.dumps([tool]),
        },
    }
    for name, row in rows.items():
        file = tmp_path / f"{name}.jsonl"
        file.write_text(f"{json.dumps(row)}\n" * 64)
        assert trellis(platform, "datasets", "upload", str(file), "--name", name, "--no-wait").returncode == 0
    finish_data_tasks(platform.settings, Database(platform.settings))
    model = platform.client.get(f"/models/{platform.model}")["name"]
    named = ["--dataset", "dialogs=our dialogs", "--dataset", "prompts=our prompts"]

    made = read(
        platform, "agent", "pipeline", "--model", model, *named,
        "--num-samples", "2", "--preset", "cpu-tiny", "--name", "ours",
    )  # fmt: skip

    assert [stage["id"] for stage in made["stages"]] == ["sft", "rl", "evaluation"]
    assert made["stages"][1]["recipe"] == "agent_dpo"
    wrong = trellis(platform, "agent", "pipeline", "--model", model, "--dataset", "tools=our prompts")
    assert (wrong.returncode, "dialogs, prompts, pairs, queries" in wrong.stderr) == (2, True)
    assert trellis(platform, "job-pipelines", "stop", made["id"]).returncode == 0


def test_a_failed_pipeline_ends_the_command_with_the_reason(
    platform: LightPlatform, rig: PipelineRig, tmp_path: Path
) -> None:
    stage = {"id": "only", "recipe": "grpo", "preset": "cpu-tiny", "seed": 9, "exports": False}
    stage |= {"dataset": platform.dataset, "model": {"base": platform.model}}
    file = tmp_path / "pipeline.json"
    file.write_text(json.dumps({"name": "fails", "stages": [stage]}))
    made = read(platform, "job-pipelines", "submit", "-f", str(file), "--no-start")
    assert made["state"] == "idle"

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(trellis_process, platform, "job-pipelines", "start", "fails", "--wait")
        wait_until(lambda: rig.look() or rig.states(made["id"])["only"] == "running", 30, "it begins")
        rig.end_stage(made["id"], "only", JobState.FAILED, reason="Out of rows.")
        rig.look()
        done = following.result(timeout=60)

    assert done.returncode == ExitCode.FAILED
    assert "only: Out of rows." in done.stderr


def test_a_template_is_a_file_to_fill_in(platform: LightPlatform, tmp_path: Path) -> None:
    listed = trellis(platform, "job-pipelines", "templates").stdout
    assert "warm-up → sft → retrieval → rl → evaluation" in listed
    printed = trellis(platform, "job-pipelines", "templates", "reasoning").stdout
    file = tmp_path / "pipeline.yaml"
    file.write_text(printed)

    refused = trellis(platform, "job-pipelines", "submit", "-f", str(file))

    assert [stage["id"] for stage in yaml.safe_load(printed)["stages"]] == ["sft", "grpo", "evaluation"]
    assert refused.returncode == ExitCode.REFUSED
    assert "no dataset named 'DATASET'" in refused.stderr


def test_a_benchmark_of_ones_own_names_its_dataset(platform: LightPlatform, tmp_path: Path) -> None:
    dataset = platform.client.get(f"/datasets/{platform.dataset}")["name"]
    order = {"benchmark": "custom", "dataset": dataset, "scorer": {"kind": "exact"}}
    stage = {"id": "test", "kind": "evaluate", "model": {"base": platform.model}, "benchmarks": [order]}
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump({"name": "measured", "stages": [stage]}))

    made = read(platform, "job-pipelines", "submit", "-f", str(file), "--no-start")

    assert made["stages"][0]["request"]["benchmarks"][0]["dataset"] == platform.dataset
    trellis(platform, "job-pipelines", "delete", made["id"])


def test_jobs_are_found_by_the_workflow_file_that_they_train(platform: LightPlatform) -> None:
    code = "async def workflow(task, model):\n    return 1.0\n"
    platform.client.post("/workflows", {"name": "mine", "code": code})

    assert read(platform, "jobs", "list", "--workflow", "mine") == []
    refused = trellis(platform, "jobs", "list", "--workflow", "nobody's")
    assert refused.returncode == ExitCode.REFUSED
    assert "no agent code named" in refused.stderr


def test_a_folder_with_a_workflow_is_uploaded_shown_and_deleted(
    platform: LightPlatform, tmp_path: Path
) -> None:
    folder = tmp_path / "stock-agent"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "x.pyc").write_bytes(b"-")
    (folder / "workflow.py").write_text("async def solve(task, model):\n    return 1.0\n")
    (folder / "stock.db").write_bytes(b"rows")

    made = read(platform, "agent-code", "upload", str(folder))
    listed = read(platform, "agent-code", "list")
    shown = trellis(platform, "agent-code", "show", "stock-agent")

    assert (made["name"], made["function"], made["state"]) == ("stock-agent", "solve", "ready")
    assert made["files"] == {"stock.db": 4, "workflow.py": 45}
    assert made["id"] in [each["id"] for each in listed]
    assert "stock.db" in shown.stdout
    assert trellis(platform, "agent-code", "delete", "stock-agent").returncode == 0
    assert made["id"] not in [each["id"] for each in read(platform, "agent-code", "list")]


def test_a_folder_that_is_no_package_is_refused_before_anything_is_sent(
    platform: LightPlatform, tmp_path: Path
) -> None:
    (tmp_path / "other.py").write_text("")
    refused = trellis(platform, "agent-code", "upload", str(tmp_path))
    nowhere = trellis(platform, "agent-code", "upload", str(tmp_path / "nowhere"))
    assert refused.returncode == nowhere.returncode == ExitCode.USAGE
    assert "no workflow.py at the top level" in refused.stderr
    assert "no such file or folder" in nowhere.stderr


@pytest.mark.slow
def test_own_tools_are_uploaded_made_and_tried(
    platform: LightPlatform, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "tools.json").write_text('{"tools": [{"name": "double", "inputSchema": {"type": "object"}}]}')
    (tmp_path / "tools.py").write_text("def double(number):\n    return 2 * number\n")
    files = ("--upload", f"tools={tmp_path / 'tools.json'}", "--upload", f"code={tmp_path / 'tools.py'}")
    with ThreadPoolExecutor(2) as pool:
        make_it = ("environments", "make", "mine", "--kind", "own_tools", *files, "--json")
        making = pool.submit(trellis_process, platform, *make_it)
        wait_until(lambda: (work(platform, database), making.done())[1], 60, "it is made", pause_s=0.3)
        made = json.loads(making.result().stdout)
        assert (made["state"], made["counts"]["tools"]) == ("ready", 1)
        call = ("environments", "call", "mine", "double", '{"number": 21}', "--json")
        calling = pool.submit(trellis_process, platform, *call)
        wait_until(lambda: (work(platform, database), calling.done())[1], 60, "it is called", pause_s=0.3)
    assert json.loads(calling.result().stdout)["result"] == 42
    assert trellis(platform, "environments", "delete", "mine").returncode == 0
