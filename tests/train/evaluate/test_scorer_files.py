"""Answers scored by a person's own file, which runs isolated."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.evaluation import BenchmarkFiles, BenchmarkTask, CodeScorer, CustomOrder, Verdict
from trellis_train.evaluate.benchmark import BenchmarkUnusable, Scored
from trellis_train.evaluate.custom.benchmark import Custom

ROW = {"prompt": "How much is 2 + 3?", "answer": "5", "unit": "apples"}


def open_scored(folder: Path, code: str | None, *, row: dict[str, Any] = ROW, **scorer: Any) -> Custom:
    rows, file = folder / "rows.jsonl", folder / "own.py"
    rows.write_text(json.dumps(row) + "\n")
    if code is not None:
        file.write_text(code)
    order = CustomOrder(dataset="ds", scorer=CodeScorer(file="rwf_own", **scorer))
    files = BenchmarkFiles(paths={"test": [str(rows)]}, sha256="0" * 64)
    return Custom(BenchmarkTask(label="own", order=order, files=files, scorer_path=str(file)), 0)


def score(benchmark: Custom, output: str) -> Scored:
    try:
        return benchmark.score(benchmark.problems()[0], output, is_truncated=False)
    finally:
        benchmark.close()


def function(body: str) -> str:
    return f"def score(prompt, response, answer, row):\n    {body}\n"


def test_the_file_sees_prompt_response_answer_and_row(tmp_path: Path) -> None:
    code = function(
        "return {'score': (prompt, response, answer, row['unit']) == "
        "('How much is 2 + 3?', '5', '5', 'apples'), 'length': len(response)}"
    )

    scored = score(open_scored(tmp_path, code), "<think>so</think>5")

    assert (scored.verdict, scored.score) == (Verdict.CORRECT, 1.0)
    assert scored.parts == {"score": 1.0, "accuracy": 1.0, "length": 1.0}


def test_a_row_needs_no_reference(tmp_path: Path) -> None:
    row = {"prompt": "Say something.", "answer": None}

    assert score(open_scored(tmp_path, function("return len(response) / 10"), row=row), "yes").score == 0.3


@pytest.mark.parametrize(
    ("value", "threshold", "verdict", "worth"),
    [(0.4, 0.5, Verdict.WRONG, 0.4), (-3, 0.5, Verdict.WRONG, 0.0), (12, 10.0, Verdict.CORRECT, 1.0)],
)
def test_a_number_is_right_from_the_threshold_on(
    tmp_path: Path, value: float, threshold: float, verdict: Verdict, worth: float
) -> None:
    scored = score(open_scored(tmp_path, function(f"return {value}"), threshold=threshold), "5")

    assert (scored.verdict, scored.score, scored.parts["score"]) == (verdict, worth, value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no unit')", r"ValueError: no unit \(line 2\)"),
        (r"raise ValueError('\ud800')", r"ValueError: \?"),
        ("return float('nan')", "not a finite number"),
        ("return 'right'", "not a number"),
        ("open('/etc/passwd')", "FileNotFoundError"),
        ("import socket; socket.create_connection(('192.0.2.1', 80), 1)", "Error"),
        ("import os; os._exit(0)", "process exited"),
    ],
)
def test_a_file_that_fails_on_an_answer_scores_nothing(tmp_path: Path, body: str, message: str) -> None:
    scored = score(open_scored(tmp_path, function(body)), "5")

    assert scored.verdict is Verdict.FAILED
    assert re.search(message, scored.error or "")
    assert (scored.error or "").encode()


@pytest.mark.parametrize(
    ("code", "message"),
    [("x = 1", "no function score"), ("def score(:", "SyntaxError"), (None, "cannot be read")],
)
def test_a_file_that_cannot_be_used_is_told_before_anything_runs(
    tmp_path: Path, code: str | None, message: str
) -> None:
    with pytest.raises(BenchmarkUnusable, match=message):
        open_scored(tmp_path, code)


def test_the_manifest_names_the_file_by_its_content(tmp_path: Path) -> None:
    manifests = []
    for value in (1, 1, 2):
        benchmark = open_scored(tmp_path, function(f"return {value}"))
        manifests.append(benchmark.manifest()["scorer_sha256"])
        benchmark.close()

    assert manifests[0] == manifests[1] != manifests[2]
