"""The Ray cluster as the workers see it: submit, look at, list and stop jobs over the Jobs API."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from trellis_recipes.placement import ResourceDemand

from trellis_workers.core.settings import get_settings

if TYPE_CHECKING:
    from ray.job_submission import JobDetails, JobSubmissionClient

#: Seconds to connect, and to wait for an answer.
_TIMEOUT_S = (3.0, 20.0)
#: Ray's word for a job whose entrypoint was not placed in time (RAY_JOB_START_TIMEOUT_SECONDS, 15 minutes).
_START_TIMEOUT = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
_ADDRESS_VARIABLE = "RAY_API_SERVER_ADDRESS"


class RayAwayError(Exception):
    """The cluster gave no usable answer. What was asked of it may or may not have happened."""


class RayStatus(StrEnum):
    """Ray's own job states."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


#: States in which a Ray job's process is gone.
OVER = frozenset({RayStatus.STOPPED, RayStatus.SUCCEEDED, RayStatus.FAILED})


@dataclass(frozen=True)
class RayJob:
    """What Ray knows of a submission."""

    submission_id: str
    status: RayStatus
    #: Of the entrypoint process; None while it runs, and where Ray never learned it.
    exit_code: int | None
    message: str
    metadata: dict[str, str]
    #: Ray's own number of the job, once its driver has joined the cluster: what it made bears that.
    driver_id: str | None = None
    #: Whether Ray gave up: for long no node had what the entrypoint asks for.
    was_never_placed: bool = False


class RayJobs:
    """Ray's Jobs API, with time-outs and with errors that say what they mean."""

    def __init__(self, dashboard_url: str) -> None:
        self._dashboard_url = dashboard_url
        self._client: JobSubmissionClient | None = None

    def ping(self) -> None:
        """Raise ``RayAwayError`` unless the cluster answers."""
        with self._calling() as client:
            client.get_version()

    def submit(
        self,
        submission_id: str,
        *,
        entrypoint: str,
        demand: ResourceDemand,
        env: dict[str, str],
        metadata: dict[str, str],
    ) -> bool:
        """Submit a run; False if this id was submitted before (then nothing is started again).

        The entrypoint runs on a node that has what it demands, and sees the GPUs that Ray gives it.
        """
        with self._calling() as client:
            try:
                client.submit_job(
                    submission_id=submission_id,
                    entrypoint=entrypoint,
                    entrypoint_num_cpus=demand.cpus,
                    entrypoint_num_gpus=demand.gpus,
                    runtime_env={"env_vars": env},
                    metadata=metadata,
                )
            except RuntimeError as error:
                if "already exists" in str(error):
                    return False
                raise
        return True

    def find(self, submission_id: str) -> RayJob | None:
        """Return the submission, or None when Ray does not know it."""
        with self._calling() as client:
            try:
                return _translate(client.get_job_info(submission_id))
            except RuntimeError as error:
                if _is_unknown(error):
                    return None
                raise

    def list_unfinished(self) -> list[RayJob]:
        """List all submissions that wait or run."""
        with self._calling() as client:
            jobs = [_translate(job) for job in client.list_jobs() if job.submission_id]
        return [job for job in jobs if job.status not in OVER]

    def stop(self, submission_id: str) -> None:
        """Ask Ray to end a submission: SIGTERM, and SIGKILL some seconds later. Asking again is fine."""
        with self._calling() as client:
            try:
                client.stop_job(submission_id)
            except RuntimeError as error:
                if not _is_unknown(error):
                    raise

    @contextmanager
    def _calling(self) -> Iterator["JobSubmissionClient"]:
        """Yield the client; any error of the call becomes ``RayAwayError``."""
        import requests

        try:
            if self._client is None:
                self._client = _connect(self._dashboard_url)
            yield self._client
        except (RuntimeError, ValueError, OSError, requests.RequestException) as error:
            self._client = None
            raise RayAwayError(f"{type(error).__name__}: {error}") from error


@cache
def get_ray() -> RayJobs:
    """Return the cluster that jobs run on."""
    url = get_settings().ray_dashboard_url
    if url is None:
        raise RuntimeError(
            "TRELLIS_RAY_DASHBOARD_URL is not set; the workers need the address of the Ray cluster."
        )
    return RayJobs(url)


def _connect(dashboard_url: str) -> "JobSubmissionClient":
    # Imported here: Ray takes a second to import, which beat and the worker's parent need not spend.
    from ray.job_submission import JobSubmissionClient

    class ClientWithTimeouts(JobSubmissionClient):  # type: ignore[misc]
        """Ray's client waits for ever by default."""

        def _do_request(self, method: str, endpoint: str, **options: Any) -> Any:
            return super()._do_request(method, endpoint, **{"timeout": _TIMEOUT_S, **options})

    # RAY_ADDRESS in the environment would take the place of our address; this one goes before it.
    os.environ[_ADDRESS_VARIABLE] = dashboard_url
    return ClientWithTimeouts(dashboard_url)


def _is_unknown(error: RuntimeError) -> bool:
    """Tell whether Ray doesn't know the submission: it has no error class of its own for that."""
    return "status code 404" in str(error) or "does not exist" in str(error)


def _translate(job: "JobDetails") -> RayJob:
    return RayJob(
        submission_id=job.submission_id,
        status=RayStatus(job.status.value),
        exit_code=job.driver_exit_code,
        message=job.message or "",
        metadata=dict(job.metadata or {}),
        driver_id=job.driver_info.id if job.driver_info else None,
        was_never_placed=job.error_type == _START_TIMEOUT,
    )
