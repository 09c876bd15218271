"""Whatever a client sends, the API answers as its OpenAPI schema says, and never with a server error."""

import json
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import REPOSITORY_ROOT, Settings
from trellis_api.jobs import repository
from trellis_api.jobs.models import Attempt, Checkpoint, Job
from trellis_api.main import API_PREFIX, create_app
from trellis_api.openapi import build_schema
from trellis_contracts.attempt import locate_checkpoints
from trellis_contracts.states import JobState

AnyOperation: TypeAlias = "APIOperation[Any, Any, Any, Any]"
AnyCase: TypeAlias = "Case[Any]"
EXAMPLES_PER_OPERATION = 60
CHECKPOINT_STEP = 4
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: Logging out twice is no mistake.
OPEN_PATHS = {f"{API_PREFIX}/auth/login", f"{API_PREFIX}/auth/logout"}
SCHEMA = schemathesis.openapi.from_dict(build_schema())
# The event stream of a job has no end; the tests of jobs cover it.
OPERATIONS = [
    operation
    for operation in map(operator.methodcaller("ok"), SCHEMA.get_all_operations())
    if not operation.path.endswith("/events")
]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The whole API on a database of its own, without broker and cluster."""
    settings = Settings(
        data_root=tmp_path_factory.mktemp("platform"),
        database_url=None,
        redis_url=None,
        ray_dashboard_url=None,
        min_free_disk_bytes=0,
        max_upload_bytes=1_000_000,
    )
    upgrade(settings)
    app = create_app(settings)
    # Schemathesis runs the application's start and end around its calls; here it is not started twice.
    client = TestClient(app)
    token = ensure_admin_token(app.state.database, path=settings.admin_token_path)
    client.headers["Authorization"] = f"Bearer {token}"
    yield client
    app.state.database.dispose()


@pytest.fixture
def known_ids(platform: TestClient) -> dict[str, str | int]:
    """Ids of things that exist, by the name of the path parameter: made anew, because a test deletes them."""
    rows = "\n".join(json.dumps({"question": f"{n}+1", "answer": str(n + 1)}) for n in range(20))
    name = new_id("name")
    dataset = platform.post(f"{API_PREFIX}/datasets", files={"file": (f"{name}.jsonl", rows)}).json()
    source = {"kind": "hub", "repo_id": "team/tiny"}
    model = platform.post(f"{API_PREFIX}/models", json={"name": name, "source": source}).json()
    job_id = new_id("job")
    with platform.app.state.database.write() as session:  # type: ignore[attr-defined]
        job = Job(
            id=job_id,
            name="finished",
            recipe="grpo",
            state=JobState.FAILED,
            model_id=model["id"],
            dataset_id=dataset["id"],
            total_steps=10,
            step=4,
        )
        repository.add_job(session, job=job, tags=["a", "b"])
        session.add(Attempt(job_id=job_id, number=1, manifest={"seed": 1}))
        session.add(_checkpoint(platform, job_id))
    code = "def score(prompt, response, answer, row): return 1.0"
    file = platform.post(f"{API_PREFIX}/rewards/files", json={"name": name, "code": code}).json()
    mixture = {"rewards": [{"name": "exact"}], "dataset": dataset["id"]}
    dry_run = platform.post(f"{API_PREFIX}/rewards/dry-runs", json=mixture).json()
    rewards = {"file_id": file["id"], "dry_run_id": dry_run["id"]}
    return rewards | {
        "dataset_id": dataset["id"],
        "model_id": model["id"],
        "job_id": job_id,
        "recipe_id": "grpo",
        "step": CHECKPOINT_STEP,
    }


def _checkpoint(platform: TestClient, job_id: str) -> Checkpoint:
    data_root: Path = platform.app.state.settings.data_root  # type: ignore[attr-defined]
    folder = locate_checkpoints(data_root, job_id) / f"global_step_{CHECKPOINT_STEP}" / "huggingface"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(8))
    path = str(folder.parent.relative_to(data_root))
    return Checkpoint(
        job_id=job_id, step=CHECKPOINT_STEP, attempt=1, path=path, size_bytes=8, created_at=utc_now()
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_what_the_schema_says(
    operation: AnyOperation, platform: TestClient, known_ids: dict[str, str | int]
) -> None:
    operation.app = SCHEMA.app = platform.app
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES_PER_OPERATION,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), is_known=st.booleans())
    def call_and_validate(case: AnyCase, is_known: bool) -> None:
        if is_known:
            case.path_parameters = {
                name: known_ids.get(name, value) for name, value in (case.path_parameters or {}).items()
            }
        answer = case.call(headers={"Authorization": platform.headers["Authorization"]})
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    call_and_validate()

    assert statuses != {404}, "no call reached anything that exists"


def test_the_exported_schema_is_the_one_that_is_served(platform: TestClient) -> None:
    exported = json.loads((REPOSITORY_ROOT / "frontend" / "openapi.json").read_text())
    served = platform.get(f"{API_PREFIX}/openapi.json").json()

    assert exported == served, "run `python -m trellis_api.openapi > frontend/openapi.json`"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_nothing_but_health_and_login_answers_without_a_login(
    operation: AnyOperation, platform: TestClient
) -> None:
    call = _caller_without_login(platform)
    path = operation.path.format(
        job_id=new_id("job"), dataset_id=new_id("ds"), model_id=new_id("mdl"), recipe_id="grpo",
        file_id=new_id("rwf"), dry_run_id=new_id("dry"), step=CHECKPOINT_STEP,
    )  # fmt: skip

    status = call(operation.method, path)

    is_open = not path.startswith(API_PREFIX) or path in OPEN_PATHS
    assert (status != 401) if is_open else (status == 401)


def _caller_without_login(platform: TestClient) -> Callable[[str, str], int]:
    stranger = TestClient(platform.app)

    def call(method: str, path: str) -> int:
        return stranger.request(method.upper(), path).status_code

    return call
