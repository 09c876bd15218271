"""Tries rewards on real rows: ``python -m trellis_train.rewards.dry_run <folder>``.

The folder holds the request, and the judges' keys where there are any. Progress and result are
written there. Ends when its standard input does: with the worker that started it.
"""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path

from trellis_contracts.dry_run import (
    EXIT_BAD_REQUEST,
    PROGRESS_FILE,
    REQUEST_FILE,
    RESULT_FILE,
    DryRunProgress,
    DryRunResult,
    DryRunTask,
    Probe,
)
from trellis_contracts.ledger import read_spent
from trellis_recipes.rewards import reward_kinds

from trellis_train.rewards.dry_run_report import Scoring, make_report
from trellis_train.rewards.mixture import Mixture, Scored
from trellis_train.rewards.probes import BadDryRun, draw_rows, make_probes
from trellis_train.rewards.resources import ScoringPlace, read_keys
from trellis_train.rewards.sample import Sample

_PROGRESS_INTERVAL_S = 0.3
#: Responses that are scored at a time where a reward waits for others.
CONCURRENT = 8

Probes = dict[Probe, list[tuple[int, Sample]]]
Timed = tuple[Scored, float]


def main(arguments: list[str]) -> int:
    """Carry out the dry run of the folder; the exit code of the process."""
    folder = Path(arguments[0])
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    task = DryRunTask.model_validate_json((folder / REQUEST_FILE).read_bytes())
    try:
        result = asyncio.run(carry_out(task, folder))
    except BadDryRun as error:
        print(error, file=sys.stderr, flush=True)
        return EXIT_BAD_REQUEST
    _write(folder / RESULT_FILE, result.model_dump_json())
    return 0


async def carry_out(task: DryRunTask, folder: Path) -> DryRunResult:
    """Score all probes twice; raises ``BadDryRun`` where a reward or the data cannot be used at all."""
    # Nobody has given a dry run a GPU: a job may need all of its memory.
    place = ScoringPlace(task.resources, read_keys(folder), folder, may_use_gpu=False)
    rows = draw_rows(task.data, task.row_count, task.seed)
    probes = make_probes(rows, task.rollouts)
    progress = _Progress(folder, total=2 * sum(len(samples) for samples in probes.values()))
    rounds = []
    for _ in range(2):
        # A mixture for each: what the first one remembers must not look like determinism.
        mixture = Mixture(task.rewards, place)
        try:
            rounds.append(await _score_all(mixture, probes, progress))
        finally:
            await mixture.close()
    first, again = rounds
    scorings = {
        probe: [
            Scoring(row, sample, *first[probe][index], again=again[probe][index][0])
            for index, (row, sample) in enumerate(samples)
        ]
        for probe, samples in probes.items()
    }
    return make_report(scorings, row_count=len(rows), cost=read_spent(folder))


async def _score_all(mixture: Mixture, probes: Probes, progress: "_Progress") -> dict[Probe, list[Timed]]:
    """Score every sample and measure how long it took, in milliseconds."""
    waits = any(reward_kinds()[term.name].waits for term in mixture.terms)
    slots = asyncio.Semaphore(CONCURRENT if waits else 1)

    async def score(sample: Sample) -> Timed:
        async with slots:
            started = time.perf_counter()
            scored = await mixture.score(sample)
            elapsed_ms = (time.perf_counter() - started) * 1000
        if scored.is_unusable:
            raise BadDryRun(next(iter(scored.errors.values())))
        progress.advance()
        return scored, elapsed_ms

    # Not measured: what is started or loaded for the first response.
    first = await mixture.score(next(iter(probes.values()))[0][1])
    if first.is_unusable:
        raise BadDryRun(next(iter(first.errors.values())))
    return {
        probe: await asyncio.gather(*(score(sample) for _, sample in samples))
        for probe, samples in probes.items()
    }


class _Progress:
    """How many responses are scored, written now and then."""

    def __init__(self, folder: Path, *, total: int) -> None:
        self._path = folder / PROGRESS_FILE
        self._total = total
        self._done = 0
        self._written_at = 0.0

    def advance(self) -> None:
        """Count one."""
        self._done += 1
        if time.monotonic() - self._written_at > _PROGRESS_INTERVAL_S:
            self._written_at = time.monotonic()
            _write(self._path, DryRunProgress(done=self._done, total=self._total).model_dump_json())


def _write(path: Path, text: str) -> None:
    """Write in one step, so that the worker never reads half of it."""
    draft = path.with_suffix(".tmp")
    draft.write_text(text)
    os.replace(draft, path)


def _leave_with_parent() -> None:
    # Not through sys.stdin: its lock would be held while the interpreter ends.
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
