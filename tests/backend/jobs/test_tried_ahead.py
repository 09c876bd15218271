"""Chat templates are tried while nobody holds the database's write lock."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.tried_ahead import try_templates_of
from trellis_api.models import chat_templates
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

#: What a person asks for, by its path; {model}, {dataset} and {job} are filled in.
JOB = {"name": "n", "recipe": "grpo", "preset": "cpu-tiny", "model": "{model}", "dataset": "{dataset}"}
STAGE = {"id": "first", "recipe": "grpo", "dataset": "{dataset}", "model": {"base": "{model}"}}
EVALUATION = {"targets": [{"kind": "model", "model": "{model}"}], "benchmarks": [{"benchmark": "gsm8k"}]}
SWEEP = {
    "name": "n",
    "job": {each: JOB[each] for each in ("recipe", "preset", "model", "dataset")},
    "parameters": {"learning_rate": {"values": [1e-6, 1e-5]}},
    "search": {"method": "grid"},
    "objective": {"metric": "val/loss"},
}
REQUESTS: dict[str, Any] = {
    "/jobs": JOB,
    "/jobs#by-name": {**JOB, "model": "{name}"},
    "/jobs/{job}/clone": {},
    "/evaluations": EVALUATION,
    "/evaluations/estimate": EVALUATION,
    "/models/{model}/endpoint": {},
    "/sweeps": SWEEP,
    "/job-pipelines": {"name": "n", "stages": [STAGE]},
}


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each process that tried a template, whether somebody held a write transaction."""
    writing: list[int] = []
    found: list[bool] = []
    write, run = Database.write, chat_templates._run

    @contextmanager
    def watched_write(self: Database, *arguments: Any) -> Iterator[Any]:
        with write(self, *arguments) as session:
            writing.append(1)
            try:
                yield session
            finally:
                writing.pop()

    def watched_run(*arguments: Any) -> Any:
        found.append(bool(writing))
        return run(*arguments)

    monkeypatch.setattr(Database, "write", watched_write)
    monkeypatch.setattr(chat_templates, "_run", watched_run)
    return found


def fill_in(document: Any, **names: str) -> Any:
    if isinstance(document, str):
        return document.format(**names)
    if isinstance(document, dict):
        return {key: fill_in(value, **names) for key, value in document.items()}
    return [fill_in(each, **names) for each in document] if isinstance(document, list) else document


@pytest.fixture
def give_template(model: Model, settings: Settings) -> Callable[[str], None]:
    """Gives the model a chat template that nothing has tried before."""

    def give(text: str) -> None:
        folder = settings.data_root / str(model.path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "chat_template.jinja").write_text(f"{{# {model.id} #}}{text}")

    return give


@pytest.mark.parametrize("path", REQUESTS)
def test_no_request_tries_a_template_in_its_transaction(
    path: str,
    client: TestClient,
    model: Model,
    dataset: Dataset,
    make_job: Callable[..., str],
    give_template: Callable[[str], None],
    trials: list[bool],
) -> None:
    job_id = make_job(state=JobState.SUCCEEDED, model_id=model.id, dataset_id=dataset.id, preset="cpu-tiny")
    give_template(f"{{# {path} #}}{{{{ messages[0].content }}}}")
    names = {"model": model.id, "name": model.name, "dataset": dataset.id, "job": job_id}

    answer = client.post(f"/api/v1{path.format(**names)}", json=fill_in(REQUESTS[path], **names))

    assert answer.status_code < 300, answer.text
    assert trials
    assert not any(trials)


def test_a_verdict_that_a_busy_machine_may_have_caused_holds_for_the_transaction(
    client: TestClient,
    model: Model,
    dataset: Dataset,
    give_template: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_template("{# slow #}{{ messages[0].content }}")
    names = {"model": model.id, "dataset": dataset.id, "job": ""}
    asked: list[str] = []

    def take_too_long(*arguments: Any) -> Any:
        asked.append("")
        raise chat_templates.RunawayTemplate("it took longer than 30 s")

    with monkeypatch.context() as patch:
        patch.setattr(chat_templates, "_run", take_too_long)
        refused = client.post("/api/v1/jobs", json=fill_in(JOB, **names))
        during = len(asked)
    monkeypatch.setattr(chat_templates, "_UNSURE_S", 0.0)
    chat_templates._unsure.clear()
    accepted = client.post("/api/v1/jobs", json=fill_in(JOB, **names))

    assert (refused.status_code, refused.json()["error"]) == (422, "chat_template_runaway")
    assert during == 1
    assert accepted.status_code == 201, accepted.text


def test_only_so_many_models_of_a_request_are_tried(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []
    monkeypatch.setattr("trellis_api.jobs.tried_ahead.note_verdicts", tried.append)
    document: Any = [f"mdl_{'a' * 12}"] * 100_000
    for _ in range(5_000):
        document = [document]

    try_templates_of(database.read, settings, document)

    assert tried == []


def test_a_body_that_cannot_be_read_is_refused_as_ever(client: TestClient) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    headers = {"Content-Type": "text/plain"}

    bodies = (deep, "{", "", '["\\ud800", "\\u0000"]')
    answers = [client.post("/api/v1/jobs", content=each, headers=headers) for each in bodies]

    assert [each.status_code for each in answers] == [422] * 4
