"""`trellis agent generate`: the data of the agent pipeline, from a terminal."""

import json
import subprocess
import sys
from pathlib import Path


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "trellis_cli", "agent", "generate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_the_data_is_made_within_a_minute(tmp_path: Path) -> None:
    done = run("--output", str(tmp_path), "--json")

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["seconds"] < 60
    assert sum(rows for name, rows in told["rows"].items() if name.startswith("agent_sft/")) == 5000
    for name, rows in told["rows"].items():
        assert len((tmp_path / name).read_text().splitlines()) == rows


def test_one_kind_is_shown_as_a_table_and_another_seed_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done = run("-o", str(tmp_path), "--kind", "agent_benchmark", "--seed", "7")
    refused = run("-o", str(tmp_path), "--kind", "agent_sft", "--seed", "8")

    assert done.returncode == 0, done.stderr
    assert ["agent_benchmark/test.jsonl", "275"] in [line.split() for line in done.stdout.splitlines()]
    assert refused.returncode == 2
    assert "contains data for seed 7" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_folder_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    done = run("-o", str(tmp_path / "file" / "below"))

    assert done.returncode == 2
    assert "could not write" in done.stderr
