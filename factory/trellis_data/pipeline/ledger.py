"""What a step did, batch by batch: counts, dropped rows, and examples drawn evenly from all rows.

An example's rank is a hash of its place, and those with the lowest ranks are kept: the same ones
whatever the order in which shards are worked on, and however often a run was interrupted.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from trellis_data.findings import FINDINGS, Finding, merge_findings
from trellis_data.layout import Batch
from trellis_data.outcome import Example, Outcome, StepReport
from trellis_data.pipeline.shards import ParquetAppender

#: Columns that a file of dropped rows has beside the rows' own.
POSITION, REASON = "trellis_position", "trellis_reason"
_MAX_ITEMS = 32


@dataclass(frozen=True)
class Limits:
    """How much a report holds."""

    seed: int = 0
    #: Examples of each kind, a step.
    examples: int = 5
    #: Characters of each text of an example.
    example_characters: int = 2000
    #: Dropped rows that are kept, a step; None for all.
    dropped: int | None = None


class Ledger:
    """Counts and examples of one step on one unit."""

    def __init__(self, name: str, operator: str, limits: Limits) -> None:
        self.report = StepReport(name=name, operator=operator)
        self._limits = limits
        self._reasons: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._findings: dict[str, Finding] = {}
        self._dropped: ParquetAppender | None = None

    def open(self, dropped: Path) -> None:
        """Say where dropped rows go."""
        self._dropped = ParquetAppender(dropped)

    def note(
        self, batch: Batch, outcome: Outcome, origins: np.ndarray, sources: np.ndarray, seconds: float
    ) -> None:
        """Add what became of a batch whose rows stood at ``origins``."""
        report, kept = self.report, int(outcome.keep.sum())
        report.rows_in += len(batch)
        report.kept += kept
        report.dropped += len(batch) - kept
        report.changed += int((outcome.changed & outcome.keep).sum())
        report.seconds += seconds
        self._counts.update(outcome.counts)
        self._findings = merge_findings(self._findings, outcome.findings)
        lost = np.flatnonzero(~outcome.keep)
        reasons = [outcome.reasons.get(int(index), "dropped") for index in lost]
        self._reasons.update(reasons)
        self._keep_dropped(batch, lost, reasons, origins)
        self._sample("dropped", batch, lost, origins, outcome, sources)
        self._sample(
            "changed", batch, np.flatnonzero(outcome.changed & outcome.keep), origins, outcome, sources
        )

    def close(self) -> StepReport:
        """Finish and return the partial report."""
        if self._dropped is not None:
            self._dropped.close()
        self.report.reasons = dict(sorted(self._reasons.items()))
        self.report.counts = dict(sorted(self._counts.items()))
        self.report.findings = FINDINGS.dump_python(self._findings, mode="json")
        return self.report

    def _keep_dropped(self, batch: Batch, lost: np.ndarray, reasons: list[str], origins: np.ndarray) -> None:
        if self._dropped is None or not len(lost):
            return
        limit = self._limits.dropped
        room = len(lost) if limit is None else max(0, limit - self._dropped.rows)
        lost, reasons = lost[:room], reasons[:room]
        if len(lost):
            # Rows that an earlier run dropped may come again with what was said of them then.
            own = [name for name in (POSITION, REASON) if name in batch.table.column_names]
            rows = batch.table.drop_columns(own).take(pa.array(lost))
            rows = rows.append_column(POSITION, pa.array(origins[lost], pa.int64()))
            self._dropped.write(rows.append_column(REASON, pa.array(reasons, pa.string())))

    def _sample(
        self,
        kind: Literal["changed", "dropped"],
        batch: Batch,
        rows: np.ndarray,
        origins: np.ndarray,
        outcome: Outcome,
        sources: np.ndarray,
    ) -> None:
        if not len(rows) or not self._limits.examples:
            return
        ranks = _ranks(origins[rows], self.report.name, self._limits.seed)
        best = np.argsort(ranks, kind="stable")[: self._limits.examples]
        worst = self._worst(kind)
        chosen = [int(rows[at]) for at in best if worst is None or ranks[at] < worst]
        if not chosen:
            return
        before = batch.table.take(pa.array(chosen)).to_pylist()
        after: list[dict[str, Any] | None] = [None] * len(chosen)
        if kind == "changed":
            places = np.searchsorted(sources, chosen)
            after = list(outcome.table.take(pa.array(places)).to_pylist())
        fresh = [
            Example(
                position=int(origins[row]),
                kind=kind,
                reason=outcome.reasons.get(row),
                before=shorten(old, self._limits.example_characters),
                after=None if new is None else shorten(new, self._limits.example_characters),
            )
            for row, old, new in zip(chosen, before, after, strict=True)
        ]
        self.report.examples = lowest([*self.report.examples, *fresh], self.report.name, self._limits)

    def _worst(self, kind: str) -> int | None:
        """Return the highest rank among the kept examples once there are enough, else None."""
        places = [each.position for each in self.report.examples if each.kind == kind]
        if len(places) < self._limits.examples:
            return None
        return int(_ranks(np.array(places), self.report.name, self._limits.seed).max())


def merge(parts: Iterable[StepReport], limits: Limits) -> StepReport:
    """Merge the reports of a step's units, in order, into one."""
    whole: StepReport | None = None
    reasons: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    findings: dict[str, Finding] = {}
    for part in parts:
        findings = merge_findings(findings, FINDINGS.validate_python(part.findings))
        reasons.update(part.reasons)
        counts.update(part.counts)
        if whole is None:
            whole = part.model_copy(deep=True)
            continue
        for name in ("rows_in", "kept", "changed", "dropped", "seconds"):
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
        whole.examples = lowest([*whole.examples, *part.examples], whole.name, limits)
    if whole is None:
        raise ValueError("a step has at least one unit")
    whole.reasons = dict(sorted(reasons.items()))
    whole.counts = dict(sorted(counts.items()))
    whole.findings = FINDINGS.dump_python(findings, mode="json")
    return whole


def lowest(examples: list[Example], step: str, limits: Limits) -> list[Example]:
    """Choose the examples with the lowest ranks of each kind, changed ones first, in input order."""
    kept: list[Example] = []
    for kind in ("changed", "dropped"):
        mine = [each for each in examples if each.kind == kind]
        ranks = _ranks(np.array([each.position for each in mine], dtype=np.int64), step, limits.seed)
        best = sorted(np.argsort(ranks, kind="stable")[: limits.examples], key=lambda at: mine[at].position)
        kept += [mine[at] for at in best]
    return kept


def shorten(value: Any, characters: int) -> Any:
    """Shorten long texts and lists in a value and mark them as shortened."""
    if isinstance(value, str):
        return value if len(value) <= characters else f"{value[:characters]}… ({len(value):,} characters)"
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if isinstance(value, dict):
        return {key: shorten(each, characters) for key, each in list(value.items())[:256]}
    if isinstance(value, list):
        cut = [shorten(each, characters) for each in value[:_MAX_ITEMS]]
        return cut if len(value) <= _MAX_ITEMS else [*cut, f"… ({len(value):,} items)"]
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def _ranks(positions: np.ndarray, step: str, seed: int) -> np.ndarray:
    """Return a pseudo-random number for each position (splitmix64), the same on every machine."""
    salt = int.from_bytes(hashlib.blake2b(f"{seed}:{step}".encode(), digest_size=8).digest(), "little")
    with np.errstate(over="ignore"):
        mixed = positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))
