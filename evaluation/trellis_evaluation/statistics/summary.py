"""From a benchmark's samples to its scores, breakdown and counts."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trellis_contracts.evaluation import BenchmarkResult, GroupScore, Sample, Score, Verdict, VerdictCounts

from trellis_evaluation.statistics.intervals import SEED, mean_score


def summarise(
    samples: Iterable[Sample],
    *,
    label: str,
    benchmark: str,
    metrics: Sequence[str],
    group_kinds: Sequence[str] = (),
    extras: Sequence[Score] = (),
    seconds: float = 0.0,
    remarks: dict[str, float | str] | None = None,
    seed: int = SEED,
) -> BenchmarkResult:
    """Compute the result of one benchmark; samples are read once and not kept.

    Each of ``metrics`` (the headline first) is the mean over problems of ``Sample.parts``, unless ``extras``
    has a score of that name; further extras follow. A sample that failed scores 0 under every metric: what
    was not answered is not left out, and ``counts`` tells how many these are. ``ValueError`` where a sample
    that did not fail lacks a metric.
    """
    if not metrics:
        raise ValueError(f"{label} has no metric")
    given = {score.metric: score for score in extras}
    read = _Collected(label, [metric for metric in metrics if metric not in given], set(group_kinds))
    for sample in samples:
        read.add(sample)
    scores = [given.get(metric) or read.score(metric, seed) for metric in metrics]
    scores += [score for score in extras if score.metric not in metrics]
    return BenchmarkResult(
        label=label,
        benchmark=benchmark,
        headline=metrics[0],
        scores=scores,
        groups=read.group_scores(metrics[0], list(group_kinds), seed),
        counts=count_verdicts(read.verdicts),
        problems=len(set(read.positions)),
        prompt_tokens=read.prompt_tokens,
        output_tokens=read.output_tokens,
        seconds=seconds,
        remarks=dict(remarks or {}),
    )


def count_verdicts(verdicts: Counter[Verdict]) -> VerdictCounts:
    """Convert counts of verdicts to the form that results contain."""
    return VerdictCounts(
        total=sum(verdicts.values()), **{verdict.value: verdicts[verdict] for verdict in Verdict}
    )


@dataclass
class _Collected:
    """Numbers of all samples, in columns: a million samples are some ten megabytes."""

    label: str
    metrics: list[str]
    kinds: set[str]
    positions: "array[int]" = field(default_factory=lambda: array("q"))
    heads: "array[float]" = field(default_factory=lambda: array("d"))
    columns: dict[str, "array[float]"] = field(default_factory=dict)
    members: dict[tuple[str, str], "array[int]"] = field(default_factory=dict)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    prompt_tokens: int = 0
    output_tokens: int = 0

    def __post_init__(self) -> None:
        self.columns = {metric: array("d") for metric in self.metrics}

    def add(self, sample: Sample) -> None:
        for metric, column in self.columns.items():
            column.append(self._part(sample, metric))
        row = len(self.positions)
        self.positions.append(sample.position)
        self.heads.append(sample.score)
        for kind, name in sample.groups.items():
            if kind in self.kinds:
                self.members.setdefault((kind, name), array("q")).append(row)
        self.verdicts[sample.verdict] += 1
        self.prompt_tokens += sample.prompt_tokens
        self.output_tokens += sample.output_tokens

    def _part(self, sample: Sample, metric: str) -> float:
        if metric in sample.parts:
            return sample.parts[metric]
        if sample.verdict is not Verdict.FAILED:
            raise ValueError(f"sample {sample.key} of {self.label} has no {metric}")
        return 0.0

    def score(self, metric: str, seed: int) -> Score:
        return mean_score(metric, self.columns[metric], self.positions, seed=seed)

    def group_scores(self, headline: str, kinds: list[str], seed: int) -> list[GroupScore]:
        """Compute the headline metric by group: kinds in their order, names sorted."""
        values = self.columns.get(headline, self.heads)
        found = []
        for kind, name in sorted(self.members, key=lambda each: (kinds.index(each[0]), each[1])):
            rows = self.members[kind, name]
            score = mean_score(
                headline, [values[row] for row in rows], [self.positions[row] for row in rows], seed=seed
            )
            found.append(GroupScore(kind=kind, name=name, score=score))
        return found
