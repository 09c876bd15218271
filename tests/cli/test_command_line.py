"""What holds for every command: no traceback, whole ids in pipes, a stored login."""

import stat
from pathlib import Path
from typing import Any

import pytest
from trellis_cli import client as clients
from trellis_cli import login as logins
from trellis_cli import main as mains
from trellis_cli.errors import ExitCode, Problem, Refusal
from trellis_cli.job_requests import Choice, make_request
from trellis_cli.main import app
from trellis_cli.output import print_table
from trellis_cli.resolve_by_name import find_dataset, find_job, name_to_ids
from trellis_cli.set_options import read_parameters
from trellis_contracts.connection import BadConnectionFile, find_connection, read_connection
from trellis_testing.commands import run_here
from typer.testing import CliRunner

RUNNER = CliRunner()
JOB_ID = "job_k2n6q4y7c3ta"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


class Pages:
    """A platform's lists, by path."""

    def __init__(self, **lists: list[dict[str, str]]) -> None:
        self._lists = {f"/{name.replace('_', '-')}": items for name, items in lists.items()}

    def pages(self, path: str, **_: Any) -> Any:
        return iter(self._lists[path])


def test_a_request_that_is_not_there_is_a_sentence() -> None:
    environment = {"TRELLIS_URL": "http://127.0.0.1:9", "TRELLIS_TOKEN": "t"}

    done = run_here("jobs", "submit", "-f", "missing.yaml", environment=environment)

    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr == "error: missing.yaml cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            FileNotFoundError(2, "No such file or directory", "x.json"),
            "error: x.json: No such file or directory",
        ),
        (KeyError("items"), "error: unexpected KeyError: 'items'"),
    ],
)
def test_a_fault_of_a_command_is_told_without_a_traceback(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(mains, "app", fail)
    with pytest.raises(SystemExit) as caught:
        mains.main()
    assert caught.value.code == ExitCode.FAILED
    assert capsys.readouterr().err.startswith(said)
    monkeypatch.setenv(mains.TRACEBACK_VARIABLE, "1")
    if not isinstance(error, OSError):
        with pytest.raises(type(error)):
            mains.main()


def test_a_table_in_a_pipe_holds_each_row_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "name", "path"), [(JOB_ID, "n" * 100, "p" * 100)])

    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["id", "name", "path"]
    assert row.split() == [JOB_ID, "n" * 100, "p" * 100]


def test_the_version_and_completion_are_there() -> None:
    assert RUNNER.invoke(app, ["--version"]).output.startswith("trellis 0.")
    assert "--install-completion" in RUNNER.invoke(app, ["--help"]).output


def test_a_job_is_launched_in_one_line() -> None:
    choice = Choice(
        recipe="sft", model="m", dataset="d", settings=["learning_rate=1e-4", "epochs=2", "x=null"]
    )

    assert make_request(None, choice) == {
        "recipe": "sft", "model": "m", "dataset": "d", "name": "sft",
        "params": {"learning_rate": 0.0001, "epochs": 2, "x": None},
    }  # fmt: skip
    with pytest.raises(Problem, match="missing --model, --dataset"):
        make_request(None, Choice(recipe="sft"))


def test_options_go_before_a_file(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: n\nrecipe: sft\nparams: {epochs: 1, batch_size: 4}\ncolumns: {prompt: q}\n")

    request = make_request(file, Choice(name="mine", settings=["epochs=3"], columns=["answer=a"]))

    assert request == {
        "name": "mine", "recipe": "sft", "params": {"epochs": 3, "batch_size": 4},
        "columns": {"prompt": "q", "answer": "a"},
    }  # fmt: skip


def test_settings_are_read_as_people_write_them() -> None:
    found = read_parameters(["a=1e-4", "b=true", "c=text", 'd={"x": 1}', "e=[q_proj, v_proj]", "f=a=b"])

    assert found == {
        "a": 0.0001, "b": True, "c": "text", "d": {"x": 1}, "e": ["q_proj", "v_proj"], "f": "a=b",
    }  # fmt: skip
    with pytest.raises(Problem, match="NAME=VALUE, not 'x'"):
        read_parameters(["x"])


def test_names_do_where_ids_do_and_what_cannot_be_undone_is_not_guessed() -> None:
    client: Any = Pages(
        jobs=[{"id": "job_2", "name": "run"}, {"id": "job_1", "name": "run"}],
        models=[{"id": "mdl_1", "name": "m"}],
        workflows=[{"id": "wfl_1", "name": "agent"}],
    )

    assert find_job(client, JOB_ID) == JOB_ID
    assert find_job(client, "run") == "job_2"
    with pytest.raises(Problem, match="2 items are named 'run'") as caught:
        find_job(client, "run", must_be_one=True)
    assert caught.value.hint == "job_2, job_1"
    with pytest.raises(Problem, match="no job named 'other'"):
        find_job(client, "other")
    request = name_to_ids(client, {"model": "m", "params": {"workflow": "agent", "epochs": 1}})
    assert request == {"model": "mdl_1", "params": {"workflow": "wfl_1", "epochs": 1}}


def test_a_name_in_other_capitals_is_taken_where_only_one_thing_has_it() -> None:
    datasets = [{"id": f"ds_{number}", "name": name} for number, name in enumerate(("Sums", "sums", "Words"))]
    client: Any = Pages(datasets=datasets)

    assert [find_dataset(client, name) for name in ("sums", "Sums", "WORDS")] == ["ds_1", "ds_0", "ds_2"]
    with pytest.raises(Problem, match="2 items are named 'SUMS'; use the ID") as caught:
        find_dataset(client, "SUMS")
    assert caught.value.hint == "ds_0, ds_1"


def test_a_login_is_stored_for_its_owner_alone_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients.ApiClient, "get", lambda *_: {"name": "admin"})

    done = RUNNER.invoke(app, ["login", "https://trellis.example/"], input="secret\n")

    path = tmp_path / "config" / "trellis" / "connection.json"
    assert done.exit_code == 0, done.output
    assert "logged in to https://trellis.example as admin" in done.output
    assert "secret" not in done.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    used = clients.connect()
    assert (used.url, used.token_header) == ("https://trellis.example", "Bearer secret")
    # What names a platform of this machine goes before it.
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path))
    with pytest.raises(Problem, match="no platform is running"):
        clients.connect()
    assert RUNNER.invoke(app, ["logout"]).output == "logged out\n"
    assert read_connection() is None


def test_a_token_that_is_not_known_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise Refusal("unauthorized", status=401)

    monkeypatch.setattr(logins.ApiClient, "get", refuse)
    with pytest.raises(Problem, match="rejected this token"):
        RUNNER.invoke(app, ["login", "https://t.example", "--token", "x"], catch_exceptions=False)
    assert read_connection() is None
    with pytest.raises(Problem, match="not a valid URL"):
        RUNNER.invoke(app, ["login", "t.example"], catch_exceptions=False)


def test_variables_go_before_a_login_and_a_token_stays_with_its_platform(tmp_path: Path) -> None:
    folder = tmp_path / "trellis"
    folder.mkdir()
    (folder / "connection.json").write_text('{"url": "https://a.example", "token": "a"}')
    home = {"XDG_CONFIG_HOME": str(tmp_path)}

    both = find_connection({**home, "TRELLIS_URL": "https://b.example", "TRELLIS_TOKEN": "b"})
    assert both is not None
    assert (both.url, both.token) == ("https://b.example", "b")
    assert find_connection({**home, "TRELLIS_URL": "https://b.example"}) is None
    assert find_connection({**home, "TRELLIS_TOKEN": "c"}) == both.model_copy(
        update={"url": "https://a.example", "token": "c"}
    )
    (folder / "connection.json").write_text("{}")
    with pytest.raises(BadConnectionFile, match=r"connection\.json"):
        find_connection(home)
