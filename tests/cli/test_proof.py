"""`trellis proof`: which proofs run, and how their figures are shown."""

import json
from pathlib import Path

import pytest
from trellis_cli import proof
from trellis_cli.errors import ExitCode, Problem

ROW = {
    "recipe": "grpo",
    "measure": "mean reward",
    "control": 0.25,
    "trained": 0.5,
    "error": 0.02,
    "seconds": 95.0,
}


def test_a_recipe_without_a_proof_is_a_wrong_use() -> None:
    with pytest.raises(Problem) as raised:
        proof.run_proofs(["grop"], as_json=True)

    assert raised.value.exit_code == ExitCode.USAGE
    assert "grop" in raised.value.message


def test_the_table_shows_the_gain_over_the_control(capsys: pytest.CaptureFixture[str]) -> None:
    proof.print_proofs([ROW, {**ROW, "recipe": "sft", "error": None}])

    lines = capsys.readouterr().out.splitlines()
    assert "grpo" in lines[1]
    assert "+0.250 ± 0.020" in lines[1]
    assert "±" not in lines[2]


def test_the_report_is_read_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    assert proof.read_report(path) == []

    path.write_text("\n".join(json.dumps({**ROW, "recipe": name}) for name in ("b", "a")) + "\n")

    assert [row["recipe"] for row in proof.read_report(path)] == ["b", "a"]
