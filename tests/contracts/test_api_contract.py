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
from trellis_api.data_tasks.service import create
from trellis_api.datasets.quarantine import locate
from trellis_api.environments.models import Environment, EnvironmentCall
from trellis_api.evaluations.create import create as create_evaluations
from trellis_api.evaluations.recording import record_result
from trellis_api.evaluations.schemas import EvaluationCreate
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage
from trellis_api.jobs import repository
from trellis_api.jobs.models import Attempt, Checkpoint, Job
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.rollouts.groups import hash_prompt
from trellis_api.jobs.service import claim_for_launch, settle
from trellis_api.main import API_PREFIX, create_app
from trellis_api.models.models import Model
from trellis_api.openapi import build_schema
from trellis_api.reports import service as reports
from trellis_api.reports.folder import report_folder
from trellis_api.reports.schemas import ReportProblem
from trellis_api.sweeps.models import Sweep, SweepRun
from trellis_api.transfers.models import Transfer
from trellis_api.transfers.schemas import GgufCreate, TransferKind, TransferState
from trellis_contracts.attempt import locate_checkpoints
from trellis_contracts.data_tasks import DataTaskState, ImportTask, PathSource
from trellis_contracts.endpoints import OPENAI_PREFIX
from trellis_contracts.events import Rollout, RolloutsEvent
from trellis_contracts.states import JobState
from trellis_recipes.schemas import load_schemas
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.datasets import add_dataset
from trellis_testing.evaluations import leave_results

AnyOperation: TypeAlias = "APIOperation[Any, Any, Any, Any]"
AnyCase: TypeAlias = "Case[Any]"
#: Requests an operation: at every change, and where all tests run.
FEW_EXAMPLES, MANY_EXAMPLES = 6, 60
#: Also a step of the pipeline: both are path parameters of this name.
CHECKPOINT_STEP = 1
BRANCH, TAG = "other", "release"
CHECKPOINT_FILE = "huggingface/model.safetensors"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: Logging out twice is no mistake.
OPEN_PATHS = {f"{API_PREFIX}/auth/login", f"{API_PREFIX}/auth/logout"}
#: Leave everything as it is.
READING_METHODS = {"get", "head", "options"}


@schemathesis.serializer("application/offset+octet-stream")
def as_piece(_context: Any, value: Any) -> bytes:
    """A piece of an upload is sent as it is."""
    return value if isinstance(value, bytes) else str(value).encode()


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
    # A thread of the app would parse Python beside hypothesis, which does so too (trellis_recipes.syntax).
    load_schemas()
    app = create_app(settings)
    # Schemathesis runs the application's start and end around its calls; here it is not started twice.
    client = TestClient(app)
    token = ensure_admin_token(app.state.database, path=settings.admin_token_path)
    client.headers["Authorization"] = f"Bearer {token}"
    yield client
    app.state.database.dispose()


@pytest.fixture(scope="module")
def finished_run(platform: TestClient) -> str:
    """A run that found and dropped a duplicate in its only step."""
    state = platform.app.state  # type: ignore[attr-defined]
    row = {"question": "1+1", "answer": "2"}
    with state.database.write() as session:
        dataset_id = add_dataset(session, state.settings, [row, row]).id
    document = {"name": "duplicates", "steps": [{"operator": "exact_duplicates"}]}
    request = {"pipeline": document, "dataset": dataset_id, "output": {"kind": "none"}}
    run = platform.post(f"{API_PREFIX}/pipelines/runs", json=request).raise_for_status()
    finish_data_tasks(state.settings, state.database)
    task_id: str = run.json()["task"]["id"]
    return task_id


@pytest.fixture(scope="module")
def ids_to_read(platform: TestClient, finished_run: str) -> dict[str, str | int]:
    """Ids of things that exist, by the name of the path parameter, for operations that only read."""
    return _make_known_things(platform, finished_run)


@pytest.fixture
def known_ids(operation: AnyOperation, request: pytest.FixtureRequest) -> dict[str, str | int]:
    """Ids of things that exist: made anew for an operation that may delete or change them."""
    if operation.method in READING_METHODS:
        return dict(request.getfixturevalue("ids_to_read"))
    platform: TestClient = request.getfixturevalue("platform")
    found = _make_known_things(platform, request.getfixturevalue("finished_run"))
    # A page has a number of saved views at most.
    return found | ({"view_id": _saved_view(platform)} if "{view_id}" in operation.path else {})


def _make_known_things(platform: TestClient, finished_run: str) -> dict[str, str | int]:
    name = new_id("name")
    dataset_id, version_id = _ready_dataset(platform)
    place = f"{API_PREFIX}/datasets/{dataset_id}"
    platform.post(f"{place}/branches", json={"name": BRANCH, "version": version_id}).raise_for_status()
    platform.post(f"{place}/tags", json={"name": TAG, "version": version_id}).raise_for_status()
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
            dataset_id=dataset_id,
            total_steps=10,
            step=4,
        )
        repository.add_job(session, job=job, tags=["a", "b"])
        session.add(Attempt(job_id=job_id, number=1, manifest={"seed": 1}))
        session.add(_checkpoint(platform, job_id))
    code = "def score(prompt, response, answer, row): return 1.0"
    file = platform.post(f"{API_PREFIX}/rewards/files", json={"name": name, "code": code}).json()
    agent = {"name": name, "code": "async def workflow(task, model): return 1.0"}
    workflow = platform.post(f"{API_PREFIX}/workflows", json=agent).raise_for_status().json()
    # Unfinished work reads a dataset of its own: the first one can be deleted.
    busy_id, _ = _ready_dataset(platform)
    mixture = {"rewards": [{"name": "exact"}], "dataset": busy_id}
    dry_run = platform.post(f"{API_PREFIX}/rewards/dry-runs", json=mixture).json()
    rewards = {"file_id": file["id"], "dry_run_id": dry_run["id"]}
    return {
        **rewards,
        **_pipeline_and_run(platform, name, busy_id),
        **_finished_evaluation(platform),
        **_environment_and_job_pipeline(platform, busy_id),
        **_openai_file_and_job(platform, model["id"]),
        **_named_model(platform, model["id"]),
        "workflow_id": workflow["id"],
        "rollout_id": _rollout(platform, job_id),
        "prompt_key": hash_prompt("p"),
        "dataset_id": dataset_id,
        "version_id": version_id,
        "upload_id": _begun_upload(platform),
        "model_id": model["id"],
        "endpoint_id": _endpoint(platform),
        "shared_id": _shared_conversation(platform),
        "transfer_id": _transfer(platform, model["id"]),
        "vote_id": _vote(platform),
        "job_id": job_id,
        "recipe_id": "grpo",
        "step": CHECKPOINT_STEP,
        "finished_run": finished_run,
    }


def _with_known_rows(values: dict[str, Any], known_ids: dict[str, str | int]) -> dict[str, Any]:
    """A dataset, versions and a split that are there, which random texts never hit."""
    known = dict.fromkeys(("before", "after", "version"), known_ids["version_id"])
    known |= {"dataset": known_ids["dataset_id"], "split": "train"}
    known |= {"label": known_ids["label"]}
    known |= dict.fromkeys(("against", "a", "b", "evaluation"), known_ids["evaluation_id"])
    return {name: known.get(name, value) for name, value in values.items()}


def _ready_dataset(platform: TestClient) -> tuple[str, str]:
    rows = [{"question": f"{n}+1", "answer": str(n + 1)} for n in range(20)]
    state = platform.app.state  # type: ignore[attr-defined]
    with state.database.write() as session:
        dataset = add_dataset(session, state.settings, rows)
        task = create(
            session, request=ImportTask(source=PathSource(path="rows.jsonl")), dataset_id=dataset.id
        )
        task.state, task.result = DataTaskState.SUCCEEDED, {"reasons": {"not_json": 1}}
        session.add(task)
    kept = locate(state.settings, dataset_id=dataset.id, task_id=task.id)
    kept.parent.mkdir(parents=True)
    place = {"source": "rows.jsonl", "line": 21, "row": 21, "column": None}
    kept.write_text(json.dumps({**place, "code": "not_json", "message": "no object", "raw": "{"}) + "\n")
    assert dataset.head is not None
    return dataset.id, dataset.head


def _pipeline_and_run(platform: TestClient, name: str, dataset_id: str) -> dict[str, str | int]:
    document = {"name": name, "steps": [{"operator": "empty_answers"}, {"operator": "exact_duplicates"}]}
    pipeline = platform.post(f"{API_PREFIX}/pipelines", json={"pipeline": document})
    run = platform.post(f"{API_PREFIX}/pipelines/runs", json={"pipeline": document, "dataset": dataset_id})
    assert (pipeline.status_code, run.status_code) == (201, 202), pipeline.text + run.text
    return {"pipeline_id": pipeline.json()["id"], "task_id": run.json()["task"]["id"]}


def _environment_and_job_pipeline(platform: TestClient, dataset_id: str) -> dict[str, str | int]:
    """An environment that is ready, with a call that waits, and a pipeline whose only stage has failed."""
    environment_id, call_id = new_id("env"), new_id("ecl")
    tool = {"name": "find", "description": "Finds.", "parameters": {"type": "object"}}
    manifest = {"kind": "linksearch", "parameters": {}, "counts": {"rows": 1}, "tools": [tool], "sha256": {}}
    pipeline_id, model_id = new_id("jpl"), new_id("mdl")
    stage = {"id": "only", "recipe": "grpo", "dataset": dataset_id, "model": {"base": model_id}}
    with platform.app.state.database.write() as session:  # type: ignore[attr-defined]
        session.add(
            Environment(
                id=environment_id, name=environment_id, kind="linksearch", parameters={}, state="ready",
                manifest=manifest, sha256="0" * 64, dataset_ids={"": dataset_id},
            )
        )  # fmt: skip
        session.add(JobPipeline(id=pipeline_id, name="stages", state="failed"))
        session.flush()
        session.add(
            EnvironmentCall(id=call_id, environment_id=environment_id, tool="find", arguments={"text": "a"})
        )
        session.add(
            PipelineStage(
                pipeline_id=pipeline_id, stage_id="only", position=0, document=stage, state="failed"
            )
        )
    return {
        "environment_id": environment_id,
        "call_id": call_id,
        "job_pipeline_id": pipeline_id,
        "stage_id": "only",
        "sweep_id": _stopped_sweep(platform, dataset_id, model_id),
    }


def _openai_file_and_job(platform: TestClient, model_id: str) -> dict[str, str | int]:
    """A file, and a job that waits for another one to be read."""
    files = [
        platform.post(f"{OPENAI_PREFIX}/files", files={"file": b"{}"}, data={"purpose": "fine-tune"})
        for _ in range(2)
    ]
    kept, read = (file.raise_for_status().json()["id"] for file in files)
    request = {"model": model_id, "training_file": read}
    job = platform.post(f"{OPENAI_PREFIX}/fine_tuning/jobs", json=request).raise_for_status()
    return {"openai_file_id": kept, "fine_tuning_job_id": job.json()["id"]}


def _named_model(platform: TestClient, model_id: str) -> dict[str, str | int]:
    """With an alias that stood on another version before."""
    name, place = new_id("named"), f"{API_PREFIX}/registry"
    for version in (1, 2):
        platform.post(place, json={"name": name, "model": model_id}).raise_for_status()
        platform.put(f"{place}/{name}/aliases/production", json={"version": version}).raise_for_status()
    return {"registry_name": name, "alias": "production"}


def _stopped_sweep(platform: TestClient, dataset_id: str, model_id: str) -> str:
    """One that was stopped after its first run, whose job is gone."""
    sweep_id = new_id("swp")
    document = {
        "name": "rates", "job": {"recipe": "grpo", "model": model_id, "dataset": dataset_id}, "seeds": [1],
        "parameters": {"learning_rate": {"values": [1e-6, 1e-5]}}, "budget": {"runs": 2},
        "objective": {"metric": "val/loss", "mode": "min", "take": "best"}, "search": {"method": "grid"},
    }  # fmt: skip
    with platform.app.state.database.write() as session:  # type: ignore[attr-defined]
        session.add(
            Sweep(
                id=sweep_id, name="rates", recipe="grpo", document=document, state="stopped", is_active=False
            )
        )
        session.flush()
        run = SweepRun(sweep_id=sweep_id, index=0, trial=0, seed=1, values={"learning_rate": 1e-6})
        run.job_id, run.is_over, run.value, run.value_step = new_id("job"), True, 0.5, 3
        session.add(run)
    return sweep_id


def _rollout(platform: TestClient, job_id: str) -> int:
    turn = {"role": "assistant", "text": "hello", "tokens": 1, "is_trained": True}
    tokens = {"first": 0, "texts": ["r"], "log_prob": [-0.5], "not_finite": []}
    sample = Rollout.model_validate(
        {
            "group": "g", "prompt": "p", "response": "r", "score": 1.0, "response_tokens": 1,
            "messages": [{"role": "user", "content": "p"}], "tokens": tokens,
            "trajectory": {"turns": [turn], "stop_reason": "answered", "duration_s": 0.1},
        }
    )  # fmt: skip
    event = RolloutsEvent(time=utc_now(), step=1, rollouts=[sample])
    with platform.app.state.database.write() as session:  # type: ignore[attr-defined]
        rollout_store.write(session, job_id=job_id, attempt=1, event=event)
        (mark,) = rollout_store.list_marks(session, job_id=job_id, step=1, split="train")
        return mark.id


def _finished_evaluation(platform: TestClient) -> dict[str, str | int]:
    """With samples of the one benchmark that it measured."""
    state = platform.app.state  # type: ignore[attr-defined]
    with state.database.write() as session:
        model = Model(
            id=new_id("mdl"), name=new_id("name"), state="ready", path="models/a", lineage={}, warnings=[],
            source={"kind": "local", "path": "models/a"},
        )  # fmt: skip
        session.add(model)
        session.flush()
        request = EvaluationCreate.model_validate(
            {"targets": [{"kind": "model", "model": model.id}], "benchmarks": [{"benchmark": "gsm8k"}]}
        )
        (row,) = create_evaluations(session, state.settings, request=request)
        claim = claim_for_launch(session, job_id=row.job_id)
        assert claim is not None
        record_result(session, job=claim.job, result=leave_results(state.settings, row))
        settle(session, job_id=row.job_id, attempt=1, state=JobState.FAILED)
    known: dict[str, str | int] = {
        "label": "gsm8k",
        "position": 1,
        "number": 0,
        "benchmark_name": "math500",
        "sample_name": "addition-pairs",
    }
    return known | {"evaluation_id": row.id, "report_id": _written_report(platform, row.id)}


def _written_report(platform: TestClient, evaluation_id: str) -> str:
    """With a file of each format but the PDF."""
    state = platform.app.state  # type: ignore[attr-defined]
    body = {"name": "a report", "evaluations": [evaluation_id]}
    report_id: str = platform.post(f"{API_PREFIX}/reports", json=body).raise_for_status().json()["id"]
    folder = report_folder(state.settings, report_id)
    folder.mkdir(parents=True)
    for kind in ("md", "html"):
        (folder / f"report.{kind}").write_text("text")
    problem = ReportProblem(format="pdf", code="chromium_missing", message="There is no Chromium.")
    with state.database.write() as session:
        reports.record_files(session, report_id=report_id, sizes={"md": 4, "html": 4}, problems=[problem])
    return report_id


def _endpoint(platform: TestClient) -> str:
    """Of a model that is here, waiting for workers."""
    model_id = new_id("mdl")
    with platform.app.state.database.write() as session:  # type: ignore[attr-defined]
        session.add(
            Model(
                id=model_id, name=model_id, state="ready", source={"kind": "local", "path": "x"}, lineage={},
                path=f"models/{model_id}", warnings=[],
            )
        )  # fmt: skip
    return str(platform.post(f"{API_PREFIX}/models/{model_id}/endpoint").raise_for_status().json()["id"])


def _shared_conversation(platform: TestClient) -> str:
    settings = {"temperature": 1, "top_p": 1, "max_tokens": 8}
    body = {"settings": settings, "prompts": ["1+1="], "columns": [{"model": "base"}]}
    return str(platform.post(f"{API_PREFIX}/shared-conversations", json=body).raise_for_status().json()["id"])


def _transfer(platform: TestClient, model_id: str) -> str:
    """A transfer whose worker has failed: it can be resumed and deleted."""
    request = GgufCreate().model_dump(mode="json")
    kind, state = TransferKind.GGUF.value, TransferState.FAILED.value
    row = Transfer(
        id=new_id("trf"), kind=kind, state=state, model_id=model_id, model_name="m", request=request
    )
    with platform.app.state.database.write() as session:  # type: ignore[attr-defined]
        session.add(row)
        session.flush()
        return row.id


def _vote(platform: TestClient) -> str:
    sides = {"a": {"model": "base", "text": "2"}, "b": {"model": "trained", "text": "3"}}
    body = {"messages": [{"role": "user", "content": "1+1="}], **sides, "verdict": "a"}
    return str(platform.post(f"{API_PREFIX}/votes", json=body).raise_for_status().json()["id"])


def _saved_view(platform: TestClient) -> str:
    body = {"page": "jobs", "name": new_id("view"), "query": "state=failed"}
    return str(platform.post(f"{API_PREFIX}/saved-views", json=body).raise_for_status().json()["id"])


def _begun_upload(platform: TestClient) -> str:
    headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "1000"}
    begun = platform.post(f"{API_PREFIX}/uploads", headers=headers)
    begun.raise_for_status()
    return begun.headers["Location"].rpartition("/")[2]


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
def test_a_few_answers_are_what_the_schema_says(
    operation: AnyOperation, platform: TestClient, known_ids: dict[str, str | int]
) -> None:
    assert call_with_examples(operation, platform, known_ids, FEW_EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_what_the_schema_says(
    operation: AnyOperation, platform: TestClient, known_ids: dict[str, str | int]
) -> None:
    statuses = call_with_examples(operation, platform, known_ids, MANY_EXAMPLES)

    assert statuses != {404}, "no call reached anything that exists"


def call_with_examples(
    operation: AnyOperation, platform: TestClient, known_ids: dict[str, str | int], examples: int
) -> set[int]:
    """Call an operation with generated input and check every answer against the schema; the statuses."""
    operation.app = SCHEMA.app = platform.app
    known_ids["name"] = TAG if "/tags/" in operation.path else BRANCH
    if "/checkpoints/{step}/files/" in operation.path:
        known_ids["name"] = CHECKPOINT_FILE
    if operation.path.startswith(OPENAI_PREFIX):
        known_ids |= {"name": known_ids["model_id"], "file_id": known_ids["openai_file_id"]}
    if "/steps/" in operation.path:
        known_ids |= {"task_id": known_ids["finished_run"], "step": 0}
    statuses: set[int] = set()

    @settings(
        max_examples=examples,
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
            case.query = _with_known_rows(case.query or {}, known_ids)
            if isinstance(case.body, dict):
                case.body = _with_known_rows(case.body, known_ids)
                if operation.path.endswith(("/registry", "/embeddings")):
                    case.body["model"] = known_ids["model_id"]
        answer = case.call(headers={"Authorization": platform.headers["Authorization"]})
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    call_and_validate()
    return statuses


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
        file_id=new_id("rwf"), dry_run_id=new_id("dry"), step=CHECKPOINT_STEP, upload_id=new_id("up"),
        task_id=new_id("dtk"), pipeline_id=new_id("ppl"), version_id="0" * 64, name=BRANCH,
        evaluation_id=new_id("ev"), benchmark_name="gsm8k", label="gsm8k", position=0, number=0,
        sample_name="addition-pairs",
        report_id=new_id("rep"), workflow_id=new_id("wfl"), environment_id=new_id("env"),
        call_id=new_id("ecl"), rollout_id=1, prompt_key="0a1b",
        endpoint_id=new_id("ep"), job_pipeline_id=new_id("jpl"), stage_id="only",
        fine_tuning_job_id=new_id("ftjob"), registry_name="bot", alias="production",
        sweep_id=new_id("swp"), transfer_id=new_id("trf"), vote_id=new_id("vot"), view_id=new_id("vew"),
        shared_id=new_id("shc"),
    )  # fmt: skip

    status = call(operation.method, path)

    is_open = not path.startswith((API_PREFIX, OPENAI_PREFIX)) or path in OPEN_PATHS
    assert (status != 401) if is_open else (status == 401)


def _caller_without_login(platform: TestClient) -> Callable[[str, str], int]:
    stranger = TestClient(platform.app)

    def call(method: str, path: str) -> int:
        return stranger.request(method.upper(), path).status_code

    return call
