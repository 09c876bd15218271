"""A script for OpenAI's client trains and talks to its model; checkpoints talk, too; a grader teaches."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
PAGE = REPOSITORY_ROOT / "docs" / "fine-tuning-api.md"
QUESTION: list[Any] = [{"role": "user", "content": "12+30="}]
OVER = ("succeeded", "failed", "cancelled")


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


def test_a_grader_teaches_and_a_job_is_cancelled(rig: Any, client: openai.OpenAI, tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "user", "content": f"{n}+1="}], "reference_answer": f"{n + 1}"}
        for n in range(64)
    ]
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with path.open("rb") as content:
        file = client.files.create(file=content, purpose="fine-tune")
    grader: Any = {
        "type": "string_check",
        "name": "right",
        "operation": "ilike",
        "input": "{{sample.output_text}}",
        "reference": "{{item.reference_answer}}",
    }

    job = client.fine_tuning.jobs.create(
        model=model_name(rig),
        training_file=file.id,
        method={
            "type": "reinforcement",
            "reinforcement": {"grader": grader, "hyperparameters": {"n_epochs": 1, "batch_size": 32}},
        },
    )
    waiting = client.fine_tuning.jobs.create(model=model_name(rig), training_file=file.id, method=job.method)  # type: ignore[arg-type]
    assert client.fine_tuning.jobs.cancel(waiting.id).status == "cancelled"
    deadline = time.monotonic() + 800
    while job.status not in OVER and time.monotonic() < deadline:
        time.sleep(2)
        job = client.fine_tuning.jobs.retrieve(job.id)

    assert job.status == "succeeded", job.error
    metrics = [
        event.data
        for event in client.fine_tuning.jobs.list_events(job.id, limit=100)
        if event.type == "metrics"
    ]
    rewards = [data["train_mean_reward"] for data in metrics if "train_mean_reward" in data]  # type: ignore[index,operator]
    assert len(rewards) == 2
    assert all(0 <= reward <= 1 for reward in rewards)
    assert client.fine_tuning.jobs.retrieve(waiting.id).status == "cancelled"
