"""Rows that models write: behind an endpoint, and a model of the platform that is served for the task."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from trellis_api.generations import service
from trellis_api.jobs.repository import count_held_slots
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_testing.chat_endpoint import ChatEndpoint, running_chat_endpoint
from trellis_testing.processes import is_running
from trellis_testing.waiting import wait_until

from .conftest import add_model

SUMS = [{"question": f"What is {n} plus {n}?", "answer": f"It is {2 * n}."} for n in range(12)]
SAMPLE = {"kind": "rejection-sampling", "samples": 2, "check": {"kind": "numeric"}}


def add(asked: str) -> tuple[int, str]:
    """Twice the number that was asked for last."""
    return 200, f"That makes {2 * int(re.findall('[0-9]+', asked)[-1])}."


@pytest.fixture
def writer(platform: Any) -> Iterator[ChatEndpoint]:
    """An endpoint that adds, set up under the name ``writer``."""
    with running_chat_endpoint() as endpoint:
        endpoint.reply_to = add
        platform.settings.judges["writer"] = JudgeEndpoint(
            base_url=endpoint.url, model="adder", requests_per_minute=600_000, output_price=1.0
        )
        yield endpoint


@pytest.fixture
def sums(platform: Any) -> dict[str, Any]:
    return dict(platform.make(SUMS, "sums.jsonl"))


def order(dataset: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "name": "more sums",
        "dataset": dataset["id"],
        "method": SAMPLE,
        "output": {"kind": "dataset", "name": "made"},
        **changes,
    }


def test_an_endpoint_writes_a_dataset(platform: Any, writer: ChatEndpoint, sums: dict[str, Any]) -> None:
    task_id = platform.post("/generations", order(sums, endpoint="writer"))["id"]
    platform.finish()

    task = platform.task(task_id)
    assert task["state"] == "succeeded", task["reason"]
    made = platform.get(f"/datasets/{task['made_dataset']}")
    rows = platform.get(f"/datasets/{made['id']}/rows")["rows"]
    version = platform.get(f"/datasets/{made['id']}/versions/{made['head']}")
    assert (made["format"], made["row_count"], made["source"]["kind"]) == ("messages", 12, "generation")
    assert rows[1]["messages"][-1]["content"] == "That makes 2."
    assert rows[1]["generation"]["model"] == "adder"
    assert task["result"]["calls"] == len(writer.requests) == 24
    assert version["provenance"]["inputs"] == [sums["head"]]
    assert version["provenance"]["notes"]["generation"]["method"]["samples"] == 2
    assert writer.url not in json.dumps(version)


def test_the_rows_may_be_a_branch_of_the_dataset(
    platform: Any, writer: ChatEndpoint, sums: dict[str, Any]
) -> None:
    output = {"kind": "version", "branch": "made"}
    task_id = platform.post("/generations", order(sums, endpoint="writer", output=output))["id"]
    platform.finish()

    task = platform.task(task_id)
    refs = platform.get(f"/datasets/{sums['id']}/refs")["branches"]
    assert {each["name"]: each["version"] for each in refs} == {
        "main": sums["head"],
        "made": task["made_version"],
    }


def test_a_generation_that_failed_goes_on_and_pays_nothing_twice(
    platform: Any, writer: ChatEndpoint, sums: dict[str, Any]
) -> None:
    answer = writer.reply_to
    asked: list[str] = []

    def falter(question: str) -> tuple[int, str]:
        asked.append(question)
        assert answer is not None
        return answer(question) if len(asked) <= 10 else (401, "go away")

    writer.reply_to = falter
    task_id = platform.post("/generations", order(sums, endpoint="writer", concurrency=1))["id"]
    platform.finish()
    failed = platform.task(task_id)
    writer.reply_to = answer
    before = len(writer.requests)
    platform.post(f"/data-tasks/{task_id}/retry", status=200)
    platform.finish()

    done = platform.task(task_id)
    assert (failed["state"], failed["cause"]) == ("failed", "generator_refuses")
    assert done["state"] == "succeeded", done["reason"]
    assert len(writer.requests) - before == 24 - 10
    assert done["result"]["rows"] == 12


def test_answers_that_all_fail_the_check_are_no_version(
    platform: Any, writer: ChatEndpoint, sums: dict[str, Any]
) -> None:
    writer.reply_to = lambda _: (200, "I do not know.")
    task_id = platform.post("/generations", order(sums, endpoint="writer"))["id"]
    platform.finish()

    task = platform.task(task_id)
    assert (task["state"], task["cause"]) == ("failed", "no_rows_made")


@pytest.mark.slow
def test_a_model_of_the_platform_is_served_for_the_task(platform: Any, sums: dict[str, Any]) -> None:
    """The starter model with random weights: nonsense that ends after some 260 symbols."""
    model_id = add_model(platform)
    anything = {"kind": "rejection-sampling", "samples": 1, "threshold": 0, "check": {"kind": "contains"}}
    body = order(sums, model=model_id, method=anything, sampling={"max_tokens": 600, "temperature": 1})
    task_id = platform.post("/generations", body)["id"]
    refused = platform.client.delete(f"/models/{model_id}").json()
    platform.finish(in_child=True)

    task = platform.task(task_id)
    log = platform.folder(task_id) / "server.log"
    assert refused["error"] == "model_in_use"
    assert task["state"] == "succeeded", (task["reason"], log.read_text()[-4000:] if log.exists() else "")
    rows = platform.get(f"/datasets/{task['made_dataset']}/rows")["rows"]
    assert rows
    assert {row["generation"]["model"] for row in rows} == {model_id}
    assert {row["generation"]["host"] for row in rows} == {"platform"}
    assert _processes_with(str(platform.settings.data_root)) == []


@pytest.mark.faults
def test_a_cancelled_generation_takes_its_server_with_it(
    platform: Any, sums: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where the server holds a slot."""
    monkeypatch.setattr(service, "slots_to_serve", lambda _: 1)
    many = {"kind": "rejection-sampling", "samples": 64, "threshold": 0, "check": {"kind": "contains"}}
    body = order(sums, model=add_model(platform), method=many, sampling={"max_tokens": 600})
    task_id = platform.post("/generations", body)["id"]
    worker = threading.Thread(target=platform.finish, kwargs={"in_child": True})
    worker.start()
    said = platform.folder(task_id) / "server.log"
    wait_until(lambda: said.exists() and "startup complete" in said.read_text(), 120, "the model is served")
    family = psutil.Process().children(recursive=True)
    refused = platform.client.post("/generations", json=body | {"name": "another"}).json()

    platform.post(f"/data-tasks/{task_id}/cancel", status=200)
    worker.join(20)

    assert not worker.is_alive()
    assert refused["error"] == "no_free_slot"
    assert len(family) >= 3, "the child, the server and its engine"
    wait_until(lambda: not any(map(is_running, family)), 10, "all of them are gone")
    with platform.database.read() as session:
        assert count_held_slots(session) == 0


@pytest.mark.slow
def test_a_model_that_cannot_be_served_is_told(platform: Any, sums: dict[str, Any]) -> None:
    model_id = add_model(platform)
    (platform.settings.data_root / "models" / model_id / "config.json").write_text("{}")
    task_id = platform.post("/generations", order(sums, model=model_id))["id"]
    platform.finish(in_child=True)

    task = platform.task(task_id)
    assert (task["state"], task["cause"]) == ("failed", "model_not_served"), task
    assert _processes_with(str(platform.settings.data_root)) == []


def _processes_with(text: str) -> list[str]:
    """Command lines of processes that name this."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if text in command:
            found.append(command)
    return found
