"""Counts the sessions of a batch that failed, says why, and ends a run whose sessions teach nothing.

Looked at before anything is computed of the batch: a session that failed has no trained token, and of a
batch of such sessions verl would only say that its mask is empty.
"""

import json
import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import SESSIONS_FILE
from trellis_contracts.events import Split

from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE
from trellis_train.rollout.sample_ids import last_outputs, real_keys

logger = logging.getLogger(__name__)

#: Of a sample's extra fields: what ``Failure.as_dict`` says, or None.
FAILURE_KEY = "failure"
#: Above this share of a step's sessions the policy would learn from what is left by chance.
MAX_FAILED_SHARE = 0.5
#: Kinds whose traceback a run shows in its log, and those that one sentence counts.
_TOLD_KINDS, _COUNTED_KINDS = 10, 5
_MESSAGE_CHARACTERS = 300


class SessionsFailing(RuntimeError):
    """Too many sessions gave no reward; the message counts them by kind and shows the first."""


@dataclass(frozen=True)
class Failure:
    """Why one session gave no reward."""

    kind: str
    message: str
    #: Through the workflow's own lines; empty where none of them raised.
    traceback: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return plain data, which is sent with the session's sample."""
        return asdict(self)


@dataclass(frozen=True)
class SessionCounts:
    """The sessions of a batch, and those that failed in their order."""

    sessions: int
    failures: Sequence[Failure]

    @property
    def kinds(self) -> dict[str, int]:
        """How many failed of each kind, the most frequent first."""
        return dict(Counter(each.kind for each in self.failures).most_common())

    def describe(self, *, step: int, split: Split) -> str:
        """Describe in one sentence how many failed, of which kinds, and the first of them."""
        counted = list(self.kinds.items())
        kinds = ", ".join(f"{count} {kind}" for kind, count in counted[:_COUNTED_KINDS])
        more = f" and {len(counted) - _COUNTED_KINDS} more kinds" if len(counted) > _COUNTED_KINDS else ""
        where = "validation sessions before step" if split == "validation" else "sessions of step"
        first = self.failures[0].message[:_MESSAGE_CHARACTERS]
        failed = f"{len(self.failures)} of the {self.sessions} {where} {step} failed"
        return f"{failed}: {kinds}{more}. First: {first}"


class SessionWatch:
    """Looks at the sessions of every batch of a run."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def take(self, counts: SessionCounts, *, step: int, split: Split) -> None:
        """Log what failed; ``SessionsFailing`` where more than half did (of a validation: all)."""
        _note(counts, step=step, split=split)
        if not counts.failures:
            return
        sentence = counts.describe(step=step, split=split)
        logger.warning("%s", sentence)
        for failure in counts.failures:
            if failure.kind not in self._told and len(self._told) < _TOLD_KINDS:
                self._told.add(failure.kind)
                logger.warning(
                    "A session failed (%s):\n%s", failure.kind, failure.traceback or failure.message
                )
        limit = counts.sessions - 1 if split == "validation" else MAX_FAILED_SHARE * counts.sessions
        if len(counts.failures) > limit:
            # The traceback last: the end of the log is what a failure shows.
            raise SessionsFailing("\n".join((sentence, counts.failures[0].traceback)).rstrip())


def read_sessions(batch: Any) -> SessionCounts:
    """Read the sessions of ``batch`` (verl's ``KVBatchMeta``); only the last output of each counts."""
    import transfer_queue as tq

    keys = sorted(last_outputs(real_keys(batch)))
    if not keys:
        return SessionCounts(0, [])
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
    if "extra_fields" not in data:
        return SessionCounts(0, [])
    column = data["extra_fields"]
    return count_sessions(column.tolist() if hasattr(column, "tolist") else list(column))


def count_sessions(extra_fields: Sequence[Any]) -> SessionCounts:
    """Count the sessions and their failures from their extra fields."""
    fields = [getattr(each, "data", each) for each in extra_fields]
    noted = [each.get(FAILURE_KEY) for each in fields if isinstance(each, dict)]
    return SessionCounts(len(fields), [Failure(**each) for each in noted if isinstance(each, Mapping)])


def _note(counts: SessionCounts, *, step: int, split: Split) -> None:
    """Write the counts down in the attempt's folder, for who runs the attempt without the platform."""
    folder = os.environ.get(ATTEMPT_DIR_VARIABLE)
    if folder is None or not counts.sessions:
        return
    first = counts.failures[0].message if counts.failures else None
    line = {"step": step, "split": split, "sessions": counts.sessions, "failed": counts.kinds, "first": first}
    with (Path(folder) / SESSIONS_FILE).open("a") as file:
        file.write(json.dumps(line) + "\n")
