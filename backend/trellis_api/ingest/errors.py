"""Why a report of a run is not taken."""

from trellis_api.core.errors import Conflict, DomainError, InvalidRequest


class InvalidJobToken(DomainError):
    """The token is not that of the job, or its attempt may not report any more."""

    status = 401
    code = "invalid_job_token"


class SequenceGap(Conflict):
    """A batch is missing before this one; the details say which is expected."""

    code = "sequence_gap"

    def __init__(self, expected: int) -> None:
        super().__init__(f"Batch {expected} must be sent first.", {"expected": expected})


class StaleAttempt(Conflict):
    """A newer attempt of the job has taken over."""

    code = "stale_attempt"

    def __init__(self, current: int) -> None:
        super().__init__("A newer attempt of this job has taken over.", {"attempt": current})


class BatchTooLarge(DomainError):
    """Larger than the limit, before or after decompression."""

    status = 413
    code = "batch_too_large"


class MalformedBatch(InvalidRequest):
    """Not a batch, or not gzip where it says so."""

    code = "malformed_batch"
