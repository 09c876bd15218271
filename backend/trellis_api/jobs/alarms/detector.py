"""Passes arriving metrics through the rules: a few operations for each watched value, none for the others."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from trellis_api.jobs.alarms.judgements import Look, Verdict
from trellis_api.jobs.alarms.rules import RULES, Rule, find_rules
from trellis_api.jobs.alarms.watch import MAX_TRACKS, Track, Watch

#: The metrics of one step: (step, values by key).
StepMetrics = tuple[int, dict[str, float]]


@dataclass(frozen=True)
class Change:
    """What a rule says after one step."""

    kind: Literal["raised", "seen", "cleared"]
    code: str
    metric: str | None
    step: int
    first_step: int
    value: float | None
    threshold: float | None


def observe(watch: Watch, metrics: Iterable[StepMetrics]) -> list[Change]:
    """Look at the metrics of some steps; ``watch`` is changed in place, the changes are in their order."""
    changes: list[Change] = []
    for step, values in sorted(metrics, key=_step_of):
        followed = [(key, rules) for key in values if (rules := find_rules(key))]
        if not followed:
            continue
        watch.note(step, ((key, values[key]) for key, _ in followed))
        for position, track in sorted({pair for _, rules in followed for pair in rules}):
            changes += _judge(watch, RULES[position], track, step)
    return changes


def _step_of(metrics: StepMetrics) -> int:
    return metrics[0]


def _judge(watch: Watch, rule: Rule, key: str, step: int) -> Sequence[Change]:
    tracks = watch.tracks.get(rule.code, {})
    track = tracks.get(key)
    is_new = track is None
    track = track or Track()
    point = watch.latest.get(key)
    if point is None or point[0] != step or step <= track.step:
        return ()
    value = math.nan if point[1] is None else point[1]
    verdict = rule.judge(Look(track, key, value, lambda other: _at_step(watch, other, step), tracks.get))
    if verdict is None:
        return ()
    if is_new:
        # What is in order and needs no history is not worth a row in the memory.
        if (not verdict.is_bad and not rule.has_history) or len(tracks) >= MAX_TRACKS:
            return ()
        watch.tracks.setdefault(rule.code, {})[key] = track
    track.step = step
    if rule.has_history and not verdict.is_bad and math.isfinite(value):
        track.remember(step, value)
    change = _advance(watch, rule, track, key, step, verdict)
    return (change,) if change is not None else ()


def _at_step(watch: Watch, key: str, step: int) -> float | None:
    known = watch.latest.get(key)
    return known[1] if known is not None and known[0] == step else None


def _advance(watch: Watch, rule: Rule, track: Track, key: str, step: int, verdict: Verdict) -> Change | None:
    """Count steps in a row, and say what that changes."""
    if verdict.is_bad:
        track.first_bad = step if track.bad == 0 else track.first_bad
        track.bad, track.good = track.bad + 1, 0
        if track.is_active:
            return _change("seen", rule, track, key, step, verdict)
        if track.bad < rule.raise_after:
            return None
        was_raised = _is_raised(watch, rule.code)
        track.is_active = True
        return _change("seen" if was_raised else "raised", rule, track, key, step, verdict)
    track.bad, track.good = 0, track.good + 1
    if not track.is_active or track.good < rule.clear_after:
        return None
    track.is_active = False
    if _is_raised(watch, rule.code):
        return None  # another key of the same alarm is still wrong
    return _change("cleared", rule, track, key, step, verdict)


def _is_raised(watch: Watch, code: str) -> bool:
    return any(track.is_active for track in watch.tracks.get(code, {}).values())


def _change(
    kind: Literal["raised", "seen", "cleared"],
    rule: Rule,
    track: Track,
    key: str,
    step: int,
    verdict: Verdict,
) -> Change:
    return Change(kind, rule.code, key, step, track.first_bad, verdict.value, verdict.threshold)
