"""`trellis tune submit`: a workflow and its configuration as a job of a platform."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from trellis_cli.errors import ExitCode
from trellis_cli.uploading import send_file
from trellis_testing.commands import trellis, trellis_with_workers
from trellis_tools.bench.light_platform import LightPlatform

WORKFLOW = """
from typing import Any, Dict

from trellis import TunableChatModel


async def solve(task: Dict[str, Any], model: TunableChatModel) -> float:
    reply = await model([{"role": "user", "content": task["question"]}])
    return float(task["answer"] in reply.text)
"""


def write_config(folder: Path, **changes: Any) -> Path:
    """A configuration with rows of its own, and a model that is not on this machine."""
    for split, count in (("train", 16), ("eval", 4)):
        rows = [{"question": f"{n}+1=", "answer": str(n + 1)} for n in range(count)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = {"prompt_key": "question", "response_key": "answer"}
    config = {
        "project": "agents",
        "name": "sums",
        "model": {"model_path": "models/starter", "max_prompt_tokens": 256, "max_response_tokens": 64},
        "algorithm": {"repeat_times": 4, "optimizer": {"lr": 1e-4}},
        "buffer": {
            "total_steps": 3,
            "batch_size": 8,
            "explorer_input": {
                "taskset": {"path": str(folder / "train.jsonl"), "format": keys},
                "eval_tasksets": [{"path": str(folder / "eval.jsonl"), "format": keys}],
            },
        },
    }
    path = folder / "tune.yaml"
    path.write_text(yaml.safe_dump({**config, **changes}))
    return path


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    path = tmp_path / "summer.py"
    path.write_text(WORKFLOW)
    return path


def count(platform: LightPlatform, path: str) -> int:
    return len(list(platform.client.pages(path)))


def test_code_and_rows_are_uploaded_once_and_the_job_has_the_settings_of_the_file(
    platform: LightPlatform, tmp_path: Path, workflow: Path
) -> None:
    config = write_config(tmp_path)
    arguments = (
        "tune",
        "submit",
        str(config),
        str(workflow),
        "--set",
        "runners=2",
        "--no-validate",
        "--json",
    )

    done = trellis_with_workers(platform, *arguments)

    assert done.returncode == 0, done.stderr
    job = json.loads(done.stdout)
    assert (job["name"], job["recipe"], job["state"], job["seed"]) == ("sums", "tune", "queued", 42)
    assert job["model"]["name"] == "starter"
    expected = {"total_steps": 3, "batch_size": 8, "group_size": 4, "learning_rate": 1e-4, "runners": 2}
    assert {name: job["params"][name] for name in expected} == expected
    assert job["columns"] == job["validation_columns"] == {"prompt": "question", "answer": "answer"}
    assert job["dataset"]["name"].startswith("train-")
    assert job["validation_dataset"]["name"].startswith("eval-")
    code = platform.client.get(f"/workflows/{job['params']['workflow']}")
    assert (code["name"], code["function"], code["code"]) == ("summer", "solve", WORKFLOW)

    assert "event files" not in done.stderr
    jobs = count(platform, "/jobs")
    shown = trellis(platform, *arguments, "--dry-run")
    assert json.loads(shown.stdout)["params"]["workflow"] == code["id"], shown.stderr
    refused = trellis(platform, *arguments, "--dry-run", "--set", "group_size=1")
    assert (refused.returncode, bool(json.loads(refused.stdout)["errors"])) == (ExitCode.REFUSED, True)
    assert count(platform, "/jobs") == jobs

    write_config(tmp_path, monitor={"monitor_type": "tensorboard"})
    before = [count(platform, path) for path in ("/workflows", "/datasets")]
    again = trellis(platform, *arguments)
    event_files = f"trellis jobs tensorboard {json.loads(again.stdout)['id']} -o "
    assert event_files in again.stderr
    assert json.loads(again.stdout)["params"]["workflow"] == code["id"]
    assert [count(platform, path) for path in ("/workflows", "/datasets")] == before

    workflow.write_text(WORKFLOW + "# changed\n")
    changed = json.loads(trellis(platform, *arguments).stdout)["params"]["workflow"]
    assert platform.client.get(f"/workflows/{changed}")["name"] == "summer-2"
    named = trellis(platform, "tune", "submit", str(config), "summer-2", "--name", "named", "--json")
    assert (json.loads(named.stdout)["name"], json.loads(named.stdout)["params"]["workflow"]) == (
        "named",
        changed,
    )


def write_evaluations(folder: Path, **second: Any) -> Path:
    """A configuration with two evaluations, of which the second has columns of its own."""
    config = yaml.safe_load(write_config(folder).read_text())
    (folder / "words.jsonl").write_text('{"asked": "Say hi", "wanted": "hi"}\n' * 2)
    words = {"prompt_key": "asked", "response_key": "wanted"}
    tasksets = config["buffer"]["explorer_input"]["eval_tasksets"]
    tasksets[0]["name"] = "sums"
    tasksets.append({"name": "words", "path": str(folder / "words.jsonl"), "format": words, **second})
    path = folder / "tune.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def test_several_evaluations_are_measured_on_together(
    platform: LightPlatform, tmp_path: Path, workflow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = write_evaluations(tmp_path)

    done = trellis_with_workers(
        platform, "tune", "submit", str(config), str(workflow), "--no-validate", "--json"
    )

    assert done.returncode == 0, done.stderr
    job = json.loads(done.stdout)
    assert (job["validation_data_format"], job["params"]["validate_every"]) == ("verl-rl", 100)
    measured = f"/datasets/{job['validation_dataset']['id']}/rows"
    rows = platform.client.get(measured)["rows"]
    assert [each["data_source"] for each in rows] == ["sums"] * 4 + ["words"] * 2


def test_several_evaluations_of_which_one_is_elsewhere_or_unreadable_are_refused(
    platform: LightPlatform, tmp_path: Path, workflow: Path
) -> None:
    for second, told in (
        ({"path": "owner/words"}, "owner/words"),
        ({"format": {"prompt_key": "question", "response_key": "answer"}}, "eval_tasksets.1"),
    ):
        config = write_evaluations(tmp_path, **second)
        done = trellis(platform, "tune", "submit", str(config), str(workflow), "--no-validate")
        assert (done.returncode, told in done.stderr) == (ExitCode.USAGE, True), done.stderr


def test_rows_whose_import_failed_once_are_uploaded_again(
    platform: LightPlatform, tmp_path: Path, workflow: Path
) -> None:
    config = write_config(tmp_path)
    (tmp_path / "train.jsonl").write_text('{"question": "7+1=", "answer": "8"}\n' * 16)
    name = f"train-{hashlib.sha256((tmp_path / 'train.jsonl').read_bytes()).hexdigest()[:8]}"
    (tmp_path / "broken.jsonl").write_text("{\n")
    upload = send_file(platform.client, tmp_path / "broken.jsonl", tell=lambda _: None)
    source = {"kind": "upload", "upload": upload}
    failed = platform.client.post("/datasets/imports", {"name": name, "source": source})["id"]
    platform.carry_out_data_tasks()
    assert platform.client.get(f"/datasets/{failed}")["state"] == "failed"
    arguments = ("tune", "submit", str(config), str(workflow), "--no-validate", "--json")

    done = trellis_with_workers(platform, *arguments)

    assert done.returncode == 0, done.stderr
    dataset = json.loads(done.stdout)["dataset"]
    assert dataset["name"] == f"{name}-2"
    again = trellis(platform, *arguments)
    assert json.loads(again.stdout)["dataset"]["id"] == dataset["id"]


def test_what_is_wrong_ends_before_anything_is_sent(
    platform: LightPlatform, tmp_path: Path, workflow: Path
) -> None:
    config = write_config(tmp_path)
    before = [count(platform, path) for path in ("/workflows", "/datasets", "/jobs")]

    def submit(*arguments: str, file: Path = config, place: Path | str = workflow) -> tuple[int, str]:
        done = trellis(platform, "tune", "submit", str(file), str(place), "--no-validate", *arguments)
        return done.returncode, done.stderr

    code, told = submit("--model", "no such model")
    assert (code, "no model named 'no such model'" in told) == (ExitCode.REFUSED, True)
    code, told = submit(place="no-such-code")
    assert (code, "no agent code named 'no-such-code'" in told) == (ExitCode.REFUSED, True)
    code, told = submit(place=tmp_path / "nowhere.py")
    assert (code, "no such file or folder" in told) == (ExitCode.USAGE, True)
    code, told = submit(place="workflow.pkl")
    assert (code, "is a pickle" in told) == (ExitCode.USAGE, True)
    code, told = submit("--report-to", "sums")
    assert (code, "wandb:PROJECT" in told) == (ExitCode.USAGE, True)

    wrong = write_config(tmp_path, modle={})
    code, told = submit(file=wrong)
    assert (code, "modle" in told) == (ExitCode.USAGE, True)
    foreign = write_config(tmp_path, environments={"people": "folder"})
    code, told = submit(file=foreign)
    assert (code, "--environment" in told) == (ExitCode.USAGE, True)
    unknown = write_config(tmp_path, model={"model_path": "models/other"})
    code, told = submit(file=unknown)
    assert (code, "--model" in told) == (ExitCode.REFUSED, True)
    assert [count(platform, path) for path in ("/workflows", "/datasets", "/jobs")] == before


@pytest.mark.slow
def test_only_a_workflow_whose_sessions_go_well_here_is_sent(
    platform: LightPlatform, tmp_path: Path, workflow: Path
) -> None:
    arguments = ("tune", "submit", str(write_config(tmp_path)), str(workflow))
    before = count(platform, "/workflows")
    workflow.write_text(WORKFLOW.replace("    reply =", "    raise ValueError('no luck today')\n    reply ="))

    refused = trellis(platform, *arguments)

    assert refused.returncode == ExitCode.USAGE
    assert "no luck today" in refused.stderr
    assert count(platform, "/workflows") == before

    workflow.write_text(WORKFLOW)
    sent = trellis_with_workers(platform, *arguments, "--json")

    assert sent.returncode == 0, sent.stderr
    assert json.loads(sent.stdout)["state"] == "queued"
