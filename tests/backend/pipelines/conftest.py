"""A dataset with rows worth cleaning, and runs that the workers' own code carries out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.uploads import Finish, Upload, as_lines, upload_file

PIPELINES = "/api/v1/pipelines"
RUNS = f"{PIPELINES}/runs"
#: Ten questions: three are asked twice, two are answered with nothing.
ROWS = [
    *({"question": f"What is {n} plus {n}, please?", "answer": f"It is {2 * n}."} for n in range(5)),
    *({"question": f"What is {n} plus {n}, please?", "answer": f"It is {2 * n}."} for n in range(3)),
    {"question": "And what is nothing?", "answer": ""},
    {"question": "And what is less?", "answer": "   "},
]
STEPS = [{"operator": "empty_answers"}, {"operator": "exact_duplicates"}]
CLEAN = {"name": "clean", "steps": STEPS}
Call = Callable[..., dict[str, Any]]


@pytest.fixture
def finish(settings: Settings, database: Database) -> Finish:
    """Carries out everything that waits."""
    return partial(finish_data_tasks, settings, database)


@pytest.fixture
def upload(client: TestClient, finish: Finish) -> Upload:
    """Uploads a file in one request and waits for its rows."""
    return partial(upload_file, client, finish)


@pytest.fixture
def rows(upload: Upload) -> dict[str, Any]:
    """The dataset of the ten questions."""
    return upload(as_lines(ROWS), "questions.jsonl")


@pytest.fixture
def run(client: TestClient, finish: Finish) -> Call:
    """Runs a pipeline to its end; the run as it is then."""

    def go(dataset: dict[str, Any], **request: Any) -> dict[str, Any]:
        body = {
            "dataset": dataset["id"],
            **({} if "pipeline_id" in request else {"pipeline": CLEAN}),
            **request,
        }
        answer = client.post(RUNS, json=body)
        assert answer.status_code == 202, answer.text
        finish()
        found: dict[str, Any] = client.get(f"{RUNS}/{answer.json()['task']['id']}").json()
        return found

    return go
