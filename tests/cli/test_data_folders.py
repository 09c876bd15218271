"""`trellis data` on local files, as scripts use it: exit codes, JSON, and a run that goes on after a kill."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from trellis_testing.chat_endpoint import running_chat_endpoint
from trellis_testing.commands import run_here

PIPELINE = """\
name: clean
steps:
  - operator: html
  - operator: empty_answers
  - operator: exact_duplicates
  - operator: split
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "trellis_cli", "data", *map(str, arguments)]


def trellis(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return run_here("data", *map(str, arguments), environment={"COLUMNS": "200"})


def answer_of(*arguments: object) -> Any:
    done = trellis(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    rows = [
        {"id": i, "prompt": f"<b>What</b> is {i % 450}?", "answer": f"It is {i % 450}." if i % 5 else ""}
        for i in range(500)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    return file


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE)
    return file


def test_a_file_is_imported_detected_and_counted(raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "raw"

    report = answer_of("import", raw, "--to", folder)
    again = trellis("import", raw, "--to", folder)

    assert (report["rows"], report["quarantined"]) == (500, 1)
    assert (again.returncode, "already" in again.stderr) == (2, True)
    assert answer_of("detect", folder)[0]["format"] == "prompt-answer"
    statistics = answer_of("stats", folder)
    assert (statistics["rows"], statistics["duplicates"]) == (500, 0)


def test_a_pipeline_runs_on_a_file_of_any_kind_and_its_rows_become_versions(
    raw: Path, pipeline: Path, tmp_path: Path
) -> None:
    folder, store = tmp_path / "run", tmp_path / "versions"

    done = trellis("run", pipeline, "-i", raw, "-o", folder, "--processes", 1)
    report = answer_of("run", pipeline, "-i", raw, "-o", folder)

    assert done.returncode == 0, done.stderr
    assert "empty_answer 100" in done.stdout
    assert "1 rows cannot be read" in done.stderr
    assert [step["dropped"] for step in report["steps"]] == [0, 100, 40, 0]
    assert report["rows_out"] == 360

    first = answer_of("commit", folder / "imported", "--store", store, "-m", "raw")
    second = answer_of("commit", folder, "--store", store, "-m", "clean", "--author", "Ada")
    assert second["parents"] == [first["id"]]
    assert sum(second["rows"].values()) == 360
    assert "exact_duplicates" in second["provenance"]["pipeline"]
    assert trellis("tag", "v1", first["id"][:8], "--store", store).returncode == 0
    assert [each["names"] for each in answer_of("log", "--store", store)] == [["main"], ["v1"]]
    about = ("--from", "v1", "-m", "again", "--branch", "again", "--no-statistics")
    answer_of("run", pipeline, "-i", f"{store}@v1", "-o", tmp_path / "again", "--processes", 1)
    third = answer_of("commit", tmp_path / "again", "--store", store, *about)
    assert (third["provenance"]["inputs"], third["tree"]) == ([first["id"]], second["tree"])
    found = answer_of("diff", "v1", "main", "--store", store, "--key", "id", "--rows", 1)
    assert found["total"]["removed"] + found["total"]["changed"] == 500
    back = answer_of("rollback", "v1", "--store", store)
    assert back["tree"] == first["tree"]
    assert trellis("checkout", tmp_path / "out", "v1", "--store", store).returncode == 0
    assert sum(pq.read_metadata(path).num_rows for path in (tmp_path / "out" / "train").iterdir()) == 500
    assert trellis("verify", "--store", store).returncode == 0
    assert trellis("gc", "--store", store).returncode == 0


@pytest.mark.slow
def test_rows_of_one_file_are_never_taken_for_those_of_another(
    raw: Path, pipeline: Path, tmp_path: Path
) -> None:
    folder, other = tmp_path / "run", tmp_path / "other.jsonl"
    other.write_text('{"prompt": "What?", "answer": "That."}\n')
    answer_of("run", pipeline, "-i", raw, "-o", folder)

    refused = trellis("run", pipeline, "-i", other, "-o", folder)
    anew = answer_of("run", pipeline, "-i", other, "-o", folder, "--no-resume")

    assert (refused.returncode, "another file" in refused.stderr) == (2, True), refused.stderr
    assert anew["rows_in"] == 1


@pytest.mark.slow
def test_a_folder_that_holds_another_run_is_a_mistake_of_the_command(
    raw: Path, pipeline: Path, tmp_path: Path
) -> None:
    folder, rows = tmp_path / "run", tmp_path / "raw"
    answer_of("import", raw, "--to", rows)
    answer_of("run", pipeline, "-i", rows, "-o", folder)
    pipeline.write_text("name: other\nsteps:\n  - operator: html\n")

    refused = trellis("run", pipeline, "-i", rows, "-o", folder)

    assert (refused.returncode, "another" in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize("content", ['{"rows": 5}', "no JSON", "\udcff"])
def test_a_report_that_no_run_wrote_is_told(content: str, raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    answer_of("import", raw, "--to", folder)
    (folder / "report.json").write_text(content, errors="surrogateescape")

    done = trellis("stats", folder)

    assert done.returncode == 2
    assert "is not a run report" in done.stderr


def test_a_preview_shows_steps_and_writes_nothing(raw: Path, pipeline: Path, tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    answer_of("import", raw, "--to", folder)
    before = sorted(tmp_path.rglob("*"))

    shown = answer_of("preview", pipeline, "-i", folder, "--rows", 3)
    for_people = trellis("preview", pipeline, "-i", folder, "--rows", 3)

    assert [row["state"] for row in shown["steps"][1]["rows"]] == ["dropped", "kept", "kept"]
    assert "row 0 dropped (empty_answer)" in for_people.stdout
    assert sorted(tmp_path.rglob("*")) == before


JUDGE = """
base_url: {url}
model: judge-model
requests_per_minute: 60000
input_price: 1.0
output_price: 2.0
max_cost: {max_cost}
"""


def test_a_judge_described_in_a_file_scores_rows(raw: Path, tmp_path: Path) -> None:
    file, asked, rows = tmp_path / "strict.yaml", tmp_path / "judged.yaml", tmp_path / "raw"
    answer_of("import", raw, "--to", rows)
    asked.write_text("name: judged\nsteps:\n  - operator: judge\n    params: {scorer: strict}\n")

    with running_chat_endpoint() as endpoint:
        endpoint.reply_to = lambda _: (200, '{"score": 7}')
        file.write_text(JUDGE.format(url=endpoint.url, max_cost=1.0))
        shown = answer_of("preview", asked, "-i", rows, "--rows", 4, "--judge", f"strict={file}")

    assert [row["after"][0]["judge"] for row in shown["steps"][0]["rows"]] == pytest.approx([0.7] * 4)


def test_a_judge_that_is_described_wrongly_is_wrong_usage(raw: Path, pipeline: Path, tmp_path: Path) -> None:
    file, rows = tmp_path / "strict.yaml", tmp_path / "raw"
    answer_of("import", raw, "--to", rows)
    file.write_text(JUDGE.format(url="http://localhost:1", max_cost=0))

    done = trellis("preview", pipeline, "-i", rows, "--judge", f"strict={file}")

    assert done.returncode == 2
    assert "max_cost" in done.stderr
    assert trellis("preview", pipeline, "-i", rows, "--judge", "strict").returncode == 2


GENERATION = """
name: more sums
endpoint: {{base_url: "{url}", model: writer, requests_per_minute: 60000, input_price: 1.0}}
max_cost: {max_cost}
method: {{kind: rejection-sampling, samples: 1, check: {{kind: contains}}}}
"""


def test_a_model_writes_rows_that_the_other_commands_take(raw: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "more.yaml", tmp_path / "more"
    with running_chat_endpoint() as endpoint:
        endpoint.reply_to = lambda question: (200, f"It is {question[15:].rstrip('?')}.")
        file.write_text(GENERATION.format(url=endpoint.url, max_cost=0.01))
        few = trellis("generate", file, "-i", raw, "-o", folder)
        file.write_text(GENERATION.format(url=endpoint.url, max_cost=1))
        report = answer_of("generate", file, "-i", raw, "-o", folder)

    assert (few.returncode, "Budget reached" in few.stderr) == (0, True), few.stderr
    assert (report["rows"], report["dropped"]["no_reference"], report["stopped"]) == (400, 100, None)
    assert answer_of("detect", folder / "output")[0]["format"] == "messages"
    assert answer_of("stats", folder / "output")["rows"] == 400


def test_a_wrong_generation_is_wrong_usage_and_says_where(raw: Path, tmp_path: Path) -> None:
    file = tmp_path / "more.yaml"
    file.write_text(GENERATION.format(url="http://localhost:1", max_cost=0))

    done = trellis("generate", file, "-i", raw, "-o", tmp_path / "more")

    assert (done.returncode, "line 4: max_cost" in done.stderr) == (2, True), done.stderr


def test_operators_explain_themselves() -> None:
    listed = answer_of("operators")
    one = trellis("operators", "minhash_duplicates")

    assert {"html", "minhash_duplicates", "split"} <= {each["id"] for each in listed}
    assert "threshold" in one.stdout
    assert trellis("operators", "minhush").returncode == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\nsteps:\n  - operator: htlm\n", "did you mean 'html'"),
        ("name: x\nsteps:\n  - operator: split\n    params: {mode: sideways}\n", "steps.0.params.mode"),
        ("name: x\nsteps: [", "line 2"),
    ],
)
def test_a_wrong_pipeline_is_wrong_usage_and_says_where(
    raw: Path, tmp_path: Path, text: str, said: str
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text)

    done = trellis("run", wrong, "-i", raw, "-o", tmp_path / "run")

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_not_there_is_told(tmp_path: Path, pipeline: Path) -> None:
    for arguments in (
        ("log", "--store", tmp_path),
        ("stats", tmp_path / "missing"),
        ("preview", pipeline, "-i", tmp_path / "missing"),
    ):
        done = trellis(*arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr


@pytest.mark.faults
def test_a_killed_run_goes_on_when_it_is_called_again(raw: Path, pipeline: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(command("run", pipeline, "-i", raw, "-o", folder))
    deadline = time.monotonic() + 90
    while not (folder / "stages" / "00" / "units").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    was_done = (folder / "report.json").exists()

    report = answer_of("run", pipeline, "-i", raw, "-o", folder)

    assert not was_done
    assert report["rows_out"] == 360
