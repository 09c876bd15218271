"""The common ways in which an answer is worth something."""

from collections.abc import Sequence

from trellis_contracts.evaluation import Sample, Score, Verdict

from trellis_train.evaluate.benchmark import Scored


def unanswered(metrics: Sequence[str]) -> Scored:
    """Return an unanswered score: nothing was found that could be right."""
    return Scored(Verdict.UNANSWERED, 0.0, parts=dict.fromkeys(metrics, 0.0))


def failed(metrics: Sequence[str], error: str) -> Scored:
    """Return the result of an answer that could not be scored."""
    return Scored(Verdict.FAILED, 0.0, parts=dict.fromkeys(metrics, 0.0), error=error)


def right_or_wrong(is_right: bool, extracted: str, metric: str = "accuracy", **notes: str) -> Scored:
    """Score 1 or 0 under one metric."""
    verdict = Verdict.CORRECT if is_right else Verdict.WRONG
    return Scored(verdict, float(is_right), extracted, parts={metric: float(is_right)}, notes=notes)


def macro_average(samples: Sequence[Sample], kind: str, metric: str) -> Score | None:
    """Compute the unweighted mean of the groups' means; None without samples.

    The error is that of a mean of independent means: ``sqrt(sum(var_g / n_g)) / groups``, with the
    unbiased variance where a group has two samples, and that of a proportion's worst case elsewhere.
    """
    groups: dict[str, list[float]] = {}
    for sample in samples:
        groups.setdefault(sample.groups[kind], []).append(sample.score)
    if not groups:
        return None
    means = [sum(scores) / len(scores) for scores in groups.values()]
    value = sum(means) / len(means)
    stderr = sum(_squared_error(scores) for scores in groups.values()) ** 0.5 / len(groups)
    return Score(
        metric=metric,
        value=value,
        stderr=stderr,
        low=max(0.0, value - 1.96 * stderr),
        high=min(1.0, value + 1.96 * stderr),
        method="normal",
        n=len({sample.key for sample in samples}),
    )


def _squared_error(scores: Sequence[float]) -> float:
    count = len(scores)
    if count < 2:
        return 0.25
    mean = sum(scores) / count
    return sum((score - mean) ** 2 for score in scores) / (count - 1) / count
