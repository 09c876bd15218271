"""Processes that are kept for what somebody waits for: started once, replaced when they fail, never stuck."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from trellis_api.data_tasks.service import INTERACTIVE
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_testing.chat_endpoint import ChatEndpoint, running_chat_endpoint
from trellis_testing.processes import list_children
from trellis_testing.waiting import wait_until
from trellis_workers.data.children import WarmChildren
from trellis_workers.data.run import Lane, linger, run_waiting
from trellis_workers.data.warm import WarmProcesses

from .conftest import CLEAN, ROWS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
JUDGED = {"name": "judged", "steps": [{"operator": "judge", "params": {"scorer": "strict"}}]}
MakeLane = Callable[..., Lane]


@pytest.fixture
def make_lane(platform: Any) -> Iterator[MakeLane]:
    """Lanes with processes of their own, ended afterwards."""
    made: list[WarmChildren] = []

    def make(**bounds: Any) -> Lane:
        made.append(WarmChildren(WarmProcesses(**bounds)))
        return Lane(platform.settings, platform.database, made[-1])

    yield make
    for children in made:
        children.close()


@pytest.fixture
def judge(platform: Any) -> Iterator[ChatEndpoint]:
    """A model that a preview may ask, so that it is in the middle of its work until there is an answer."""
    with running_chat_endpoint() as endpoint:
        platform.settings.judges["strict"] = JudgeEndpoint(
            base_url=endpoint.url, model="any", requests_per_minute=600_000
        )
        yield endpoint


@pytest.fixture
def hold(judge: ChatEndpoint) -> Iterator[threading.Event]:
    """The judge gives no answer until it is let go."""
    let_go = threading.Event()

    def wait(_question: str) -> tuple[int, str]:
        let_go.wait(60)
        return 200, '{"score": 5}'

    judge.reply_to = wait
    yield let_go
    let_go.set()


def ask(platform: Any, dataset: dict[str, Any], pipeline: dict[str, Any] = CLEAN) -> str:
    """The task of a preview that waits."""
    body = {"pipeline": pipeline, "dataset": dataset["id"], "rows": 200}
    return str(platform.post("/pipelines/preview", body)["id"])


def preview(platform: Any, dataset: dict[str, Any], lane: Lane, **asked: Any) -> dict[str, Any]:
    """A preview, carried out."""
    task_id = ask(platform, dataset, **asked)
    run_waiting(lane, INTERACTIVE)
    return dict(platform.task(task_id))


def is_right(task: dict[str, Any]) -> bool:
    """Whether the preview shows what ``CLEAN`` does to the rows."""
    return task["state"] == "succeeded" and task["result"]["rows_out"] == len(ROWS) - 2


def processes() -> list[int]:
    """The numbers of the processes that this one keeps for previews."""
    return list_children("trellis_workers.data.warm_child")


def begin(lane: Lane, judge: ChatEndpoint) -> tuple[threading.Thread, int]:
    """Carry out what waits in a thread of its own; its process, once it is in the middle."""
    thread = threading.Thread(target=run_waiting, args=(lane, INTERACTIVE))
    thread.start()
    wait_until(lambda: judge.requests, 60, "the judge is asked")
    (process,) = processes()
    return thread, process


def test_one_process_carries_out_previews_one_after_the_other(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane
) -> None:
    lane = make_lane()
    assert is_right(preview(platform, dataset, lane))
    (first,) = processes()

    assert all(is_right(preview(platform, dataset, lane)) for _ in range(2))

    assert processes() == [first]


def test_a_preview_that_cannot_be_done_keeps_the_process(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane, judge: ChatEndpoint
) -> None:
    lane = make_lane()
    judge.default = (401, "go away")
    refused = preview(platform, dataset, lane, pipeline=JUDGED)
    (first,) = processes()

    assert (refused["state"], refused["cause"]) == ("failed", "judge_refuses")
    assert is_right(preview(platform, dataset, lane))
    assert processes() == [first]


def test_a_process_that_is_killed_in_the_middle_is_replaced(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane, judge: ChatEndpoint, hold: threading.Event
) -> None:
    lane = make_lane()
    lost = ask(platform, dataset, JUDGED)
    thread, process = begin(lane, judge)

    os.kill(process, signal.SIGKILL)
    thread.join(10)

    assert not thread.is_alive()
    task = platform.task(lost)
    assert (task["state"], task["cause"]) == ("failed", "crashed")
    assert "signal 9" in task["reason"]
    assert is_right(preview(platform, dataset, lane))
    assert processes() != [process]


def test_a_process_that_is_killed_between_previews_is_replaced(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane
) -> None:
    lane = make_lane()
    preview(platform, dataset, lane)
    (first,) = processes()

    os.kill(first, signal.SIGKILL)
    wait_until(lambda: psutil.Process(first).status() == psutil.STATUS_ZOMBIE, 10, "it is dead")

    assert is_right(preview(platform, dataset, lane))
    assert processes() != [first]


def test_a_cancelled_preview_leaves_nothing_to_the_next(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane, judge: ChatEndpoint, hold: threading.Event
) -> None:
    lane = make_lane()
    unwanted = ask(platform, dataset, JUDGED)
    thread, process = begin(lane, judge)

    platform.post(f"/data-tasks/{unwanted}/cancel", status=200)
    thread.join(10)

    assert not thread.is_alive()
    assert not psutil.pid_exists(process)
    hold.set()
    assert is_right(preview(platform, dataset, lane))
    task = platform.task(unwanted)
    assert (task["state"], task["result"]) == ("cancelled", None)
    assert not platform.folder(unwanted).exists()


def test_a_process_that_hangs_is_ended_at_the_time_limit(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = make_lane()
    preview(platform, dataset, lane)
    (first,) = processes()
    os.kill(first, signal.SIGSTOP)
    with monkeypatch.context() as patched:
        patched.setattr(platform.settings, "preview_timeout_s", 0.5)
        late = preview(platform, dataset, lane)

    assert (late["state"], late["cause"]) == ("failed", "time_limit")
    assert not psutil.pid_exists(first)
    assert is_right(preview(platform, dataset, lane))


def test_a_process_that_has_grown_is_not_kept(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane
) -> None:
    lane = make_lane(kept_bytes=1024**2)

    assert is_right(preview(platform, dataset, lane))
    assert processes() == []


def test_a_process_that_nobody_needs_ends(
    platform: Any, dataset: dict[str, Any], make_lane: MakeLane
) -> None:
    lane = make_lane(kept_s=1.0)
    task_id = ask(platform, dataset)
    seen: list[list[int]] = []

    def rest() -> None:
        seen.append(processes())
        lane.start.end_idle()  # type: ignore[attr-defined]

    linger(lane, INTERACTIVE, idle_s=2.0, at_rest=rest)

    assert is_right(platform.task(task_id))
    assert len(seen[0]) == 1
    assert processes() == []
