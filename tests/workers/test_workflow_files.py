"""A job's workflow is handed over as it was uploaded, or the job says that it is gone."""

import json
import os
import stat
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select
from trellis_api.models.models import Model
from trellis_api.workflows import service
from trellis_api.workflows.errors import UnknownWorkflow, WorkflowNotReady
from trellis_api.workflows.files import FILES
from trellis_api.workflows.schemas import WorkflowCreate
from trellis_contracts.attempt import AUXILIARY_KEYS_FILE
from trellis_train.agents.tune.program import WorkflowSource
from trellis_workers.jobs.launch import _prepare_training, _stage_agent
from trellis_workers.jobs.workflow_files import StagedWorkflow, stage_workflow
from trellis_workers.workflows.installing import install_waiting, remove_unused_packages

CODE = "async def solve(task, model):\n    return 1.0\n"


def test_the_copy_is_the_upload_and_the_spec_names_it(install: Any) -> None:
    platform = install()
    with platform.database.write() as session:
        workflow_id = service.add_workflow(
            session, platform.settings, request=WorkflowCreate(name="mine", code=CODE)
        ).id
    job = platform.add_job(recipe="tune", params={"workflow": workflow_id, "runners": 3})
    folder = platform.attempt_dir(job)
    spec, _ = _prepare_training(platform.settings, job)

    agent = _stage_agent(platform.settings, job, spec, folder, token="the token").agent

    assert agent is not None
    assert agent.kind == "tune"
    assert agent.options["runners"] == 3
    assert "workflow" not in agent.options
    source = WorkflowSource.read(str(agent.workflow_path))
    assert (source.code.decode(), source.function, source.is_pickle) == (CODE, "solve", False)
    assert stat.S_IMODE((folder / "workflow.py").stat().st_mode) == 0o600


def test_a_workflow_that_is_gone_is_named(install: Any) -> None:
    platform = install()
    with platform.database.write() as session:
        workflow_id = service.add_workflow(
            session, platform.settings, request=WorkflowCreate(name="mine", code=CODE)
        ).id
    job = platform.add_job(recipe="tune", params={"workflow": workflow_id})
    with platform.database.write() as session:
        FILES.delete(session, FILES.get(session, workflow_id), users=[])
    with pytest.raises(UnknownWorkflow, match="not found"):
        stage_workflow(platform.settings, job, platform.attempt_dir(job), token="")


def test_jobs_without_a_workflow_get_none(install: Any) -> None:
    platform = install()
    job = platform.add_job()
    found = stage_workflow(platform.settings, job, platform.attempt_dir(job), token="")
    assert found == StagedWorkflow()


def test_a_model_of_the_platform_is_told_from_one_elsewhere(install: Any) -> None:
    """It is asked with the run's token, where the API is then: that may move while the job runs."""
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "large"}
    platform = install(TRELLIS_JUDGES=json.dumps({"large": judge}))
    with platform.database.write() as session:
        workflow_id = service.add_workflow(
            session, platform.settings, request=WorkflowCreate(name="mine", code=CODE)
        ).id
        served = session.exec(select(Model.name)).first()
    models = f"critic={served}, grader=judge:large"
    job = platform.add_job(recipe="tune", params={"workflow": workflow_id, "auxiliary_models": models})
    folder = platform.attempt_dir(job)
    spec, _ = _prepare_training(platform.settings, job)

    agent = _stage_agent(platform.settings, job, spec, folder, token="the token").agent

    assert agent is not None
    assert (list(agent.auxiliary_models), agent.platform_models) == (["critic", "grader"], ["critic"])
    assert json.loads((folder / AUXILIARY_KEYS_FILE).read_text()) == {"critic": "the token"}


def add_package(platform: Any, requirement: str) -> str:
    """A workflow whose one requirement waits for a worker."""
    with platform.database.write() as session:
        file = service.add_workflow(
            session, platform.settings, request=WorkflowCreate(name=requirement, code=CODE)
        )
        file.files, file.requirements, file.state = {"workflow.py": 1}, [requirement], "queued"
        session.add(file)
        identifier = file.id
    folder = platform.settings.data_root / "workflows" / identifier
    folder.mkdir(parents=True)
    (folder / "workflow.py").write_text(CODE)
    (folder / "requirements.txt").write_text(f"{requirement}\n")
    return str(identifier)


def test_packages_that_no_workflow_requires_are_removed_after_a_while(install: Any) -> None:
    platform = install()
    add_package(platform, "tiny==1.0")
    cache = platform.settings.data_root / "workflow-packages"
    for name, requirement, age_s in (
        ("used", "tiny==1.0", 9999),
        ("old", "gone==1", 9999),
        ("new", "gone==2", 1),
    ):
        (cache / name).mkdir(parents=True)
        file = cache / name / "installed.json"
        file.write_text(json.dumps({"requirements": [requirement], "packages": []}))
        moment = time.time() - age_s
        os.utime(file, (moment, moment))

    remove_unused_packages(platform.settings, platform.database)

    assert sorted(each.name for each in cache.iterdir()) == ["new", "used"]


@pytest.mark.slow
def test_requirements_are_installed_by_a_worker_and_handed_over(
    install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    with zipfile.ZipFile(tmp_path / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    there, nowhere = add_package(platform, "tiny==1.0"), add_package(platform, "nowhere==1.0")

    assert install_waiting(platform.settings, platform.database) == [there, nowhere]

    with platform.database.read() as session:
        ready, failed = FILES.get(session, there), FILES.get(session, nowhere)
        assert (ready.state, ready.installed, ready.reason) == ("ready", ["tiny-1.0"], None)
        assert failed.state == "failed"
        assert "No matching distribution found for nowhere==1.0" in (failed.reason or "")
    job = platform.add_job(recipe="tune", params={"workflow": there})
    found = stage_workflow(platform.settings, job, platform.attempt_dir(job), token="")
    source = WorkflowSource.read(str(found.path), packages=found.packages)
    assert source.belongings.packages is not None
    assert (source.belongings.packages / "tiny.py").is_file()
    with pytest.raises(WorkflowNotReady, match="No matching distribution"):
        stage_workflow(
            platform.settings,
            platform.add_job(recipe="tune", params={"workflow": nowhere}),
            platform.attempt_dir(job),
            token="",
        )
