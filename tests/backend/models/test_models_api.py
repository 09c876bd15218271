"""Models over HTTP: register, list, delete."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs.models import Checkpoint
from trellis_api.jobs.repository import find_checkpoint
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_contracts.tasks import FETCH_MODEL

WriteModel = Callable[..., Path]


def register(client: TestClient, name: str = "starter", **source: Any) -> dict[str, Any]:
    source = source or {"kind": "local", "path": "models/starter"}
    answer = client.post("/api/v1/models", json={"name": name, "source": source})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


@pytest.fixture
def starter(client: TestClient, settings: Settings, write_model: WriteModel) -> Path:
    return write_model(settings.data_root / "models" / "starter")


@pytest.fixture
def add_checkpoint(
    database: Database, settings: Settings, make_job: Callable[..., str], write_model: WriteModel
) -> Callable[..., str]:
    """Writes a job's checkpoint of step 3 with its weights; returns the job's id."""

    def add(*, has_weights: bool = True) -> str:
        job_id = make_job(state=JobState.SUCCEEDED, model_id="mdl_aaaaaaaaaaaa")
        folder = settings.checkpoint_dir(job_id) / "global_step_3"
        hf_path = write_model(folder / "hf") if has_weights else None
        with database.write() as session:
            session.add(
                Checkpoint(
                    job_id=job_id,
                    step=3,
                    attempt=1,
                    path=str(folder),
                    hf_path=str(hf_path) if hf_path else None,
                    size_bytes=1,
                    created_at=utc_now(),
                )
            )
        return job_id

    return add


@pytest.mark.usefixtures("starter")
def test_a_local_folder_is_ready_at_once(client: TestClient) -> None:
    model = register(client)

    assert (model["state"], model["path"]) == ("ready", "models/starter")
    assert (model["parameter_count"], model["dtype"]) == (10_010, "bfloat16")
    assert model["source"] == {"kind": "local", "path": "models/starter", "licence": None}
    lineage = dict(model["lineage"])
    assert lineage.pop("ancestors") == []
    assert set(lineage.values()) == {None}
    assert model["sha256_kind"] == "content"
    assert client.get(f"/api/v1/models/{model['id']}").json() == model


@pytest.mark.usefixtures("starter")
def test_a_name_can_be_used_once(client: TestClient) -> None:
    register(client)

    answer = client.post(
        "/api/v1/models", json={"name": "starter", "source": {"kind": "local", "path": "models/starter"}}
    )

    assert answer.status_code == 409
    assert answer.json()["error"] == "model_name_taken"


@pytest.mark.parametrize("path", ["../..", "/etc", "models/../../x"])
def test_a_path_out_of_the_data_root_is_refused(client: TestClient, path: str) -> None:
    answer = client.post("/api/v1/models", json={"name": "x", "source": {"kind": "local", "path": path}})

    assert answer.status_code == 422
    assert answer.json()["error"] == "model_path_outside"


def test_a_folder_without_weights_is_refused_with_the_reason(client: TestClient, starter: Path) -> None:
    (starter / "model.safetensors").unlink()

    answer = client.post(
        "/api/v1/models", json={"name": "x", "source": {"kind": "local", "path": "models/starter"}}
    )

    assert answer.status_code == 422
    assert answer.json()["error"] == "model_folder_invalid"
    assert answer.json()["details"] == {"code": "weights_missing"}


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "hub", "repo_id": "../x"},
        {"kind": "hub", "repo_id": "a/b/c"},
        {"kind": "hub", "repo_id": "a/b", "revision": "../x"},
        {"kind": "hub", "repo_id": "https://example.org/x"},
        {"kind": "checkpoint", "job_id": "../../x", "step": 1},
        {"kind": "local", "path": "a\x00b"},
        {"kind": "ftp", "path": "x"},
        {"kind": "local"},
    ],
)
def test_malformed_sources_are_refused(client: TestClient, source: dict[str, Any]) -> None:
    answer = client.post("/api/v1/models", json={"name": "x", "source": source})

    assert answer.status_code == 422
    assert answer.json()["error"] == "invalid_request"


def test_a_hub_model_waits_and_a_worker_is_told(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[Any, ...]] = []
    tasks = client.app.state.tasks  # type: ignore[attr-defined]
    monkeypatch.setattr(tasks, "send_later", lambda _background, *message: sent.append(message))

    model = register(client, kind="hub", repo_id="Qwen/Qwen3-0.6B", revision="main")

    assert model["state"] == "pending"
    assert model["path"] is None
    assert sent == [(FETCH_MODEL, model["id"])]


def test_only_a_failed_fetch_can_be_tried_again(client: TestClient) -> None:
    model = register(client, kind="hub", repo_id="a/b")

    answer = client.post(f"/api/v1/models/{model['id']}/retry")

    assert answer.status_code == 409
    assert answer.json()["error"] == "model_not_retryable"


def test_a_fetch_that_waits_can_be_cancelled_and_tried_again(client: TestClient, settings: Settings) -> None:
    model = register(client, kind="hub", repo_id="a/b")
    kept = settings.data_root / "models" / model["id"] / "config.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")

    cancelled = client.post(f"/api/v1/models/{model['id']}/cancel").json()
    again = client.post(f"/api/v1/models/{model['id']}/cancel")
    waiting = client.post(f"/api/v1/models/{model['id']}/retry").json()

    assert (cancelled["state"], cancelled["state_cause"]) == ("failed", "cancelled")
    assert (again.status_code, again.json()["error"]) == (409, "model_not_cancellable")
    assert (waiting["state"], waiting["state_reason"], waiting["state_cause"]) == ("pending", None, None)
    assert kept.is_file()


def test_a_model_that_is_here_has_no_fetch_to_cancel(client: TestClient, model: Model) -> None:
    answer = client.post(f"/api/v1/models/{model.id}/cancel")

    assert (answer.status_code, answer.json()["error"]) == (409, "model_not_cancellable")


def test_a_checkpoint_becomes_a_model_that_outlives_its_job(
    client: TestClient, settings: Settings, add_checkpoint: Callable[..., str]
) -> None:
    job_id = add_checkpoint()

    model = register(client, kind="checkpoint", job_id=job_id, step=3)
    shutil.rmtree(settings.job_dir(job_id))

    lineage = model["lineage"]
    assert (lineage["job_id"], lineage["step"]) == (job_id, 3)
    assert (lineage["model_id"], lineage["form"]) == ("mdl_aaaaaaaaaaaa", "merged")
    assert model["path"] == f"models/{model['id']}"
    assert (settings.data_root / model["path"] / "model.safetensors").is_file()


def test_a_kept_checkpoint_uses_no_space_of_its_own(
    client: TestClient, settings: Settings, add_checkpoint: Callable[..., str]
) -> None:
    job_id = add_checkpoint()

    model = register(client, kind="checkpoint", job_id=job_id, step=3)

    kept = settings.data_root / model["path"] / "model.safetensors"
    original = settings.checkpoint_dir(job_id) / "global_step_3" / "hf" / "model.safetensors"
    assert kept.samefile(original)


@pytest.mark.parametrize(("step", "has_weights"), [(4, True), (3, False)])
def test_a_checkpoint_without_weights_is_refused(
    client: TestClient, add_checkpoint: Callable[..., str], step: int, has_weights: bool
) -> None:
    job_id = add_checkpoint(has_weights=has_weights)

    answer = client.post(
        "/api/v1/models", json={"name": "x", "source": {"kind": "checkpoint", "job_id": job_id, "step": step}}
    )

    assert answer.status_code == 422
    assert answer.json()["error"] == "checkpoint_not_usable"


def register_checkpoint(client: TestClient, job_id: str) -> Any:
    source = {"kind": "checkpoint", "job_id": job_id, "step": 3}
    return client.post("/api/v1/models", json={"name": "x", "source": source})


@pytest.mark.parametrize("is_hidden", [False, True])
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_in_a_checkpoint_brings_in_nothing_from_elsewhere(
    is_hidden: bool,
    is_folder: bool,
    client: TestClient,
    settings: Settings,
    add_checkpoint: Callable[..., str],
    tmp_path: Path,
) -> None:
    job_id = add_checkpoint()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.json").write_text("hunter2")
    link = settings.checkpoint_dir(job_id) / "global_step_3" / "hf" / (".link" if is_hidden else "link")
    link.symlink_to(outside if is_folder else outside / "secret.json")

    answer = register_checkpoint(client, job_id)

    assert answer.status_code == (201 if is_hidden else 422), answer.text
    kept = [path for path in (settings.data_root / "models").rglob("*") if path.is_file()]
    assert bool(kept) == is_hidden
    assert all(path.read_bytes() != b"hunter2" for path in kept)


def test_a_checkpoint_in_the_folder_of_another_job_is_refused(
    client: TestClient, database: Database, add_checkpoint: Callable[..., str]
) -> None:
    own, other = add_checkpoint(), add_checkpoint()
    with database.write() as session:
        foreign = find_checkpoint(session, job_id=other, step=3)
        checkpoint = find_checkpoint(session, job_id=own, step=3)
        assert foreign is not None
        assert checkpoint is not None
        checkpoint.hf_path = foreign.hf_path
        session.add(checkpoint)

    answer = register_checkpoint(client, own)

    assert answer.status_code == 422
    assert answer.json()["error"] == "checkpoint_not_usable"


def test_a_damaged_checkpoint_leaves_nothing_behind(
    client: TestClient, settings: Settings, add_checkpoint: Callable[..., str]
) -> None:
    job_id = add_checkpoint()
    (settings.checkpoint_dir(job_id) / "global_step_3" / "hf" / "config.json").unlink()

    answer = client.post(
        "/api/v1/models", json={"name": "x", "source": {"kind": "checkpoint", "job_id": job_id, "step": 3}}
    )

    assert answer.json()["error"] == "model_folder_invalid"
    assert list((settings.data_root / "models").glob("*")) == []


@pytest.mark.usefixtures("starter")
def test_the_list_is_paged_and_filtered(client: TestClient) -> None:
    names = [register(client, name=f"model {n}")["name"] for n in range(3)]
    waiting = register(client, name="from a hub", kind="hub", repo_id="a/b")

    first = client.get("/api/v1/models", params={"limit": 2}).json()
    second = client.get("/api/v1/models", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    pending = client.get("/api/v1/models", params={"state": "pending"}).json()
    llamas = client.get("/api/v1/models", params={"text": "llama"}).json()

    assert [item["name"] for item in first["items"] + second["items"]] == ["from a hub", *names[::-1]]
    assert second["next_cursor"] is None
    assert [item["id"] for item in pending["items"]] == [waiting["id"]]
    assert len(llamas["items"]) == 3


def test_deleting_a_local_model_keeps_its_folder(client: TestClient, starter: Path) -> None:
    model = register(client)

    assert client.delete(f"/api/v1/models/{model['id']}").status_code == 204

    assert client.get(f"/api/v1/models/{model['id']}").json()["error"] == "model_not_found"
    assert (starter / "config.json").is_file()


def test_deleting_a_kept_checkpoint_removes_its_folder(
    client: TestClient, settings: Settings, add_checkpoint: Callable[..., str]
) -> None:
    job_id = add_checkpoint()
    model = register(client, kind="checkpoint", job_id=job_id, step=3)

    assert client.delete(f"/api/v1/models/{model['id']}").status_code == 204

    assert not (settings.data_root / model["path"]).exists()
    assert (settings.checkpoint_dir(job_id) / "global_step_3" / "hf" / "model.safetensors").is_file()


@pytest.mark.usefixtures("starter")
def test_a_model_of_an_unfinished_job_is_not_deleted(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    model = register(client)
    make_job(name="trainer", model_id=model["id"], state=JobState.RUNNING)

    answer = client.delete(f"/api/v1/models/{model['id']}")

    assert answer.status_code == 409
    assert answer.json()["error"] == "model_in_use"
    assert answer.json()["details"] == {"jobs": ["trainer"]}
