"""Rows as a model is trained on them, for people who page through them: the engine is loaded once."""

import os
import signal
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
