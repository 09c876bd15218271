"""How an attempt ended, decided from what Ray, the exit code and the run itself say. No I/O."""

from dataclasses import dataclass, replace

from trellis_api.jobs.models import Attempt, Job
from trellis_contracts.isolation import EXIT_NOT_ISOLATED, NOT_ISOLATED
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_CRASHED, EXIT_STOPPED, EXIT_SUCCEEDED
from trellis_contracts.states import FINISHED, JobState

from trellis_workers.core.ray_client import RayJob, RayStatus

_EXITS = {
    EXIT_SUCCEEDED: JobState.SUCCEEDED,
    EXIT_STOPPED: JobState.STOPPED,
    EXIT_CRASHED: JobState.CRASHED,
}
_MAX_REASON_CHARS = 500


@dataclass(frozen=True)
class Settlement:
    """What to settle an attempt as. A reason of None leaves the run's own."""

    state: JobState
    exit_code: int | None = None
    reason: str | None = None
    cause: str | None = None


def decide(
    job: Job, attempt: Attempt | None, ray_job: RayJob, *, ended_for: Settlement | None = None
) -> Settlement:
    """Decide the settlement of an attempt that is over on Ray.

    The exit code decides. A supervising process that was killed has none of its own to
    give; then what the run had said by that time counts. ``ended_for`` is why the platform ended it, where
    nobody had asked it to stop.
    """
    outcome = attempt.outcome if attempt else None
    own_exit_code = attempt.exit_code if attempt and outcome else None
    code = ray_job.exit_code
    if code is not None and not _is_signal(code):
        state = _EXITS.get(code, JobState.FAILED)
        reason, cause = (None, None) if outcome else _explain(code, ray_job.message)
        return Settlement(state, code if own_exit_code is None else own_exit_code, reason, cause)
    if outcome in FINISHED:
        return Settlement(JobState(outcome), own_exit_code)
    if ended_for is not None and job.state != JobState.STOPPING:
        return replace(ended_for, exit_code=code)
    if ray_job.status == RayStatus.STOPPED or job.state == JobState.STOPPING:
        return Settlement(
            JobState.STOPPED, code, "The run was killed before it reached a checkpoint.", "ended"
        )
    if code is not None:
        number = -code if code < 0 else code - 128
        reason = f"The run's supervisor process was killed by signal {number}."
        return Settlement(JobState.CRASHED, code, reason, "killed")
    message = ray_job.message.strip().splitlines()
    last_line = message[-1][:_MAX_REASON_CHARS] if message else "no reason given"
    cause = "not_placed" if ray_job.was_never_placed else "launch_failed"
    return Settlement(JobState.CRASHED, None, f"Ray could not start the job: {last_line}", cause)


def _explain(code: int, message: str) -> tuple[str | None, str | None]:
    """Explain an exit that the run gave no reason for: (reason, cause); Ray's message ends with its log."""
    if code == EXIT_BAD_SPEC:
        return "The run could not read its job spec.", "bad_spec"
    if code == EXIT_NOT_ISOLATED:
        problem = message.rpartition(NOT_ISOLATED)[2].strip().partition("\n")[0][:_MAX_REASON_CHARS]
        said = f": {problem}" if problem and NOT_ISOLATED in message else ""
        return (
            f"The run's processes cannot be isolated on the machine that runs it{said}.",
            "isolation_unavailable",
        )
    if code in (EXIT_SUCCEEDED, EXIT_STOPPED):
        return None, None
    return f"The run exited with code {code} and gave no reason.", None


def _is_signal(code: int) -> bool:
    """Tell whether the exit code stands for a signal, seen directly or through a shell."""
    return code < 0 or 128 < code < 160
