"""Rows that are prompts: the pairs of ``agent_dpo`` are sampled from the job's own model before it trains."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat, Engine
from trellis_contracts.spec import DataSource, JobSpec, ModelSource
from trellis_train.agents.tooluse.training import sampled_pairs
from trellis_train.agents.tooluse.training.sampled_pairs import SamplingStopped
from trellis_train.data.prepare import BadData, prepare

#: Stands for the sampler: notes what it was asked for, and makes a pair of each prompt.
SAMPLER = """
import json, os, sys, time
import pyarrow.parquet as pq

given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(os.environ["ASKED"], "a") as file:
    file.write(json.dumps(given) + "\\n")
if os.environ["DOES"] == "wait":
    time.sleep(60)
if os.environ["DOES"] == "train only" and given["--data"].endswith("validation-prompts.parquet"):
    os.environ["DOES"] = "nothing"
if os.environ["DOES"] == "fail":
    sys.exit("the tokenizer has no chat template")
with open(given["--output"], "w", encoding="utf-8") as file:
    for row in pq.read_table(given["--data"]).to_pylist() if os.environ["DOES"] != "nothing" else []:
        sides = {side: [{"role": "assistant", "content": side}] for side in ("chosen", "rejected")}
        pair = {"prompt": row["prompt"], **sides, "margin": 1.0}
        file.write(json.dumps(pair, ensure_ascii=False) + "\\n")
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the sampler's command lines; it makes pairs unless ``DOES`` says something else."""
    (tmp_path / "pair_sampler.py").write_text(SAMPLER)
    monkeypatch.setattr(sampled_pairs, "MODULE", "pair_sampler")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("DOES", "pairs")
    return tmp_path / "asked"


def make_spec(tmp_path: Path, attempt: int = 1, *, asks: str = "Question", **changes: Any) -> JobSpec:
    rows = [
        {
            "data_source": "tools",
            "prompt": [{"role": "user", "content": f"{asks} {number}"}],
            "reward_model": {"style": "rule", "ground_truth": json.dumps({"steps": [{"name": "find"}]})},
        }
        for number in range(5)
    ]
    path = tmp_path / "prompts.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    source = DataSource(
        dataset_id="ds_1", paths=[str(path)], format=DataFormat.VERL_RL, sha256="0", row_count=len(rows)
    )
    attempt_dir = tmp_path / "job" / f"attempt-{attempt}"
    attempt_dir.mkdir(parents=True, exist_ok=True)
    given: dict[str, Any] = {
        "job_id": "job_1",
        "attempt": attempt,
        "name": "pairs",
        "recipe": "agent_dpo",
        "engine": Engine.TRL,
        "row_format": DataFormat.PREFERENCE,
        "platform": "cpu",
        "gpus": 1,
        "seed": 7,
        "params": {"validation_rows": 2, "num_samples": 3, "min_margin": 0.2, "max_sample_tokens": 16},
        "engine_overrides": [],
        "model": ModelSource(model_id="mdl_1", path="/m"),
        "train_data": source,
        "attempt_dir": str(attempt_dir),
        "checkpoint_dir": str(tmp_path / "job" / "checkpoints"),
        "ingest_url": "http://localhost",
    }
    return JobSpec(**(given | changes))


def questions(path: Path | None) -> list[str]:
    assert path is not None
    rows = pq.read_table(path).to_pylist()
    assert {tuple(row) for row in rows} == {("prompt", "chosen", "rejected")}
    return [row["prompt"][0]["content"] for row in rows]


def test_the_model_is_sampled_for_pairs_of_both_splits(asked: Path, tmp_path: Path) -> None:
    found = prepare(make_spec(tmp_path))

    assert questions(found.train_path) == ["Question 0", "Question 1", "Question 2"]
    assert questions(found.validation_path) == ["Question 3", "Question 4"]
    given = json.loads(asked.read_text().splitlines()[0])
    wanted = {"--model": "/m", "--samples": "3", "--max-tokens": "16", "--seed": "7", "--platform": "cpu"}
    assert wanted.items() <= given.items()


def test_the_sampler_ranks_by_the_reward_of_the_job(asked: Path, tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    term = {"name": "tool_use", "weight": 1.0, "options": {"weight_format": 0.9, "run_calls": False}}

    prepare(spec.model_copy(update={"params": {**spec.params, "rewards": [term]}}))

    given = json.loads(asked.read_text().splitlines()[0])
    assert json.loads(given["--reward"]) == term["options"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_a_prompt_may_hold_what_unicode_calls_the_end_of_a_line(
    mark: str, asked: Path, tmp_path: Path
) -> None:
    found = prepare(make_spec(tmp_path, asks=f"One{mark}two"))

    assert questions(found.train_path) == [f"One{mark}two {number}" for number in range(3)]


def test_a_later_attempt_trains_on_the_pairs_of_the_first(asked: Path, tmp_path: Path) -> None:
    prepare(make_spec(tmp_path))

    again = prepare(make_spec(tmp_path, attempt=2))

    assert len(asked.read_text().splitlines()) == 2
    assert again.train_rows == 3


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("fail", "the tokenizer has no chat template"),
        ("nothing", "no prompt has two responses with different rewards"),
    ],
)
def test_a_job_without_pairs_fails_with_the_reason(
    does: str, reason: str, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOES", does)

    with pytest.raises(BadData, match=f"ds_1: {reason}"):
        prepare(make_spec(tmp_path))


def test_a_job_without_pairs_to_validate_on_trains_and_says_so(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DOES", "train only")

    found = prepare(make_spec(tmp_path))

    assert (found.train_rows, found.validation_rows, found.validation_path) == (3, 0, None)
    assert "none of the 2 prompts for validation" in caplog.text


def test_a_stop_ends_the_sampler(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOES", "wait")
    is_asked = threading.Event()
    threading.Timer(1.0, is_asked.set).start()
    started = time.monotonic()

    with pytest.raises(SamplingStopped):
        prepare(make_spec(tmp_path), is_stopped=is_asked.is_set)

    assert time.monotonic() - started < 30


def test_pairs_that_are_given_are_trained_on_as_they_are(asked: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pair = {"prompt": "1+1?", "chosen": "2", "rejected": "3"}
    pq.write_table(pa.Table.from_pylist([pair, pair]), path)
    source = DataSource(
        dataset_id="ds_2", paths=[str(path)], format=DataFormat.PREFERENCE, sha256="0", row_count=2
    )

    found = prepare(make_spec(tmp_path, train_data=source, params={"validation_rows": 0}))

    assert (found.train_rows, asked.exists()) == (2, False)
