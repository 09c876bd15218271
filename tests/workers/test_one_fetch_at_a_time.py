"""Downloads of models never occupy more than one process of a worker."""

import threading
from typing import Any

import pytest
from trellis_workers.core.lock import try_lock
from trellis_workers.models import fetch
from trellis_workers.models.tasks import fetch_model, fetch_pending_models


def test_a_second_download_is_left_to_the_next_sweep(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    begun, may_end = threading.Event(), threading.Event()
    fetched: list[str] = []

    def download(_settings: Any, _database: Any, *, model_id: str) -> bool:
        fetched.append(model_id)
        begun.set()
        return may_end.wait(10)

    monkeypatch.setattr(fetch, "fetch_model", download)
    monkeypatch.setattr(fetch, "fetch_pending", lambda *_: fetched.append("all"))
    first = threading.Thread(target=fetch_model.run, args=("mdl_first",))

    first.start()
    begun.wait(10)
    fetch_model.run("mdl_second")
    fetch_pending_models.run()
    may_end.set()
    first.join()
    fetch_pending_models.run()

    assert fetched == ["mdl_first", "all"]


@pytest.mark.parametrize(("waits", "sent"), [(True, [("mdl_a", 1)]), (False, [])])
def test_a_model_that_waits_for_one_that_ends_is_tried_again(
    install: Any, monkeypatch: pytest.MonkeyPatch, waits: bool, sent: list[tuple[str, int]]
) -> None:
    installation = install()
    again: list[tuple[str, int]] = []
    monkeypatch.setattr(fetch, "is_waiting", lambda _database, *, model_id: waits)
    monkeypatch.setattr(fetch_model, "apply_async", lambda arguments, countdown: again.append(arguments))

    with try_lock(installation.settings.data_root / "run" / "fetch-models.lock"):
        fetch_model.run("mdl_a", 2)
        fetch_model.run("mdl_a", 1)  # the last time: the sweep has it

    assert again == sent


def test_a_lock_is_free_again_after_its_block(tmp_path: Any) -> None:
    path = tmp_path / "a.lock"

    with try_lock(path) as first, try_lock(path) as second:
        pass
    with try_lock(path) as third:
        pass

    assert (first, second, third) == (True, False, True)
