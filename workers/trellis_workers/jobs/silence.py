"""Finds runs that Ray sees running and that have frozen: their supervising process gives no sign of life.

A process that was stopped (SIGSTOP) or waits for a hung file system lives for Ray, and reports to nobody.
An API that was away hears nothing of a healthy run either. So a run is watched where the API does not
matter: it touches a file with each heartbeat, and has frozen when workers have seen the file stand still
for long. That is counted from look to look, and no look counts for much: a machine that slept, workers that
were away and clocks that jump make no run look frozen.
"""

import logging
import time
from pathlib import Path

from pydantic import BaseModel, ValidationError
from trellis_api.jobs import service
from trellis_api.jobs.models import Attempt, Job
from trellis_contracts.attempt import BEAT_FILE, SILENCE_FILE
from trellis_contracts.private_files import write_private
from trellis_contracts.states import JobState

from trellis_workers.core.settings import get_settings
from trellis_workers.jobs.verdict import Settlement

logger = logging.getLogger(__name__)

#: Without a heartbeat for so long a run is watched: three of them are missing.
SUSPECT_AFTER_S = 15.0
#: It has frozen when its file has stood still for so long; with all that follows that is less than 120 s.
FROZEN_AFTER_S = 60.0
#: The same for one that never gave a sign: a cold or busy disk makes a first start slow.
NEVER_BEGAN_AFTER_S = 300.0
#: Ray kills what does not leave 20 s after its SIGTERM. A run that Ray cannot end is given up after this.
GIVE_UP_AFTER_S = 30.0
#: What one look counts for at most.
_MAX_LOOK_S = 10.0

FROZEN = Settlement(
    JobState.CRASHED,
    reason="The run's supervisor process hung for more than a minute and was killed: it was paused, or "
    "blocked on an unresponsive file system.",
    cause="frozen",
)

#: What a full disk did not take: a run that has frozen is ended all the same.
_unwritten: "dict[Path, Silence]" = {}


class Silence(BaseModel):
    """What the workers have seen of an attempt that does not report, kept in its folder."""

    #: Time of the file that the run touches; None while there is none.
    beat_ns: int | None
    #: For how long it has been seen to stand still.
    silent_s: float = 0.0
    seen_at: float
    #: When Ray was told to end the run.
    ended_at: float | None = None


def has_frozen(job: Job, attempt: Attempt | None) -> bool:
    """Look at a run that Ray sees running; whether it has stood still for too long."""
    if attempt is None or not _is_suspect(job, attempt):
        return False
    folder = get_settings().attempt_dir(job.id, job.attempt)
    beat_ns = _read_beat(folder)
    if beat_ns is None and attempt.heartbeat_at is not None:
        return False  # it runs without such a file, as runs did before there was one
    now, before = time.time(), read_silence(job)
    if before is not None and before.ended_at is not None:
        return True  # it is being ended, and a late sign of life does not change that
    if before is None or before.beat_ns != beat_ns:
        _write(folder, Silence(beat_ns=beat_ns, seen_at=now))
        return False
    longest_s = max(_MAX_LOOK_S, 2 * get_settings().sweep_interval_s)
    before.silent_s += min(max(0.0, now - before.seen_at), longest_s)
    before.seen_at = now
    _write(folder, before)
    return before.silent_s >= (NEVER_BEGAN_AFTER_S if beat_ns is None else FROZEN_AFTER_S)


def note_end(job: Job) -> bool:
    """Remember that the run is being ended because it froze; whether Ray has had its time for that."""
    silence = read_silence(job)
    if silence is None:
        return False
    if silence.ended_at is None:
        silence.ended_at = time.time()
        _write(get_settings().attempt_dir(job.id, job.attempt), silence)
    return time.time() - silence.ended_at > GIVE_UP_AFTER_S


def was_ended(job: Job) -> bool:
    """Tell whether the attempt was ended because it froze."""
    silence = read_silence(job)
    return silence is not None and silence.ended_at is not None


def read_silence(job: Job) -> Silence | None:
    """Read what is known so far of the attempt's silence, if anything."""
    path = get_settings().attempt_dir(job.id, job.attempt) / SILENCE_FILE
    if path in _unwritten:
        return _unwritten[path]
    try:
        return Silence.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        logger.warning("job %s: %s is corrupted and will be rewritten", job.id, path)
        return None


def _is_suspect(job: Job, attempt: Attempt) -> bool:
    """Tell whether the run's report is overdue."""
    return attempt.heartbeat_at is None or service.is_overdue(job, attempt, timeout_s=SUSPECT_AFTER_S)


def _read_beat(folder: Path) -> int | None:
    try:
        return (folder / BEAT_FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _write(folder: Path, silence: Silence) -> None:
    path = folder / SILENCE_FILE
    try:
        write_private(path, silence.model_dump_json())
    except OSError as error:
        logger.warning("%s cannot be written and is kept in memory: %s", path, error)
        _unwritten[path] = silence
    else:
        _unwritten.pop(path, None)
