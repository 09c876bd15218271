"""What the stages of an active pipeline name stays until the pipeline is over."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlmodel import Session
from trellis_api.benchmarks import service as benchmarks
from trellis_api.benchmarks.installed import InstalledSource
from trellis_api.core import uses
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.core.uses import RefKey, Used, VersionKey
from trellis_api.datasets.models import Dataset
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage
from trellis_api.job_pipelines.schemas import StageCreate
from trellis_api.job_pipelines.states import StageState
from trellis_api.job_pipelines.uses import USERS
from trellis_api.models.models import Model
from trellis_testing.datasets import add_version
from trellis_testing.job_pipelines import PipelineRig

VERSION = "ab" * 32
Write = Callable[..., str]


def train(**more: Any) -> dict[str, Any]:
    stage = {"id": "train", "recipe": "grpo", "dataset": "ds_train", "model": {"base": "mdl_base"}}
    return {**stage, **more}


def evaluate(**more: Any) -> dict[str, Any]:
    stage = {
        "id": "measure",
        "kind": "evaluate",
        "model": {"base": "mdl_measured"},
        "benchmarks": [
            {"benchmark": "gsm8k"},
            {
                "benchmark": "custom",
                "dataset": "ds_own",
                "version": VERSION,
                "scorer": {"kind": "file", "file": "rwf_scorer"},
            },
        ],
    }
    return {**stage, **more}


@pytest.fixture
def write(database: Database) -> Write:
    """Write an active pipeline, whatever its stages name; its id."""

    def write(*stages: dict[str, Any], number: int = 0, is_active: bool = True, **more: Any) -> str:
        pipeline_id = "jpl_aaaaaaaaaaa" + "abcdef"[number]
        with database.write() as session:
            state = "running" if is_active else "idle"
            session.add(JobPipeline(id=pipeline_id, name="agent", is_active=is_active, state=state))
            session.flush()
            for position, stage in enumerate(stages):
                document = StageCreate.model_validate(stage).model_dump(mode="json")
                session.add(
                    PipelineStage(
                        pipeline_id=pipeline_id,
                        stage_id=document["id"],
                        position=position,
                        document=document,
                        **more,
                    )
                )
        return pipeline_id

    return write


def list_users(session: Session, kind: Used[Any], key: Any) -> list[tuple[str, str]]:
    return [(use.kind, use.label) for use in kind.find(session, key)]


REWARDS = [
    {"name": "python", "options": {"file": "rwf_reward"}},
    {"name": "reward_model", "options": {"model": "mdl_reward"}},
]
NAMED: list[tuple[dict[str, Any], Used[Any], Any]] = [
    (train(), uses.DATASETS, "ds_train"),
    (train(validation_dataset="ds_validate"), uses.DATASETS, "ds_validate"),
    (evaluate(), uses.DATASETS, "ds_own"),
    (train(dataset_version=VERSION), uses.VERSIONS, VersionKey("ds_train", VERSION)),
    (train(dataset_version=VERSION[:8]), uses.VERSIONS, VersionKey("ds_train", VERSION)),
    (
        train(validation_dataset="ds_validate", validation_version=VERSION),
        uses.VERSIONS,
        VersionKey("ds_validate", VERSION),
    ),
    (
        train(validation_split="test", validation_version=VERSION),
        uses.VERSIONS,
        VersionKey("ds_train", VERSION),
    ),
    (evaluate(), uses.VERSIONS, VersionKey("ds_own", VERSION)),
    (train(dataset_version="clean"), uses.REFS, RefKey("ds_train", "clean")),
    (
        train(validation_dataset="ds_validate", validation_version="v1"),
        uses.REFS,
        RefKey("ds_validate", "v1"),
    ),
    (train(), uses.MODELS, "mdl_base"),
    (evaluate(), uses.MODELS, "mdl_measured"),
    (train(params={"rewards": REWARDS}), uses.MODELS, "mdl_reward"),
    (train(params={"rewards": REWARDS}), uses.REWARD_FILES, "rwf_reward"),
    (evaluate(), uses.REWARD_FILES, "rwf_scorer"),
    (evaluate(), uses.BENCHMARKS, "gsm8k"),
    (train(params={"environment": "env_a"}), uses.ENVIRONMENTS, "env_a"),
    (train(params={"workflow": "wfl_a"}), uses.WORKFLOWS, "wfl_a"),
]


@pytest.mark.parametrize(
    ("stage", "kind", "key"),
    NAMED,
    ids=[f"{kind.noun}-{number}" for number, (_, kind, _) in enumerate(NAMED)],
)
def test_what_a_waiting_stage_names_is_used_by_its_pipeline(
    write: Write, session: Session, stage: dict[str, Any], kind: Used[Any], key: Any
) -> None:
    write(stage)

    assert list_users(session, kind, key) == [("pipeline", "agent")]


def test_other_versions_and_what_inactive_pipelines_or_ended_stages_name_is_free(
    write: Write, session: Session
) -> None:
    write(train(dataset_version="main", validation_split="test", validation_version=VERSION[:7]))
    write(train(dataset="ds_idle"), number=1, is_active=False)
    write(train(dataset="ds_done"), number=2, state=StageState.SUCCEEDED.value)

    assert list_users(session, uses.VERSIONS, VersionKey("ds_train", VERSION)) == []
    assert list_users(session, uses.VERSIONS, VersionKey("ds_other", VERSION)) == []
    assert list_users(session, uses.REFS, RefKey("ds_other", "main")) == []
    assert list_users(session, uses.DATASETS, "ds_idle") == []
    assert list_users(session, uses.DATASETS, "ds_done") == []


def test_all_pipelines_are_read_at_once(write: Write, session: Session) -> None:
    for number in range(5):
        write(train(), evaluate(model={"stage": "train"}), number=number)
    statements: list[str] = []
    event.listen(session.get_bind(), "before_cursor_execute", lambda *given: statements.append(given[2]))
    found = USERS.of_models(session, ["mdl_base", "mdl_reward", "mdl_none"])

    assert [len(each) for each in found.values()] == [5, 0, 0]
    assert len(statements) == 1


@pytest.fixture
def rig(database: Database, settings: Settings) -> PipelineRig:
    return PipelineRig(database, settings)


def submit(client: TestClient, *stages: dict[str, Any]) -> str:
    answer = client.post("/api/v1/job-pipelines", json={"name": "agent", "stages": list(stages)})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def refuse(client: TestClient, path: str, code: str) -> Any:
    answer = client.delete(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["error"]) == (409, code), answer.text
    assert "agent" in answer.json()["message"]
    return answer.json()["details"]


def test_dataset_version_and_model_go_once_the_pipeline_is_stopped(
    client: TestClient, database: Database, settings: Settings, model: Model, dataset: Dataset
) -> None:
    pinned = str(dataset.head)
    with database.write() as session:
        add_version(session, settings, dataset.id, [{"prompt": "1+1", "answer": "2"}] * 8)
    needs = {"recipe": "grpo", "preset": "cpu-tiny", "dataset": dataset.id, "dataset_version": pinned[:8]}
    pipeline_id = submit(client, {"id": "train", "model": {"base": model.id}, **needs})

    shown = client.get(f"/api/v1/datasets/{dataset.id}/versions/{pinned}").json()["uses"]
    version = refuse(client, f"datasets/{dataset.id}/versions/{pinned}", "version_in_use")
    rows = refuse(client, f"datasets/{dataset.id}", "dataset_in_use")
    weights = refuse(client, f"models/{model.id}", "model_in_use")

    use = {"kind": "pipeline", "id": pipeline_id, "name": "agent", "state": None, "is_unfinished": True}
    assert (shown, version["uses"]) == ([use], [use])
    assert rows == {"jobs": ["agent"], "dry_runs": [], "tasks": []}
    assert weights == {"jobs": ["agent"]}
    client.post(f"/api/v1/job-pipelines/{pipeline_id}/stop").raise_for_status()
    assert client.delete(f"/api/v1/models/{model.id}").status_code == 204
    assert client.delete(f"/api/v1/datasets/{dataset.id}").status_code == 204


def test_branches_and_tags_that_a_stage_will_read_go_once_the_pipeline_is_stopped(
    client: TestClient, model: Model, dataset: Dataset
) -> None:
    path = f"datasets/{dataset.id}"
    for kind, name in (("branches", "clean"), ("branches", "other"), ("tags", "v1")):
        made = client.post(f"/api/v1/{path}/{kind}", json={"name": name, "version": dataset.head})
        assert made.status_code == 201, made.text
    needs = {"recipe": "grpo", "preset": "cpu-tiny", "dataset": dataset.id, "dataset_version": "clean"}
    more = {"validation_dataset": dataset.id, "validation_version": "v1"}
    pipeline_id = submit(client, {"id": "train", "model": {"base": model.id}, **needs, **more})

    refused = [refuse(client, f"{path}/{ref}", "ref_in_use") for ref in ("branches/clean", "tags/v1")]

    assert refused == [{"jobs": ["agent"]}] * 2
    assert client.delete(f"/api/v1/{path}/branches/other").status_code == 204
    client.post(f"/api/v1/job-pipelines/{pipeline_id}/stop").raise_for_status()
    assert client.delete(f"/api/v1/{path}/branches/clean").status_code == 204
    assert client.delete(f"/api/v1/{path}/tags/v1").status_code == 204


def test_models_that_agent_code_calls_are_used_by_any_of_their_names(
    client: TestClient, write: Write, session: Session, model: Model
) -> None:
    added = client.post("/api/v1/registry", json={"name": "critic", "model": model.id})
    assert added.status_code == 201, added.text
    for number, name in enumerate((model.name, model.id, "critic:1")):
        write(train(params={"auxiliary_models": f"judge=judge:large, critic={name}"}), number=number)
    write(train(params={"auxiliary_models": "a=job_aaaaaaaaaaaa:20, b=nobody"}), number=3)
    write(train(params={"auxiliary_models": "no names"}), number=4)

    assert list_users(session, uses.MODELS, model.id) == [("pipeline", "agent")] * 3
    assert refuse(client, f"models/{model.id}", "model_in_use") == {"jobs": ["agent"] * 3}


def test_a_model_that_a_stage_made_stays_for_the_stage_behind_it(
    client: TestClient, rig: PipelineRig, model: Model, dataset: Dataset
) -> None:
    needs = {"recipe": "grpo", "preset": "cpu-tiny", "dataset": dataset.id}
    pipeline_id = submit(
        client,
        {"id": "a", "model": {"base": model.id}, **needs},
        {"id": "other", "model": {"base": model.id}, "seed": 2, **needs},
        {"id": "b", "model": {"stage": "a"}, "needs": ["other"], **needs},
    )
    rig.look()
    rig.end_stage(pipeline_id, "a")
    rig.look()
    assert rig.states(pipeline_id) == {"a": "succeeded", "other": "running", "b": "waiting"}
    made = rig.stages(pipeline_id)["a"].model_id

    assert refuse(client, f"models/{made}", "model_in_use") == {"jobs": ["agent"]}


def test_a_reward_file_goes_once_the_pipeline_is_deleted(client: TestClient, write: Write) -> None:
    code = "def score(prompt, response, answer, row):\n    return 1.0\n"
    file_id = client.post("/api/v1/rewards/files", json={"name": "mine", "code": code}).json()["id"]
    rewards = [{"name": "python", "options": {"file": file_id}}]
    pipeline_id = write(train(params={"rewards": rewards}))

    assert refuse(client, f"rewards/files/{file_id}", "reward_file_in_use") == {"jobs": ["agent"]}
    client.post(f"/api/v1/job-pipelines/{pipeline_id}/stop").raise_for_status()
    client.delete(f"/api/v1/job-pipelines/{pipeline_id}").raise_for_status()
    assert client.delete(f"/api/v1/rewards/files/{file_id}").status_code == 204


def test_files_of_a_benchmark_that_a_stage_will_read_are_not_replaced(
    client: TestClient, database: Database, write: Write
) -> None:
    source = InstalledSource(
        name="gsm8k",
        origin="hub",
        repo_id="a/b",
        revision="0" * 40,  # another than the catalogue's
        sha256="1" * 64,
        files={"test": ["test.jsonl"]},
        rows={"test": 1},
        groups={},
        size_bytes=1,
        installed_at=utc_now().isoformat(),
    )
    with database.write() as session:
        benchmarks.mark_ready(session, source=source)
    write(evaluate())

    answer = client.post("/api/v1/benchmarks/gsm8k/install")

    assert (answer.status_code, answer.json()["error"]) == (409, "benchmark_in_use")
    assert answer.json()["details"] == {"evaluations": ["agent"]}
