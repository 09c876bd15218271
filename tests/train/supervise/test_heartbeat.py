"""Signs of life: a file is touched whether or not the API hears anything; a hung run gives none."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.attempt import ADAPTERS_FILE, BEAT_FILE
from trellis_contracts.evaluation import AdapterList
from trellis_contracts.recipe import Engine
from trellis_testing.waiting import wait_until
from trellis_train.supervise.heartbeat import HeartbeatSender
from trellis_train.supervise.platform_client import PlatformClient


def make_sender(url: str, folder: Path, token: str = "token") -> HeartbeatSender:
    return HeartbeatSender(
        PlatformClient(url, "job_x", token),
        folder,
        1,
        interval_s=0.05,
        read_step=lambda: 3,
        on_stop_requested=lambda: None,
    )


def test_the_file_is_touched_while_the_api_is_away(tmp_path: Path) -> None:
    sender = make_sender("http://127.0.0.1:1", tmp_path)
    beat = tmp_path / BEAT_FILE

    sender.start()
    wait_until(beat.exists, 10, "the first touch")
    first = beat.stat().st_mtime_ns

    wait_until(lambda: beat.stat().st_mtime_ns > first, 10, "the next touch")
    sender.stop()


def test_nothing_is_posted_while_the_file_system_hangs(
    platform: Any, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_recovered = threading.Event()
    monkeypatch.setattr(Path, "touch", lambda _: has_recovered.wait(60))
    sender = make_sender(platform.url, tmp_path, token)

    sender.start()
    time.sleep(0.3)
    while_it_hangs = len(platform.heartbeats)
    has_recovered.set()

    wait_until(lambda: platform.heartbeats, 10, "heartbeats when it has recovered")
    sender.stop()
    assert while_it_hangs == 0


def test_adapters_that_the_reply_names_are_written_where_the_engine_reads_them(tmp_path: Path) -> None:
    sender = make_sender("http://127.0.0.1:1", tmp_path)
    source = {"job_id": "job_b", "engine": Engine.VERL_SFT.value, "step": 3, "path": "/checkpoints/3"}
    adapter = {"endpoint_id": "ep_a", "load_id": "a1", "served_name": "job_b:3", "checkpoint": source}
    path = tmp_path / ADAPTERS_FILE

    sender._note_adapters([])
    assert not path.exists(), "an engine without adapters is asked for none"
    sender._note_adapters([adapter])
    (named,) = AdapterList.model_validate_json(path.read_text()).adapters
    sender._note_adapters([{"endpoint_id": "broken"}])
    kept = AdapterList.model_validate_json(path.read_text()).adapters
    sender._note_adapters([])

    assert (named.served_name, named.checkpoint.path) == ("job_b:3", "/checkpoints/3")
    assert kept == [named]
    assert AdapterList.model_validate_json(path.read_text()).adapters == []
