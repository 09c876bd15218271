"""Benchmarks come whole or not at all, from the hub at the pinned commit or from the folder in its place."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_api.benchmarks import service
from trellis_api.benchmarks.errors import BenchmarkMissing
from trellis_api.benchmarks.installed import describe_files, locate_benchmark, locate_benchmarks
from trellis_api.benchmarks.schemas import BenchmarkRead, InstallState
from trellis_evaluation.catalogue import CatalogueBenchmark
from trellis_testing.stand_in_hub import StandInHub
from trellis_workers.evaluations import install as install_module
from trellis_workers.evaluations.install import install_benchmarks

COMMIT = "a" * 40
LEVELS = (1, "Level 1", 5, "Level ?")
DEV = b'{"problem": "!"}\n' * 4
ROWS = "".join(json.dumps({"problem": "?", "level": level}) + "\n" for level in LEVELS).encode()


@pytest.fixture(autouse=True)
def entry(monkeypatch: pytest.MonkeyPatch) -> CatalogueBenchmark:
    """A small one in place of the catalogue's MATH-500, with problems in two files."""
    text = {"en": "Small", "zh": "小"}
    part = {"files": ["a/test.jsonl", "b/test.jsonl"], "rows": 8, "mirror": ["math/math500.jsonl"]}
    sha256 = {"dev.jsonl": hashlib.sha256(DEV).hexdigest()}
    dev = {"files": ["dev.jsonl"], "rows": 4, "sha256": sha256}
    found = CatalogueBenchmark.model_validate(
        {
            "name": "math500", "title": text, "description": text, "metrics": ["accuracy"],
            "group_kinds": ["level"], "group_columns": {"level": ["level"]}, "default_shots": 0,
            "default_chat_shots": 0, "default_max_tokens": 9, "repo_id": "team/tiny", "revision": COMMIT,
            "parts": {"test": {**part, "mirror_rows": 4}, "dev": dev},
        }
    )  # fmt: skip
    monkeypatch.setattr(install_module, "get_benchmark", lambda _name: found)
    return found


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    files = {"a/test.jsonl": ROWS, "b/test.jsonl": ROWS, "dev.jsonl": DEV}
    hub = StandInHub({**files, "other.bin": b"x"}, kind="datasets", commit=COMMIT)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    yield hub
    hub.close()


def ask(platform: Any) -> BenchmarkRead:
    with platform.write() as session:
        return service.request_install(session, name="math500")


def look(platform: Any) -> BenchmarkRead:
    with platform.read() as session:
        return service.read_one(session, name="math500")


def list_folder(platform: Any) -> list[str]:
    return sorted(path.name for path in locate_benchmarks(platform.settings).iterdir())


def test_files_come_from_the_hub_at_the_pinned_commit(install: Callable[..., Any], hub: StandInHub) -> None:
    platform = install()
    ask(platform)

    assert install_benchmarks()

    found, files = look(platform), describe_files(platform.settings, "math500")
    assert (found.state, found.revision, found.rows) == (InstallState.READY, COMMIT, {"test": 8, "dev": 4})
    assert found.groups == {"level": ["Level 1", "Level 5", "Level ?"]}
    assert [Path(path).name for path in files.paths["test"]] == ["test-00.jsonl", "test-01.jsonl"]
    assert (files.revision, files.sha256) == (COMMIT, found.sha256)
    assert sorted(hub.downloaded) == ["a/test.jsonl", "b/test.jsonl", "dev.jsonl"]
    assert list_folder(platform) == ["math500"]
    assert not install_benchmarks()


def test_files_come_from_the_folder_where_one_is_set(install: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mirror" / "math").mkdir(parents=True)
    (tmp_path / "mirror" / "math" / "math500.jsonl").write_bytes(ROWS)
    platform = install(TRELLIS_BENCHMARK_MIRROR=str(tmp_path / "mirror"))
    ask(platform)

    install_benchmarks()

    found = look(platform)
    assert (found.state, found.revision, found.rows) == (InstallState.READY, None, {"test": 4})
    assert not found.can_install


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("away", "cannot be reached"),
        ("gated", "gated"),
        ("missing", "has no file b/test.jsonl"),
        ("fewer", "has 7 rows, but the catalog expects 8"),
        ("damaged", "is not JSON"),
        ("other", "dev.jsonl does not match the catalog"),
    ],
)
def test_what_stands_against_it_is_told_and_nothing_is_left(
    install: Callable[..., Any], hub: StandInHub, wrong: str, reason: str
) -> None:
    platform = install()
    if wrong == "away":
        hub.close()
    hub.is_gated = wrong == "gated"
    if wrong == "missing":
        del hub.files["b/test.jsonl"]
    if wrong == "fewer":
        hub.files["b/test.jsonl"] = ROWS.rpartition(b'{"problem"')[0]
    if wrong == "damaged":
        hub.files["b/test.jsonl"] = ROWS[:-9]
    if wrong == "other":
        hub.files["dev.jsonl"] = DEV.replace(b"!", b".")
    ask(platform)

    assert install_benchmarks()

    found = look(platform)
    assert (found.state, found.can_install) == (InstallState.FAILED, True)
    assert reason in (found.state_reason or "")
    assert list_folder(platform) == []
    with pytest.raises(BenchmarkMissing):
        describe_files(platform.settings, "math500")


def test_a_worker_that_dies_leaves_nothing_and_another_one_begins_anew(
    install: Callable[..., Any], hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    ask(platform)

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(install_module, "count_rows", die)
        with pytest.raises(SystemExit):
            install_benchmarks()
    in_between = (look(platform).state, locate_benchmark(platform.settings, "math500").exists())
    install_benchmarks()

    assert in_between == (InstallState.INSTALLING, False)
    assert look(platform).state == InstallState.READY


def test_a_full_disk_is_told(
    install: Callable[..., Any], hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install(TRELLIS_MIN_FREE_DISK_BYTES=str(2**62))
    ask(platform)

    install_benchmarks()

    found = look(platform)
    assert found.state == InstallState.FAILED
    assert "bytes are free" in (found.state_reason or "")
    assert hub.downloaded == []


def test_an_unexpected_error_is_the_reason_of_the_failure(
    install: Callable[..., Any], hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("Parquet magic bytes not found")

    platform = install()
    ask(platform)
    monkeypatch.setattr(install_module, "count_rows", fail)

    assert install_benchmarks()

    found = look(platform)
    assert found.state == InstallState.FAILED
    assert found.state_reason == "Unexpected worker error: ValueError: Parquet magic bytes not found"
    assert not install_benchmarks(), "it is not brought again by itself"
