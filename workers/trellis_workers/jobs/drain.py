"""Takes over what a dead attempt left in its event spool, so that nothing that was measured is lost."""

import logging
from pathlib import Path

from trellis_api.core.errors import DomainError
from trellis_api.ingest.errors import SequenceGap, StaleAttempt
from trellis_api.ingest.service import ingest_batch
from trellis_contracts.events import IngestBatch
from trellis_contracts.spool import SpoolBatch, SpoolReader

from trellis_workers.core.lock import try_lock
from trellis_workers.core.transaction import write

logger = logging.getLogger(__name__)
_LOCK_FILE = "drain.lock"


def drain_spool(attempt_dir: Path, *, job_id: str, attempt: int) -> bool:
    """Bring every unsent event of a dead attempt into the database; False while another worker does."""
    if not attempt_dir.is_dir():
        return True
    with try_lock(attempt_dir / _LOCK_FILE) as has_lock:
        if not has_lock:
            return False
        reader = SpoolReader(attempt_dir)
        count = 0
        while (batch := reader.next_batch()) is not None:
            count += len(batch.events)
            if not _ingest(reader, batch, job_id=job_id, attempt=attempt):
                break
        if count:
            logger.info("job %s: %d events imported from the spool of attempt %d", job_id, count, attempt)
    return True


def _ingest(reader: SpoolReader, batch: SpoolBatch, *, job_id: str, attempt: int) -> bool:
    """Ingest one batch into the database; False if nothing more of this attempt is wanted."""
    try:
        with write() as session:
            body = IngestBatch(attempt=attempt, sequence=batch.sequence, events=batch.events)
            receipt = ingest_batch(session, job_id=job_id, batch=body)
    except SequenceGap as gap:
        reader.acknowledge(int(gap.details["expected"]))
    except StaleAttempt:
        return False
    except DomainError as error:
        logger.warning("job %s: a batch of its spool was rejected: %s", job_id, error)
        reader.shrink()
    else:
        reader.acknowledge(receipt.expected)
    return True
