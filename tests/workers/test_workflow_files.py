"""A job's workflow is handed over as it was uploaded, or the job says that it is gone."""

import stat
from typing import Any

import pytest
from trellis_api.workflows import service
from trellis_api.workflows.errors import UnknownWorkflow
from trellis_api.workflows.files import FILES
from trellis_api.workflows.schemas import WorkflowCreate
from trellis_train.agents.tune.program import WorkflowSource
from trellis_workers.jobs.launch import _hand_over_agent, _prepare_training
from trellis_workers.jobs.workflow_files import hand_over_workflow

CODE = "async def solve(task, model):\n    return 1.0\n"


def test_the_copy_is_the_upload_and_the_spec_names_it(install: Any) -> None:
    platform = install()
    with platform.database.write() as session:
        workflow_id = service.add_workflow(session, request=WorkflowCreate(name="mine", code=CODE)).id
    job = platform.add_job(recipe="tune", params={"workflow": workflow_id, "runners": 3})
    folder = platform.attempt_dir(job)
    spec, _ = _prepare_training(platform.settings, job)

    agent = _hand_over_agent(platform.settings, job, spec, folder).agent

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
        workflow_id = service.add_workflow(session, request=WorkflowCreate(name="mine", code=CODE)).id
    job = platform.add_job(recipe="tune", params={"workflow": workflow_id})
    with platform.database.write() as session:
        FILES.delete(session, FILES.get(session, workflow_id), users=[])
    with pytest.raises(UnknownWorkflow, match="any more"):
        hand_over_workflow(job, platform.attempt_dir(job))


def test_jobs_without_a_workflow_get_none(install: Any) -> None:
    platform = install()
    job = platform.add_job()
    assert hand_over_workflow(job, platform.attempt_dir(job)) is None
