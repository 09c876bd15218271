"""When a run stands still: it lives, but no step has come for far longer than its steps take.

Steps differ: a validation or a checkpoint of a large model takes as long as many steps, and
the first step waits for weights to load and kernels to compile. Hence the floors.
"""

from trellis_api.jobs.alarms.watch import Watch

#: Times its own usual step that a run may take for one.
FACTOR = 10.0
#: While it trains, and while it validates or saves, which may take many steps' time.
FLOOR_S = 300.0
LONG_PHASE_FLOOR_S = 1800.0
LONG_PHASES = frozenset({"validating", "saving"})
#: From its start to its first step; large models load for long.
FIRST_STEP_FLOOR_S = 3600.0


def allow_s(watch: Watch | None, phase: str | None) -> float:
    """Return how many seconds a run may go without a new step."""
    if watch is None or watch.seen_at is None:
        return FIRST_STEP_FLOOR_S
    floor = LONG_PHASE_FLOOR_S if phase in LONG_PHASES else FLOOR_S
    usual = watch.step_time_s
    # Before the second step its length is not known.
    return max(floor, FACTOR * usual) if usual is not None else max(floor, LONG_PHASE_FLOOR_S)


def waited_s(watch: Watch | None, *, started_at: float, now: float) -> float:
    """Return how many seconds ago the newest step arrived, or the run began."""
    last = watch.seen_at if watch is not None and watch.seen_at is not None else started_at
    return max(0.0, now - last)
