"""`trellis datasets` and `trellis pipelines` against a real API; tasks are carried out by workers' code."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from trellis_cli import uploading
from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem
from trellis_testing.commands import cache_of, carry_out_data_tasks, trellis, trellis_with_workers
from trellis_tools.bench.light_platform import LightPlatform

SUMS = [{"prompt": f"1+{n}=", "answer": str(n + 1)} for n in range(6)]
CLEAN = """
name: {name}
steps:
  - operator: exact_duplicates
  - operator: length
    name: not too long
    params: {{where: prompt, unit: characters, maximum: 5}}
"""


def write_rows(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def sums(platform: LightPlatform, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Name of a dataset: six sums, one of them twice, and one that is long."""
    name = f"sums of {request.node.name}"
    rows = [*SUMS, SUMS[0], {"prompt": "1 + 1 + 1 =", "answer": "3"}]
    file = write_rows(tmp_path / "sums.jsonl", rows)
    uploaded = trellis_with_workers(platform, "datasets", "upload", str(file), "--name", name)
    assert uploaded.returncode == 0, uploaded.stderr
    return name


def history(platform: LightPlatform, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(trellis(platform, "datasets", "versions", name, "--json").stdout)
    return found


def test_rows_are_uploaded_and_read_back(platform: LightPlatform, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "readable.jsonl", SUMS)

    uploaded = json.loads(trellis(platform, "datasets", "upload", str(file), "--no-wait", "--json").stdout)
    assert uploaded["state"] == "creating"
    carry_out_data_tasks(platform)
    rows = trellis(platform, "datasets", "rows", uploaded["id"], "--limit", "1")
    found = trellis(platform, "datasets", "rows", uploaded["name"], "--text", "1+4")
    shown = trellis(platform, "datasets", "show", uploaded["name"])

    assert json.loads(rows.stdout) == SUMS[0]
    assert json.loads(found.stdout) == SUMS[4]
    assert (uploaded["id"] in shown.stdout, "ready" in shown.stdout) == (True, True)


@pytest.mark.slow
def test_several_files_make_a_dataset_each(platform: LightPlatform, tmp_path: Path) -> None:
    files = [write_rows(tmp_path / f"{name}.jsonl", SUMS) for name in ("july", "august")]

    done = trellis_with_workers(platform, "datasets", "upload", *map(str, files), "--json")
    listed = json.loads(trellis(platform, "datasets", "list", "--json").stdout)
    refused = trellis(platform, "datasets", "upload", *map(str, files), "--name", "one")

    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["state"] for each in made] == ["ready", "ready"]
    assert {each["id"] for each in made} <= {each["id"] for each in listed}
    assert refused.returncode == ExitCode.USAGE


def test_rows_that_cannot_be_read_are_told_of(platform: LightPlatform, tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text('{"prompt": "1+1=", "answer": "2"}\n{"prompt": \n')

    done = trellis_with_workers(platform, "datasets", "upload", str(file))

    assert done.returncode == 0, done.stderr
    assert "1 rows, prompt-answer" in done.stdout
    assert "quarantine" in done.stderr


def test_a_file_without_rows_is_a_failure_that_names_the_line(
    platform: LightPlatform, tmp_path: Path
) -> None:
    file = tmp_path / "useless.jsonl"
    file.write_text('{"prompt": \n')

    done = trellis_with_workers(platform, "datasets", "upload", str(file))

    assert done.returncode == ExitCode.FAILED
    assert "line 1" in done.stderr


@pytest.fixture
def small_pieces(platform: LightPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uploads of this process take several requests, and keep their notes where the commands do."""
    monkeypatch.setattr(uploading, "PIECE_BYTES", 100)
    monkeypatch.setenv("XDG_CACHE_HOME", cache_of(platform))


def break_off(platform: LightPlatform, file: Path) -> str:
    """Begin an upload as a command does that is ended in the middle; the id."""

    def tell(there: int) -> None:
        if there:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uploading.send_file(platform.client, file, tell=tell)
    upload = uploading.Note(platform.client, file).read()
    assert upload is not None
    return upload


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("is_noted", [True, False])
def test_an_upload_that_broke_off_goes_on(platform: LightPlatform, tmp_path: Path, is_noted: bool) -> None:
    file = write_rows(tmp_path / f"broken off {is_noted}.jsonl", SUMS)
    upload = break_off(platform, file)
    resume = [] if is_noted else ["--resume", upload]
    if not is_noted:
        uploading.Note(platform.client, file).forget()

    done = trellis_with_workers(platform, "datasets", "upload", str(file), *resume, "--json")

    made = json.loads(done.stdout)
    assert "100 B already uploaded" in done.stderr
    assert (made["row_count"], made["source"]["name"]) == (len(SUMS), file.name)
    assert uploading.Note(platform.client, file).read() is None


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.slow
def test_a_file_that_has_changed_is_sent_anew(platform: LightPlatform, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "changed.jsonl", SUMS)
    upload = break_off(platform, file)
    write_rows(file, SUMS[:3])

    resumed = trellis(platform, "datasets", "upload", str(file), "--resume", upload)
    done = trellis_with_workers(platform, "datasets", "upload", str(file), "--json")
    gone = trellis(platform, "datasets", "upload", str(file), "--resume", "up_000000000000")

    assert resumed.returncode == ExitCode.USAGE
    assert "already uploaded" not in done.stderr
    assert json.loads(done.stdout)["row_count"] == 3
    assert (gone.returncode, "no upload" in gone.stderr) == (ExitCode.REFUSED, True)


class LossyClient(ApiClient):
    """Every second piece arrives without its answer being heard."""

    sent = 0

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = super().send(method, path, **options)
        self.sent += method == "PATCH"
        if method == "PATCH" and self.sent % 2:
            raise Problem("the line is dead", exit_code=ExitCode.UNREACHABLE)
        return answer


@pytest.mark.usefixtures("small_pieces")
def test_an_answer_that_is_lost_does_not_end_an_upload(platform: LightPlatform, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "lossy.jsonl", SUMS)
    token = platform.settings.admin_token_path.read_text().strip()
    told: list[int] = []

    upload = uploading.send_file(LossyClient(platform.client.url, token), file, tell=told.append)

    assert platform.client.get(f"/uploads/{upload}")["is_complete"]
    assert told == sorted(told)
    assert told[-1] == file.stat().st_size


@pytest.mark.slow
def test_rows_below_the_data_root_are_imported(platform: LightPlatform) -> None:
    write_rows(platform.settings.data_root / "shelf.jsonl", SUMS)

    done = trellis_with_workers(
        platform, "datasets", "import", "path:shelf.jsonl", "--name", "shelf", "--license", "mit"
    )
    escaped = trellis(platform, "datasets", "import", "path:../outside.jsonl")
    unknown = trellis(platform, "datasets", "import", "ftp://host/rows.jsonl")

    assert (done.returncode, "6 rows" in done.stdout) == (0, True)
    listed = platform.client.get("/datasets")["items"]
    assert [each["licences"] for each in listed if each["name"] == "shelf"] == [["mit"]]
    assert escaped.returncode == ExitCode.REFUSED
    assert (unknown.returncode, "hub:OWNER/NAME" in unknown.stderr) == (ExitCode.USAGE, True)


@pytest.mark.slow
def test_more_rows_make_versions_that_can_be_compared_and_undone(
    platform: LightPlatform, sums: str, tmp_path: Path
) -> None:
    more = write_rows(tmp_path / "more.jsonl", [{"prompt": "2+2=", "answer": "4"}])

    tagged = trellis(platform, "datasets", "tag", sums, "v1")
    added = trellis_with_workers(platform, "datasets", "upload", str(more), "--to", sums)
    assert (tagged.returncode, added.returncode) == (0, 0), added.stderr
    different = trellis_with_workers(platform, "datasets", "diff", sums, "v1")
    as_json = json.loads(trellis(platform, "datasets", "diff", sums, "v1", "--json").stdout)
    branched = trellis(platform, "datasets", "branch", sums, "trial", "v1")
    undone = trellis(platform, "datasets", "rollback", sums, "v1", "-m", "as it was")
    unknown = trellis(platform, "datasets", "rollback", sums, "v9")

    assert "+ train" in different.stdout
    assert as_json["total"]["added"] == 1
    assert as_json["rows"]["train"]["added"][0]["after"]["prompt"] == "2+2="
    assert (branched.returncode, undone.returncode) == (0, 0), undone.stderr
    assert unknown.returncode == ExitCode.REFUSED
    found = history(platform, sums)
    assert [each["row_count"] for each in found] == [8, 9, 8]
    assert (found[0]["message"], found[2]["tags"], found[2]["branches"]) == ("as it was", ["v1"], ["trial"])
    assert trellis(platform, "datasets", "branch", sums, "trial", "--delete").returncode == 0
    assert history(platform, sums)[2]["branches"] == []


@pytest.mark.slow
def test_rows_are_downloaded_once(platform: LightPlatform, sums: str, tmp_path: Path) -> None:
    file = tmp_path / "here.jsonl"

    done = trellis(platform, "datasets", "download", sums, "-o", str(file))
    again = trellis(platform, "datasets", "download", sums, "-o", str(file))
    piped = trellis(platform, "datasets", "download", sums, "-o", "-", "--form", "csv")
    unknown = trellis(platform, "datasets", "download", sums, "-o", str(tmp_path / "no"), "--split", "none")

    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in file.read_text().splitlines()][:6] == SUMS
    assert again.returncode == ExitCode.USAGE
    assert len(piped.stdout.splitlines()) == 9
    assert unknown.returncode == ExitCode.REFUSED
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here.jsonl", "sums.jsonl"]


@pytest.mark.slow
def test_a_dataset_is_deleted_by_its_name(platform: LightPlatform, sums: str) -> None:
    gone = trellis(platform, "datasets", "delete", sums)
    again = trellis(platform, "datasets", "delete", sums)

    assert gone.returncode == 0
    assert (again.returncode, "no dataset named" in again.stderr) == (ExitCode.REFUSED, True)


@pytest.mark.slow
def test_a_pipeline_makes_the_next_version(platform: LightPlatform, sums: str, tmp_path: Path) -> None:
    file = tmp_path / "clean.yaml"
    file.write_text(CLEAN.format(name="tidy"))

    done = trellis_with_workers(platform, "pipelines", "run", str(file), "--dataset", sums)

    assert done.returncode == 0, done.stderr
    assert "8 rows in, 6 out (train 6)" in done.stdout
    assert "not too long" in done.stdout
    assert [each["row_count"] for each in history(platform, sums)] == [6, 8]
    listed = trellis(platform, "pipelines", "list", "--runs", "--dataset", sums)
    run = done.stdout.split()[0]
    assert run in listed.stdout
    assert "8 rows in, 6 out" in trellis(platform, "pipelines", "show", run).stdout


@pytest.mark.slow
def test_a_saved_pipeline_makes_a_dataset(platform: LightPlatform, sums: str, tmp_path: Path) -> None:
    file = tmp_path / "clean.yaml"
    file.write_text(CLEAN.format(name="kept"))
    saved = json.loads(trellis(platform, "pipelines", "save", str(file), "--json").stdout)
    file.write_text(CLEAN.format(name="kept") + "  - operator: html\n")

    changed = trellis(platform, "pipelines", "save", str(file), "-m", "markup goes")
    shown = trellis(platform, "pipelines", "show", "kept")
    into = ("--dataset", sums, "--into", "dataset:tidy sums", "--json")
    done = trellis_with_workers(platform, "pipelines", "run", "kept", *into)

    assert saved["version"] == 1
    assert f"{saved['id']}  kept  version 2" in changed.stdout
    assert "operator: html" in shown.stdout
    assert json.loads(done.stdout)["report"]["rows_out"] == 6
    rows = trellis(platform, "datasets", "rows", "tidy sums", "--limit", "100").stdout
    assert [json.loads(line) for line in rows.splitlines()] == SUMS
    assert "kept" in trellis(platform, "pipelines", "list").stdout


def test_a_pipeline_that_cannot_run_is_refused_with_every_place(
    platform: LightPlatform, sums: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(
        "name: wrong\nsteps:\n  - operator: lenght\n  - {operator: html, params: {max_ratio: 7}}\n"
    )

    done = trellis(platform, "pipelines", "run", str(file), "--dataset", sums)
    nowhere = trellis(platform, "pipelines", "run", "no such", "--dataset", sums)
    bad_output = trellis(platform, "pipelines", "run", str(file), "--dataset", sums, "--into", "heaven")

    assert done.returncode == ExitCode.REFUSED
    assert ("steps.0" in done.stderr, "steps.1.params.max_ratio" in done.stderr) == (True, True)
    assert nowhere.returncode == ExitCode.REFUSED
    assert bad_output.returncode == ExitCode.USAGE


@pytest.mark.slow
def test_a_run_is_cancelled_and_tells_so_by_its_exit_code(
    platform: LightPlatform, sums: str, tmp_path: Path
) -> None:
    file = tmp_path / "clean.yaml"
    file.write_text(CLEAN.format(name="never"))
    arguments = ("pipelines", "run", str(file), "--dataset", sums, "--into", "none")

    run = json.loads(trellis(platform, *arguments, "--no-wait", "--json").stdout)["task"]["id"]
    cancelled = trellis(platform, "pipelines", "cancel", run)
    shown = trellis(platform, "pipelines", "show", run)

    assert cancelled.stdout.strip() == "cancelled"
    assert "cancelled" in shown.stdout


@pytest.mark.slow
def test_a_run_that_fails_has_an_exit_code(platform: LightPlatform, sums: str, tmp_path: Path) -> None:
    file = tmp_path / "strict.yaml"
    file.write_text(
        "name: strict\nsteps:\n  - {operator: length, params: {unit: characters, minimum: 5000}}\n"
    )

    done = trellis_with_workers(platform, "pipelines", "run", str(file), "--dataset", sums)

    assert done.returncode == ExitCode.FAILED
    assert "Traceback" not in done.stderr


def test_operators_tell_their_parameters(platform: LightPlatform) -> None:
    listed = trellis(platform, "pipelines", "operators")
    one = trellis(platform, "pipelines", "operators", "length")
    unknown = trellis(platform, "pipelines", "operators", "lenght")

    assert "minhash_duplicates" in listed.stdout
    assert "minimum" in one.stdout
    assert (unknown.returncode, "no operator named" in unknown.stderr) == (ExitCode.REFUSED, True)
