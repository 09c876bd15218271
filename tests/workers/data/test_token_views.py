"""Rows as a model is trained on them, for people who page through them: the engine is loaded once."""

import contextlib
import os
import signal
import threading
from typing import Any

import psutil
import pytest
from trellis_api.data_tasks.service import INTERACTIVE
from trellis_testing.processes import list_children
from trellis_testing.waiting import wait_until
from trellis_workers.data.children import WarmChildren
from trellis_workers.data.run import Lane, run_waiting

from .conftest import ROWS, add_model


def processes() -> list[int]:
    return list_children("trellis_train.data.token_view")


@pytest.mark.faults
def test_one_process_shows_page_after_page_and_is_replaced_when_it_dies(
    platform: Any, dataset: dict[str, Any]
) -> None:
    model = add_model(platform)
    children = WarmChildren()
    lane = Lane(platform.settings, platform.database, children)

    def show(offset: int) -> list[dict[str, Any]]:
        body = {"model": model, "offset": offset, "limit": 2}
        task = platform.post(f"/datasets/{dataset['id']}/rows/tokens", body)
        run_waiting(lane, INTERACTIVE)
        task = platform.task(task["id"])
        assert task["state"] == "succeeded", task["reason"]
        return list(task["result"]["rows"])

    try:
        pages = [show(0), show(2)]
        (first,) = processes()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: psutil.Process(first).status() == psutil.STATUS_ZOMBIE, 10, "it is dead")
        again = show(0)
        (second,) = processes()
    finally:
        children.close()

    assert second != first
    assert [row["row"] for page in pages for row in page] == [0, 1, 2, 3]
    assert all(ROWS[row["row"]]["answer"] in row["segments"][-1]["text"] for page in pages for row in page)
    assert again == pages[0]
    assert processes() == []


@pytest.mark.faults
@pytest.mark.slow
def test_a_row_that_takes_too_much_memory_is_refused_and_the_next_is_shown(
    platform: Any, dataset: dict[str, Any]
) -> None:
    model = add_model(platform)
    large = platform.make([{"prompt": "Say it.", "answer": "a b " * 3_900_000}], "large.jsonl")
    platform.settings.preview_memory_bytes = limit = 1536 * 1024**2
    children = WarmChildren()
    lane = Lane(platform.settings, platform.database, children)

    def show(dataset_id: str) -> dict[str, Any]:
        task = platform.post(f"/datasets/{dataset_id}/rows/tokens", {"model": model, "limit": 1})
        run_waiting(lane, INTERACTIVE)
        return dict(platform.task(task["id"]))

    peak, is_over = 0, threading.Event()

    def measure() -> None:
        nonlocal peak
        while not is_over.wait(0.05):
            for pid in processes():
                with contextlib.suppress(psutil.NoSuchProcess):
                    peak = max(peak, psutil.Process(pid).memory_info().rss)

    watch = threading.Thread(target=measure)
    watch.start()
    try:
        before = show(dataset["id"])
        refused = show(large["id"])
        left = processes()
        after = show(dataset["id"])
    finally:
        is_over.set()
        watch.join()
        children.close()

    assert (refused["state"], refused["cause"]) == ("failed", "memory_limit")
    assert "more than 1.5 GiB of memory" in refused["reason"]
    assert left == []
    assert limit < peak < 2 * limit
    assert (before["state"], after["state"]) == ("succeeded", "succeeded")
    assert after["result"] == before["result"]


def test_rows_are_not_rendered_with_a_template_that_has_become_endless(
    platform: Any, dataset: dict[str, Any]
) -> None:
    model = add_model(platform)
    template = platform.settings.data_root / "models" / model / "chat_template.jinja"
    template.write_text("{{ ('x' * 9999999999) | length }}")
    children = WarmChildren()

    task = platform.post(f"/datasets/{dataset['id']}/rows/tokens", {"model": model, "limit": 1})
    run_waiting(Lane(platform.settings, platform.database, children), INTERACTIVE)

    refused = platform.task(task["id"])
    assert (refused["state"], refused["cause"]) == ("failed", "chat_template_runaway")
    assert processes() == []
