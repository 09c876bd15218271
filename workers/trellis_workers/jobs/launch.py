"""Launches queued jobs: the middle of the chain from request to training.

    trellis_api/jobs/submit.py::submit        composes, and writes the job's row, QUEUED
    → this module                             claims the row, writes the attempt's folder, submits to Ray
    → trellis_train/entrypoint.py             runs the engine and reports what happens

A job is launched when its slots are free: by priority, then first in, first out. It is
started exactly once whatever dies in between: one worker alone can claim a row, the Ray
submission bears the attempt's number, and Ray refuses a number that it has seen. A row
whose worker died before Ray had it (stale LAUNCHING) is found by the next sweep.
"""

import json
import logging
import secrets
import shlex
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.exc import OperationalError
from trellis_api.core.columns import utc_now
from trellis_api.core.errors import DomainError
from trellis_api.core.ray_cluster import find_nodes
from trellis_api.core.settings import Settings
from trellis_api.datasets.view import DatasetView
from trellis_api.environments.resources import locate_environment
from trellis_api.jobs import configuration, repository, service
from trellis_api.jobs.composition import JobInputs, build_compose_request, build_launch_part
from trellis_api.jobs.configuration import Configuration, Reading
from trellis_api.jobs.models import EVALUATE, EXPORT, SERVE, TRAIN, Job
from trellis_api.jobs.queue import admission
from trellis_api.jobs.service import Claim
from trellis_api.jobs.storage import check_storage
from trellis_api.jobs.submit import find_job_inputs
from trellis_api.models.tried_templates import require_tried_templates
from trellis_contracts.attempt import COMPOSITION_FILE, ENGINE_KEY_FILE, SPEC_FILE, TOKEN_FILE
from trellis_contracts.isolation import isolated_command
from trellis_contracts.private_files import write_private
from trellis_contracts.spec import DataSource, JobSpec, ModelSource
from trellis_contracts.states import JobState
from trellis_recipes.compose import Composition, compose
from trellis_recipes.placement import entrypoint_demand
from trellis_recipes.stored import complete

from trellis_workers.core.ray_client import RayAwayError, RayJobs, get_ray
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write
from trellis_workers.endpoints.spec import build_serve_spec
from trellis_workers.evaluations.scorers import stage_scorers
from trellis_workers.evaluations.spec import build_evaluation_spec
from trellis_workers.jobs.export_spec import build_export_spec
from trellis_workers.jobs.isolation import write_rules
from trellis_workers.jobs.reward_files import stage_rewards
from trellis_workers.jobs.waiting import tell_other_platform, tell_queued
from trellis_workers.jobs.workflow_files import stage_workflow

logger = logging.getLogger(__name__)

#: Between Ray's SIGTERM and its SIGKILL: time for the entrypoint to end the engine and to report.
RAY_STOP_WAIT_S = 20
#: Marks our submissions on a cluster that others use too.
METADATA_ROOT = "trellis_data_root"


class CannotLaunchError(Exception):
    """The job cannot run as it stands; the message is for its owner."""

    def __init__(self, reason: str, cause: str) -> None:
        super().__init__(reason)
        self.cause = cause


def launch_queued() -> None:
    """Launch every queued job that the free slots admit, and take up launches whose worker died."""
    if not _has_work():
        return
    ray = get_ray()
    try:
        ray.ping()
        _retry_stale_launches(ray)
        _launch_admitted(ray)
    except RayAwayError as error:
        # Nothing is lost: the rows wait, and the next sweep comes in seconds.
        logger.warning("the Ray cluster is unreachable, jobs stay queued: %s", error)


def _has_work() -> bool:
    """Tell whether jobs wait or launch, which spares the cluster a request every other second."""
    with read() as session:
        launching = (job.state == JobState.LAUNCHING for job in repository.list_holding_slots(session))
        return any(launching) or bool(repository.list_queued(session, limit=1))


def _launch_admitted(ray: RayJobs) -> None:
    settings = get_settings()
    nodes = find_nodes(settings)
    # A node that is away comes back as a rule: until then jobs wait for it.
    gpus = settings.total_slots if nodes is None else sum(node.gpus for node in nodes)
    if nodes is not None and gpus < settings.total_slots:
        tell_queued(nodes)
    tell_other_platform(settings.resolved_platform)
    while True:
        with write() as session:
            claim = admission.claim_next(
                session,
                total_slots=min(settings.total_slots, gpus),
                max_exports=settings.max_exports,
                max_evaluations=settings.max_evaluations,
                max_endpoints=settings.max_endpoints,
                endpoint_preemption=settings.endpoint_preemption,
                platform=settings.resolved_platform,
            )
        if claim is None:
            return
        _launch(ray, claim)


def _retry_stale_launches(ray: RayJobs) -> None:
    stale_before = utc_now() - timedelta(seconds=get_settings().launch_timeout_s)
    with read() as session:
        launching = [job for job in repository.list_holding_slots(session) if job.state == JobState.LAUNCHING]
    for job in launching:
        is_stale = job.launched_at is None or job.launched_at < stale_before
        if not is_stale or ray.find(service.submission_id(job)) is not None:
            continue
        with write() as session:
            claim = service.reclaim_launch(session, job_id=job.id, attempt=job.attempt)
        if claim is not None:
            logger.warning("job %s: its launch was interrupted, retrying", job.id)
            _launch(ray, claim)


def _launch(ray: RayJobs, claim: Claim) -> None:
    """Write the attempt's folder and submit it; a job that cannot run is settled as failed."""
    settings, job = get_settings(), claim.job
    try:
        spec = _write_attempt(settings, job, claim.token)
        rules = write_rules(settings, spec)
    except CannotLaunchError as error:
        _settle_failed(job, str(error), error.cause)
        return
    except DomainError as error:
        _settle_failed(job, error.message, error.code)
        return
    except OSError as error:
        _settle_failed(job, f"The job's folder cannot be written: {error}", "storage_unwritable")
        return
    except (OperationalError, RayAwayError):
        raise  # the next sweep takes the launch up again
    except Exception as error:  # one job that cannot be prepared must not stop the others
        logger.exception("job %s: its launch failed unexpectedly", job.id)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        _settle_failed(job, f"The job could not be prepared: {said}", "launch_failed")
        return
    spec_path = Path(spec.attempt_dir) / SPEC_FILE
    is_new = ray.submit(
        claim.submission_id,
        entrypoint=build_entrypoint(settings.job_python or Path(sys.executable), spec_path, rules),
        demand=entrypoint_demand(spec.engine, spec.gpus),
        env={"RAY_JOB_STOP_WAIT_TIME_S": str(RAY_STOP_WAIT_S)},
        metadata={METADATA_ROOT: str(settings.data_root), "job_id": job.id, "name": job.name},
    )
    logger.info(
        "job %s: attempt %d %s", job.id, job.attempt, "submitted" if is_new else "was already submitted"
    )


def build_entrypoint(python: Path, spec_path: Path, rules: Path) -> str:
    """Build the shell command of the Ray job. ``exec`` makes Ray see the exit of Python, not of a shell."""
    command = [str(python), "-m", "trellis_train.entrypoint", str(spec_path)]
    return shlex.join(["exec", *isolated_command(str(python), rules, command)])


def _settle_failed(job: Job, reason: str, cause: str) -> None:
    logger.warning("job %s could not be launched: %s", job.id, reason)
    with write() as session:
        service.settle(
            session, job_id=job.id, attempt=job.attempt, state=JobState.FAILED, reason=reason, cause=cause
        )


def _write_attempt(settings: Settings, job: Job, token: str) -> JobSpec:
    """Write the attempt's folder; the spec that now lies in it."""
    check_storage(settings)
    spec, record = _PREPARE[job.kind](settings, job)
    # A folder that was registered where it lies may have changed since the job was submitted.
    if spec.model.path:
        require_tried_templates(Path(spec.model.path))
    attempt_dir = settings.attempt_dir(job.id, job.attempt)
    attempt_dir.mkdir(parents=True, exist_ok=True)
    settings.checkpoint_dir(job.id).mkdir(parents=True, exist_ok=True)
    if job.kind == TRAIN:
        record["rewards"] = stage_rewards(settings, job, attempt_dir)
        spec = _stage_agent(settings, job, spec, attempt_dir, token=token)
    if spec.serve is not None:
        write_private(attempt_dir / ENGINE_KEY_FILE, secrets.token_urlsafe(32))
    if spec.evaluation is not None:
        stage_scorers(spec.evaluation, attempt_dir)
    write_private(attempt_dir / COMPOSITION_FILE, json.dumps(record, indent=2, default=str))
    write_private(attempt_dir / TOKEN_FILE, token)
    write_private(attempt_dir / SPEC_FILE, spec.model_dump_json(indent=2))
    return spec


def _prepare_training(settings: Settings, job: Job) -> tuple[JobSpec, dict[str, Any]]:
    """Build the spec, and the part of the manifest that shows how it was made."""
    with read() as session:
        job_inputs = find_job_inputs(session, settings, job=job)
        found = configuration.find(session, job_id=job.id)
    # A job that was submitted before configurations were stored has none.
    configured = found if found is not None else _compose(settings, job, job_inputs)
    stored = configured.composition
    # Such a job isn't claimed; but a launch that was interrupted is taken up by services that may have
    # been started differently.
    if stored.platform != settings.resolved_platform:
        message = (
            f"The job was configured for the platform {stored.platform}, but this one is "
            f"{settings.resolved_platform}."
        )
        raise CannotLaunchError(message, "other_platform")
    composition = complete(stored, build_launch_part(settings, job=job, job_inputs=job_inputs))
    _refuse_errors(composition)
    if found is None:
        _store(job, configured)
    spec = build_spec(settings, job, job_inputs, configured, composition)
    return spec, {
        "config": composition.config,
        "command": composition.command,
        "request": {"name": job.name, "preset": job.preset, "overrides": job.overrides},
        "composed_with": stored.composed_with.model_dump(),
    }


def _compose(settings: Settings, job: Job, job_inputs: JobInputs) -> Configuration:
    asked = build_compose_request(settings, job=job, job_inputs=job_inputs)
    composition = compose(asked)
    _refuse_errors(composition)
    return configuration.configure(job, job_inputs, request=asked, composition=composition)


def _store(job: Job, configured: Configuration) -> None:
    """Keep what a first launch was composed to for the attempts that follow."""
    with write() as session:
        current = repository.lock_job(session, job_id=job.id)
        if current is not None and configuration.find(session, job_id=job.id) is None:
            configuration.store(session, job=current, configuration=configured)


def _refuse_errors(composition: Composition) -> None:
    if composition.errors:
        reasons = " ".join(issue.message for issue in composition.errors)
        raise CannotLaunchError(reasons, "bad_configuration")


def _prepare_export(settings: Settings, job: Job) -> tuple[JobSpec, dict[str, Any]]:
    """Prepare a job that writes a checkpoint as a model, like ``_prepare_training``."""
    with read() as session:
        spec = build_export_spec(session, settings, job)
    return spec, {"config": job.export, "command": None}


def _prepare_evaluation(settings: Settings, job: Job) -> tuple[JobSpec, dict[str, Any]]:
    """Prepare a job that evaluates a model, like ``_prepare_training``."""
    with read() as session:
        spec = build_evaluation_spec(session, settings, job)
    return spec, {"config": spec.evaluation, "command": None}


def _prepare_endpoint(settings: Settings, job: Job) -> tuple[JobSpec, dict[str, Any]]:
    """Prepare a job that serves a model, like ``_prepare_training``."""
    with read() as session:
        spec = build_serve_spec(session, settings, job)
    return spec, {"config": spec.serve, "command": None}


_PREPARE = {
    TRAIN: _prepare_training,
    EXPORT: _prepare_export,
    EVALUATE: _prepare_evaluation,
    SERVE: _prepare_endpoint,
}


def build_spec(
    settings: Settings,
    job: Job,
    job_inputs: JobInputs,
    configured: Configuration,
    composition: Composition,
) -> JobSpec:
    """Build the spec that the training process reads."""
    model, validation = job_inputs.model, job_inputs.validation_dataset
    return JobSpec(
        job_id=job.id,
        attempt=job.attempt,
        name=job.name,
        recipe=job.recipe,
        engine=composition.engine,
        platform=configured.composition.platform,
        gpus=job.gpus,
        seed=job.seed,
        params=composition.params,
        engine_overrides=composition.engine_overrides,
        env=composition.env,
        model=ModelSource(
            model_id=model.id,
            path=str(settings.data_root / (model.path or "")),
            sha256=model.sha256,
            revision=model.revision,
        ),
        row_format=configured.composition.row_format,
        train_data=_describe_data(job_inputs.dataset, configured.train_data),
        validation_data=(
            _describe_data(validation, reading)
            if validation is not None and (reading := configured.validation_data) is not None
            else None
        ),
        attempt_dir=str(settings.attempt_dir(job.id, job.attempt)),
        checkpoint_dir=str(settings.checkpoint_dir(job.id)),
        resume_from=job.resume_from,
        agent=configured.composition.agent,
        ingest_url=settings.base_url,
    )


def _stage_agent(settings: Settings, job: Job, spec: JobSpec, attempt_dir: Path, *, token: str) -> JobSpec:
    """Add to the spec what the job's agent finds here: its environment, workflow and other models."""
    with read() as session:
        folder = locate_environment(session, settings, recipe=job.recipe, params=job.params)
    workflow = stage_workflow(settings, job, attempt_dir, token=token)
    if spec.agent is None:
        return spec
    update: dict[str, Any] = {
        "environment_path": str(folder) if folder else None,
        "workflow_path": workflow.path,
    }
    if workflow.path is not None:
        tools = {workflow.environment_name: str(folder)} if folder and workflow.environment_name else {}
        update |= {
            "workflow_packages": workflow.packages,
            "tool_environments": tools,
            "auxiliary_models": workflow.auxiliary_models,
            "platform_models": workflow.platform_models,
            "hosts": settings.workflow_hosts,
        }
    return spec.model_copy(update={"agent": spec.agent.model_copy(update=update)})


def _describe_data(dataset: DatasetView, reading: Reading) -> DataSource:
    return dataset.as_source(reading.format, reading.columns)
