"""A script for OpenAI's client trains and talks to its model; checkpoints talk, too; graders teach.

Preferences, graders in the sandbox and judges are learned from, and a paused job goes on where it stopped.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_testing.chat_endpoint import ChatEndpoint, running_chat_endpoint
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
PAGE = REPOSITORY_ROOT / "docs" / "fine-tuning-api.md"
QUESTION: list[Any] = [{"role": "user", "content": "12+30="}]
OVER = ("succeeded", "failed", "cancelled")
JOB_S = 800.0


@pytest.fixture
def client(rig: Any) -> openai.OpenAI:
    token = rig.platform.settings.admin_token_path.read_text().strip()
    return openai.OpenAI(base_url=f"{rig.client.url}/v1", api_key=token)


@pytest.fixture(autouse=True)
def _no_endpoints_left(rig: Any) -> Iterator[None]:
    yield
    for endpoint in rig.client.get("/endpoints")["items"]:
        if endpoint["can_stop"]:
            rig.client.delete(f"/endpoints/{endpoint['id']}")
            wait_until(
                lambda run_id=endpoint["run_id"]: (
                    rig.job(run_id)["state"] in {"stopped", "failed", "crashed"}
                ),
                60,
                "it has stopped",
            )


def model_name(rig: Any) -> str:
    return str(rig.client.get(f"/models/{rig.starter()['model']}")["name"])


def write_chats(rig: Any, folder: Path) -> Path:
    """Sums as chats, as many as make three steps."""
    rows = rig.client.get(f"/datasets/{rig.starter()['sft']}/rows", limit=96)["rows"]
    path = folder / "chats.jsonl"
    path.write_text("\n".join(json.dumps(as_chat(row.get("values", row))) for row in rows))
    return path


def as_chat(row: dict[str, Any]) -> dict[str, Any]:
    """A question and its answer as OpenAI's files have them: of two answers one is learned."""
    question = {"role": "user", "content": row["prompt"]}
    turns = [question, {"role": "assistant", "content": "Again?", "weight": 0}, question]
    return {"messages": [*turns, {"role": "assistant", "content": row["answer"]}]}


def test_the_script_of_the_page_trains_and_talks_to_its_model(
    rig: Any, client: openai.OpenAI, tmp_path: Path
) -> None:
    write_chats(rig, tmp_path)
    name = model_name(rig)
    code = re.search(r"```python fine_tune\.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    assert "OpenAI()" in code.group(1)  # nothing of the client is changed but where it speaks to, and as whom
    (tmp_path / "fine_tune.py").write_text(code.group(1).replace("smollm2-135m-instruct", name))
    environment = {**os.environ, "OPENAI_BASE_URL": str(client.base_url), "OPENAI_API_KEY": client.api_key}

    run = subprocess.run(
        [sys.executable, "fine_tune.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )

    assert run.returncode == 0, run.stderr[-2000:]
    (job, *_) = client.fine_tuning.jobs.list()
    assert job.status == "succeeded"
    assert job.fine_tuned_model is not None
    assert job.fine_tuned_model.startswith(f"ft:{name}:sums:")
    assert job.fine_tuned_model in [model.id for model in client.models.list()]
    assert f"New fine-tuned model created: {job.fine_tuned_model}" in run.stdout
    assert job.trained_tokens
    # What a checkpoint says is what the model made of it says.
    checkpoint = next(iter(client.fine_tuning.jobs.checkpoints.list(job.id)))
    asked: dict[str, Any] = {"messages": QUESTION, "max_tokens": 16, "temperature": 0, "seed": 1}
    of_model = client.chat.completions.create(model=job.fine_tuned_model, **asked)
    of_checkpoint = client.chat.completions.create(model=checkpoint.fine_tuned_model_checkpoint, **asked)
    assert of_checkpoint.model == checkpoint.fine_tuned_model_checkpoint
    assert of_checkpoint.choices[0].message.content == of_model.choices[0].message.content
    kinds = {each["name"]: each["kind"] for each in rig.client.get("/endpoints")["items"]}
    assert kinds[checkpoint.fine_tuned_model_checkpoint] == "checkpoint"


def upload(client: openai.OpenAI, folder: Path, rows: list[dict[str, Any]]) -> str:
    """Id of a file for fine-tuning with these rows."""
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with path.open("rb") as content:
        return client.files.create(file=content, purpose="fine-tune").id


def upload_prompts(client: openai.OpenAI, folder: Path, count: int) -> str:
    """Id of a file with sums to answer."""
    rows = [
        {"messages": [{"role": "user", "content": f"{n}+1="}], "reference_answer": f"{n + 1}"}
        for n in range(count)
    ]
    return upload(client, folder, rows)


def wait_for_end(client: openai.OpenAI, job_id: str) -> Any:
    """The job, once it has succeeded."""
    job = wait_until(
        lambda: found if (found := client.fine_tuning.jobs.retrieve(job_id)).status in OVER else None,
        JOB_S,
        "the job is over",
        pause_s=2,
    )
    assert job.status == "succeeded", job.error
    return job


def read_metrics(client: openai.OpenAI, job_id: str) -> list[dict[str, Any]]:
    """What each step measured, oldest first."""
    events = client.fine_tuning.jobs.list_events(job_id, limit=100).data
    found = [event.data for event in events if event.type == "metrics"]
    return sorted(found, key=lambda data: data["step"])  # type: ignore[arg-type, index, return-value]


def read_rewards(client: openai.OpenAI, job_id: str) -> list[float]:
    return [each["train_mean_reward"] for each in read_metrics(client, job_id) if "train_mean_reward" in each]


def reinforce(rig: Any, client: openai.OpenAI, file: str, grader: dict[str, Any]) -> Any:
    """A job of two steps that learns from a grader."""
    hyperparameters = {"n_epochs": 1, "batch_size": 8}
    method: Any = {
        "type": "reinforcement",
        "reinforcement": {"grader": grader, "hyperparameters": hyperparameters},
    }
    return client.fine_tuning.jobs.create(model=model_name(rig), training_file=file, method=method)


def test_a_grader_teaches_and_a_job_is_cancelled(rig: Any, client: openai.OpenAI, tmp_path: Path) -> None:
    file = upload_prompts(client, tmp_path, 64)
    grader: Any = {
        "type": "string_check",
        "name": "right",
        "operation": "ilike",
        "input": "{{sample.output_text}}",
        "reference": "{{item.reference_answer}}",
    }

    job = client.fine_tuning.jobs.create(
        model=model_name(rig),
        training_file=file,
        method={
            "type": "reinforcement",
            "reinforcement": {"grader": grader, "hyperparameters": {"n_epochs": 1, "batch_size": 32}},
        },
    )
    waiting = client.fine_tuning.jobs.create(model=model_name(rig), training_file=file, method=job.method)  # type: ignore[arg-type]
    assert client.fine_tuning.jobs.cancel(waiting.id).status == "cancelled"
    wait_for_end(client, job.id)

    rewards = read_rewards(client, job.id)
    assert len(rewards) == 2
    assert all(0 <= reward <= 1 for reward in rewards)
    assert client.fine_tuning.jobs.retrieve(waiting.id).status == "cancelled"


def test_preferences_teach(rig: Any, client: openai.OpenAI, tmp_path: Path) -> None:
    pairs = [
        {
            "input": {"messages": [{"role": "user", "content": f"{n}+1="}]},
            "preferred_output": [{"role": "assistant", "content": f"{n + 1}"}],
            "non_preferred_output": [{"role": "assistant", "content": "no"}],
        }
        for n in range(32)
    ]
    hyperparameters = {"n_epochs": 2, "batch_size": 16, "beta": 0.2, "learning_rate_multiplier": 4}
    method: Any = {"type": "dpo", "dpo": {"hyperparameters": hyperparameters}}

    made = client.fine_tuning.jobs.create(
        model=model_name(rig), training_file=upload(client, tmp_path, pairs), suffix="pairs", method=method
    )
    job = wait_for_end(client, made.id)

    assert job.method.dpo.hyperparameters.beta == 0.2
    assert job.fine_tuned_model.startswith(f"ft:{model_name(rig)}:pairs:")
    losses = [each["train_loss"] for each in read_metrics(client, made.id)]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    checkpoints = client.fine_tuning.jobs.checkpoints.list(made.id).data
    assert sorted(each.step_number for each in checkpoints) == [2, 4]


def test_a_paused_job_goes_on_and_its_model_answers(rig: Any, client: openai.OpenAI, tmp_path: Path) -> None:
    file = upload(client, tmp_path, [json.loads(line) for line in write_chats(rig, tmp_path).open()])
    hyperparameters = {"n_epochs": 16, "batch_size": 32}
    method: Any = {"type": "supervised", "supervised": {"hyperparameters": hyperparameters}}
    jobs = client.fine_tuning.jobs
    made = jobs.create(model=model_name(rig), training_file=file, suffix="paused", method=method)
    wait_until(lambda: len(read_metrics(client, made.id)) >= 3, JOB_S, "it has made steps", pause_s=0.5)

    assert jobs.pause(made.id).status == "paused"
    wait_until(lambda: rig.count_used_slots() == 0, 120, "the slot is free", pause_s=1)
    before = read_metrics(client, made.id)
    assert before[-1]["step"] < 48
    assert jobs.retrieve(made.id).status == "paused"
    assert jobs.retrieve(made.id).fine_tuned_model is None
    resumed = wait_until(lambda: resume(client, made.id), 120, "it can be resumed", pause_s=1)
    assert resumed.status in {"queued", "running"}
    job = wait_for_end(client, made.id)

    steps = [each["step"] for each in read_metrics(client, made.id)]
    assert steps == list(range(1, 49))
    answer = client.chat.completions.create(
        model=job.fine_tuned_model, messages=QUESTION, max_tokens=8, temperature=0
    )
    assert answer.model == job.fine_tuned_model
    assert answer.usage is not None
    assert answer.usage.completion_tokens


def resume(client: openai.OpenAI, job_id: str) -> Any:
    """The resumed job; None while it still writes its checkpoint."""
    try:
        return client.fine_tuning.jobs.resume(job_id)
    except openai.ConflictError:
        return None


def test_a_grader_of_ones_own_runs_in_the_sandbox(rig: Any, client: openai.OpenAI, tmp_path: Path) -> None:
    """It tells how it fared: it sees neither the platform's files nor its port."""
    secret, port = rig.platform.settings.admin_token_path, rig.platform.settings.port
    source = f"""
import pathlib, socket

def grade(sample, item):
    assert item["reference_answer"] and isinstance(sample["output_text"], str)
    read = pathlib.Path({str(secret)!r}).read_text
    connect = lambda: socket.create_connection(("127.0.0.1", {port}), 1)
    return (fails(read) + fails(connect)) * 0.1875

def fails(attempt):
    try:
        attempt()
    except OSError:
        return True
    return False
"""
    file = upload_prompts(client, tmp_path, 16)

    job = reinforce(rig, client, file, {"type": "python", "name": "own", "source": source})
    wait_for_end(client, job.id)

    assert read_rewards(client, job.id) == [0.375, 0.375]


@pytest.fixture
def judge(rig: Any) -> Iterator[ChatEndpoint]:
    """A judge of this machine that gives every response 4 of 5, known to the platform as `strict`."""
    with running_chat_endpoint() as endpoint:
        endpoint.default = (200, '{"score": 4}')
        known = {"base_url": endpoint.url, "model": "judge", "requests_per_minute": 6000}
        rig.kill("api", "worker")
        rig.start(TRELLIS_JUDGES=json.dumps({"strict": known}))
        yield endpoint
        rig.kill("api", "worker")
        rig.start()


def test_a_judge_teaches(rig: Any, client: openai.OpenAI, tmp_path: Path, judge: ChatEndpoint) -> None:
    text = "Rate {{sample.output_text}}, where {{item.reference_answer}} is right."
    grader = {
        "type": "score_model",
        "name": "judged",
        "model": "strict",
        "input": [{"role": "user", "content": text}],
        "range": [0, 5],
    }
    file = upload_prompts(client, tmp_path, 16)

    job = reinforce(rig, client, file, grader)
    wait_for_end(client, job.id)

    assert read_rewards(client, job.id) == [4.0, 4.0]
    assert {request["temperature"] for request in judge.requests} == {0}
    assert all(re.search(r"where \d+ is right", request) for request in map(str, judge.requests))
