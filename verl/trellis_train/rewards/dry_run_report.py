"""Makes the report of a dry run from the scores: histograms, latency, and warnings that matter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from trellis_contracts.dry_run import (
    DryRunResult,
    DryRunWarning,
    Latency,
    Probe,
    ProbeResult,
    ScoredExample,
    ScoringError,
)
from trellis_contracts.recipe import Text

from trellis_train.rewards.mixture import Scored
from trellis_train.rewards.probes import TITLES
from trellis_train.rewards.sample import Sample

BINS = 20
MAX_ERRORS, MAX_EXAMPLES, MAX_CHANGED = 5, 3, 20
MAX_TEXT = 2_000
#: Above this a step of a few hundred responses waits for its rewards.
SLOW_MS = 1_000.0
#: Scores that differ by less are equal.
EPSILON = 1e-9


@dataclass(frozen=True)
class Scoring:
    """One sample, scored twice."""

    row: int
    sample: Sample
    first: Scored
    elapsed_ms: float
    again: Scored

    @property
    def is_stable(self) -> bool:
        """Whether scoring it again gave the same."""
        return math.isclose(self.first.score, self.again.score, rel_tol=0, abs_tol=EPSILON) and set(
            self.first.errors
        ) == set(self.again.errors)


def make_report(scorings: dict[Probe, list[Scoring]], *, row_count: int, cost: float) -> DryRunResult:
    """Build the report on all probes."""
    everything = [scoring for group in scorings.values() for scoring in group]
    edges = _choose_edges([scoring.first.score for scoring in everything])
    probes = [_summarise(probe, group, edges) for probe, group in scorings.items()]
    latency = _measure(everything)
    return DryRunResult(
        row_count=row_count,
        edges=edges,
        probes=probes,
        warnings=find_warnings(probes, latency),
        error_count=sum(probe.error_count for probe in probes),
        is_deterministic=all(probe.is_deterministic for probe in probes),
        latency=latency,
        cost=cost,
    )


def _choose_edges(scores: Sequence[float]) -> list[float]:
    """Choose edges of equal bins over all scores; around a single value, a bin of width one."""
    low, high = min(scores), max(scores)
    if high - low < EPSILON:
        low, high = low - 0.5, high + 0.5
    return [low + (high - low) * place / BINS for place in range(BINS + 1)]


def _summarise(probe: Probe, group: Sequence[Scoring], edges: Sequence[float]) -> ProbeResult:
    scores = [scoring.first.score for scoring in group]
    histogram = [0] * BINS
    for score in scores:
        place = int((score - edges[0]) / (edges[-1] - edges[0]) * BINS)
        histogram[min(max(place, 0), BINS - 1)] += 1
    errors = [
        ScoringError(row=scoring.row, term=term, message=message)
        for scoring in group
        for term, message in scoring.first.errors.items()
    ]
    changed = [scoring.row for scoring in group if not scoring.is_stable]
    return ProbeResult(
        probe=probe,
        title=TITLES[probe],
        count=len(group),
        mean=fmean(scores),
        minimum=min(scores),
        maximum=max(scores),
        correct_share=fmean(scoring.first.acc for scoring in group),
        histogram=histogram,
        term_means={
            term: fmean(scoring.first.parts[term] for scoring in group) for term in group[0].first.parts
        },
        error_count=len(errors),
        errors=errors[:MAX_ERRORS],
        latency=_measure(group),
        is_deterministic=not changed,
        changed_rows=changed[:MAX_CHANGED],
        examples=[_show(scoring) for scoring in group[:MAX_EXAMPLES]],
    )


def _measure(group: Sequence[Scoring]) -> Latency:
    times = sorted(scoring.elapsed_ms for scoring in group)
    return Latency(p50_ms=_quantile(times, 0.5), p95_ms=_quantile(times, 0.95), max_ms=times[-1])


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def _show(scoring: Scoring) -> ScoredExample:
    sample = scoring.sample
    return ScoredExample(
        row=scoring.row,
        prompt=_shorten(sample.prompt),
        response=_shorten(sample.response),
        answer=_shorten(sample.answer),
        score=scoring.first.score,
        parts=scoring.first.parts,
    )


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def find_warnings(probes: Sequence[ProbeResult], latency: Latency) -> list[DryRunWarning]:
    """Find problems in these scores that would mislead the policy or leave no learning signal."""
    by_name = {probe.probe: probe for probe in probes}
    made = [probe for probe in probes if probe.probe is not Probe.ROLLOUTS]
    warnings = [*_warn_of_gold(by_name, made), *_warn_of_empty(by_name), *_warn_of_errors(probes)]
    if made and max(each.maximum for each in made) - min(each.minimum for each in made) < EPSILON:
        warnings.append(
            _warning(
                "all_equal",
                "All probes get the same score, so there is no learning signal.",
                "所有探针得分相同，无法从中学到任何东西。",
            )
        )
    if not all(probe.is_deterministic for probe in probes):
        unstable = next(probe for probe in probes if not probe.is_deterministic)
        warnings.append(
            _warning(
                "not_deterministic",
                f"Scoring a response twice gave different scores (e.g. row {unstable.changed_rows[0]}).",
                f"同一回答再次评分得到了不同的分数（例如第 {unstable.changed_rows[0]} 行）。",
                unstable.probe,
            )
        )
    if latency.p95_ms > SLOW_MS:
        seconds = latency.p95_ms / 1000
        warnings.append(
            _warning(
                "slow",
                f"Scoring takes up to {seconds:.1f} s per response (p95) and will slow down each step.",
                f"单个回答评分耗时可达 {seconds:.1f} 秒（95 分位），训练步骤会等待评分。",
            )
        )
    return warnings


def _warn_of_gold(by_name: dict[Probe, ProbeResult], made: Sequence[ProbeResult]) -> list[DryRunWarning]:
    gold = by_name.get(Probe.GOLD)
    best = max(made, key=lambda each: each.mean, default=None)
    if gold is None or best is None or best.mean - gold.mean < EPSILON:
        return []
    return [
        _warning(
            "gold_not_best",
            f"The reference solutions score {gold.mean:.3g}, less than '{best.title.en}' with "
            f"{best.mean:.3g}: a policy would learn that instead.",
            f"参考解答得分 {gold.mean:.3g}，低于“{best.title.zh}”的 {best.mean:.3g}：模型会学成后者。",
            best.probe,
        )
    ]


def _warn_of_empty(by_name: dict[Probe, ProbeResult]) -> list[DryRunWarning]:
    empty = by_name.get(Probe.EMPTY)
    if empty is None or empty.maximum <= EPSILON:
        return []
    return [
        _warning(
            "empty_earns",
            f"An empty response earns up to {empty.maximum:.3g}.",
            f"空回答最多可得 {empty.maximum:.3g} 分。",
            Probe.EMPTY,
        )
    ]


def _warn_of_errors(probes: Sequence[ProbeResult]) -> list[DryRunWarning]:
    count = sum(probe.error_count for probe in probes)
    if not count:
        return []
    first = next(probe for probe in probes if probe.errors)
    error = first.errors[0]
    return [
        _warning(
            "errors",
            f"{count} reward calls failed and count as 0, e.g. '{error.term}': {error.message}",
            f"有 {count} 次评分抛出异常并计为 0，例如“{error.term}”：{error.message}",
            first.probe,
        )
    ]


def _warning(code: str, en: str, zh: str, probe: Probe | None = None) -> DryRunWarning:
    return DryRunWarning(code=code, probe=probe, message=Text(en=en, zh=zh))
