"""A file to validate on without rows: a run then measures nothing, and trains."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_train.preference import run
from trellis_train.preference.settings import Settings

pytestmark = [pytest.mark.training, pytest.mark.timeout(300)]
TURNS = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
SCHEMA = pa.schema([(name, TURNS) for name in ("prompt", "chosen", "rejected")])


def write(path: Path, count: int) -> str:
    turns = [{"role": "user", "content": "Hello"}]
    rows = [dict.fromkeys(SCHEMA.names, turns) for _ in range(count)]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
    return str(path)


@pytest.mark.parametrize(
    ("rows", "measured", "strategy", "is_measured_first"), [(2, 2, "steps", True), (0, None, "no", False)]
)
def test_nothing_is_measured_where_the_validation_file_has_no_rows(
    rows: int,
    measured: int | None,
    strategy: str,
    is_measured_first: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}

    def make(**arguments: Any) -> Any:
        given.update(arguments)
        return SimpleNamespace(train_dataset=arguments["train_dataset"])

    monkeypatch.setattr("trellis_train.preference.reporting.with_reporting", lambda *_: make)
    monkeypatch.setattr("trl.get_peft_config", lambda _model: None)
    monkeypatch.setattr(run, "load_tokenizer", lambda _settings: None)
    monkeypatch.setattr(run, "load_model", lambda _settings: None)
    arguments = SimpleNamespace(eval_strategy="steps", eval_on_start=True, max_length=8)
    files = [write(tmp_path / "train.parquet", 3), write(tmp_path / "validation.parquet", rows)]

    run.build_trainer(Settings("agent_dpo", arguments, None, *files), None, None)

    assert len(given["train_dataset"]) == 3
    assert (None if given["eval_dataset"] is None else len(given["eval_dataset"])) == measured
    assert (given["args"].eval_strategy, given["args"].eval_on_start) == (strategy, is_measured_first)
