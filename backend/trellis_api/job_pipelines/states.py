"""The states of stages and pipelines, and the rules by which one leads to the other.

Pure functions: what is decided here from the stages' states alone, ``advance.py`` carries out.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class StageState(StrEnum):
    """State of a stage."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    #: A finished stage with the same fingerprint had its outcome to give.
    SKIPPED = "skipped"
    #: A stage that it needs did not succeed.
    BLOCKED = "blocked"


class PipelineState(StrEnum):
    """State of a pipeline."""

    #: Never started.
    IDLE = "idle"
    RUNNING = "running"
    #: Told to stop while stages still run.
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


#: Outcomes that stages behind them can go on from.
DONE = frozenset({StageState.SUCCEEDED, StageState.SKIPPED})
#: Outcomes that block the stages behind them.
UNDONE = frozenset({StageState.FAILED, StageState.STOPPED, StageState.BLOCKED})
ENDED_PIPELINES = frozenset({PipelineState.SUCCEEDED, PipelineState.FAILED, PipelineState.STOPPED})

States = Mapping[str, StageState]
Needs = Mapping[str, Iterable[str]]


def find_blocked(states: States, needs: Needs) -> list[str]:
    """Return waiting stages that can no longer run, including those that depend on blocked ones."""
    known, blocked = dict(states), list[str]()
    while True:
        found = [
            stage
            for stage, state in known.items()
            if state is StageState.WAITING and any(known[need] in UNDONE for need in needs[stage])
        ]
        if not found:
            return blocked
        blocked += found
        known |= dict.fromkeys(found, StageState.BLOCKED)


def find_startable(states: States, needs: Needs) -> list[str]:
    """Return the waiting stages whose needs are all met, in their order."""
    return [
        stage
        for stage, state in states.items()
        if state is StageState.WAITING and all(states[need] in DONE for need in needs[stage])
    ]


def find_behind(stage: str, needs: Needs) -> set[str]:
    """Find all stages that need this one, directly or through others."""
    behind, edge = set[str](), {stage}
    while edge:
        edge = {each for each, needed in needs.items() if edge & set(needed)} - behind
        behind |= edge
    return behind


def find_cycle(needs: Needs) -> list[str]:
    """Find stages that need each other in a cycle; empty if there are none."""
    left = {stage: set(needed) for stage, needed in needs.items()}
    while free := [stage for stage, needed in left.items() if not needed & left.keys()]:
        for stage in free:
            del left[stage]
    return list(left)


def of_pipeline(states: Iterable[StageState], *, is_active: bool) -> PipelineState:
    """Return the state of a started pipeline, from its stages' states."""
    found = set(states)
    if StageState.RUNNING in found:
        return PipelineState.RUNNING if is_active else PipelineState.STOPPING
    if StageState.WAITING in found:
        return PipelineState.RUNNING if is_active else PipelineState.STOPPED
    if StageState.FAILED in found:
        return PipelineState.FAILED
    if StageState.STOPPED in found:
        return PipelineState.STOPPED
    return PipelineState.SUCCEEDED
