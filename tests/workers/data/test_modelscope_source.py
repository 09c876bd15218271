"""Rows of a dataset on ModelScope; a stand-in speaks what is used of its API."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from trellis_contracts.data_tasks import HubSource
from trellis_data.reading.importing import import_rows
from trellis_data.reading.sources import SourceUnavailable
from trellis_testing.stand_in_modelscope import StandInModelScope
from trellis_workers.data.modelscope_source import ModelScopeSource

ROWS = b'{"n": 1}\n{"n": 2}\n'


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInModelScope]:
    hub = StandInModelScope(
        {
            "README.md": b"# rows",
            "main/train.jsonl": ROWS,
            "other/test.jsonl": b'{"n": 3}\n',
            "state.json": b"{}",
        }
    )
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", hub.url)
    monkeypatch.delenv("MODELSCOPE_API_TOKEN", raising=False)
    yield hub
    hub.close()


def read(source: ModelScopeSource, folder: Path) -> list[int]:
    report = import_rows(source, folder)
    return [row["n"] for name in report.shards for row in pq.read_table(folder / name).to_pylist()]


def test_the_rows_of_a_revision_are_read(
    hub: StandInModelScope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis_recipes.modelscope._PAGE_FILES", 2)  # the files come in several answers
    hub.branch = "v2"

    whole = ModelScopeSource("team/tiny", revision="v2")
    part = ModelScopeSource("team/tiny", revision="v2", under="main")

    assert read(whole, tmp_path / "whole") == [1, 2, 3]
    assert whole.describe() == "modelscope:team/tiny@v2"
    assert read(part, tmp_path / "part") == [1, 2]
    assert set(hub.downloaded) == {"main/train.jsonl", "other/test.jsonl"}


def test_what_is_not_there_or_not_allowed_is_told_in_a_sentence(hub: StandInModelScope) -> None:
    with pytest.raises(SourceUnavailable, match="no such dataset or revision"):
        ModelScopeSource("team/tiny", revision="v9").list_files()
    hub.required_token = "secret"
    with pytest.raises(SourceUnavailable, match="check MODELSCOPE_API_TOKEN"):
        ModelScopeSource("team/tiny", revision="master").list_files()


def test_a_file_that_is_not_what_was_listed_is_refused(hub: StandInModelScope, tmp_path: Path) -> None:
    hub.forged["main/train.jsonl"] = ROWS.replace(b"1", b"9")
    source = ModelScopeSource("team/tiny", revision="master", under="main")
    (file,) = source.list_files()

    with pytest.raises(SourceUnavailable, match="SHA-256"):
        source.bring(file, tmp_path)


def test_the_default_branch_is_that_of_the_hub() -> None:
    assert HubSource(repo_id="team/tiny").revision == "main"
    assert HubSource(hub="modelscope", repo_id="team/tiny").revision == "master"
    assert HubSource(hub="modelscope", repo_id="team/tiny", revision="v2").revision == "v2"
