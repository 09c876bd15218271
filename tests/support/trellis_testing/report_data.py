"""A report with everything that reports can hold."""

import random
from datetime import UTC, datetime

from trellis_contracts.evaluation import BenchmarkResult, Sample, Verdict
from trellis_evaluation.comparison import Comparison, headline
from trellis_evaluation.reports.document import HistoryPoint, ReportComparison, ReportEvaluation, ReportInput
from trellis_evaluation.statistics import compare_pairs, mean_score, summarise

from trellis_testing.samples import make_sample

HOSTILE = "</pre><script>alert(1)</script><img src=//example.com/x> ``` | & \x00\u202e [a](javascript:b)"
_DATA = {
    "gsm8k": ("strict", {}),
    "math500": ("accuracy", {"level": [f"Level {n}" for n in range(1, 6)], "type": ["Algebra", "Geometry"]}),
    "mmlu": ("accuracy", {"subject": [f"subject_{n}" for n in range(57)], "category": ["stem", "other"]}),
    "my-own": ("accuracy", {}),
}


def make_report(evaluations: int = 2) -> ReportInput:
    """Make a report with invented scores of as many models; the first sample of each is hostile."""
    made = [_make_evaluation(number) for number in range(evaluations)]
    moment = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
    comparisons = [_compare(made[0], other, label) for other in made[1:] for label in _DATA]
    history = [
        HistoryPoint(
            label="gsm8k", metric="strict", series=f"run {run}", step=step * 50,
            score=mean_score("strict", _draw(run * 10 + step, 200, 0.1 + 0.07 * step)),
        )
        for run in range(2)
        for step in range(1, 7)
    ]  # fmt: skip
    return ReportInput(
        title="Arithmetic after fine-tuning <b>&</b> before", created_at=moment, evaluations=made,
        comparisons=comparisons, history=history,
    )  # fmt: skip


def _make_evaluation(number: int) -> ReportEvaluation:
    results, examples = [], {}
    for label, (metric, groups) in _DATA.items():
        samples = _make_samples(number, label, metric, groups)
        results.append(_summarise(label, metric, list(groups), samples))
        examples[label] = samples[:3]
    manifest = {
        "seed": 0,
        "engine": {"name": "vllm", "dtype": "float32"},
        "packages": {"vllm": "0.1", "typer": "0.2"},
        "weights": {"model": {"id": f"mdl_{number}", "name": "<i>model</i>"}, "checkpoint": None},
        "chat_template": {"sha256": "ab" * 32, "text": "{{ messages }}" * 50},
        "benchmarks": {"gsm8k": {"order": {"shots": 5, "limit": 300}, "data_sha256": "cd" * 32}},
    }
    return ReportEvaluation(
        id=f"ev_{number}", name=f"Evaluation {number} 评测", target=f"starter-{number} @ step {number * 100}",
        finished_at=datetime(2026, 11, 21, 8, number, tzinfo=UTC), results=results, manifest=manifest,
        examples=examples,
    )  # fmt: skip


def _make_samples(number: int, label: str, metric: str, groups: dict[str, list[str]]) -> list[Sample]:
    draw = random.Random(f"{number} {label}")
    found = []
    for at, right in enumerate(_draw(len(label) + number, 300, 0.35 + 0.12 * number)):
        verdict = Verdict.CORRECT if right else draw.choices(list(Verdict)[1:], (70, 15, 10, 5))[0]
        chosen = {kind: names[at % len(names)] for kind, names in groups.items()}
        repeated = "She sold 48 / 2 = 24 clips.\n#### 72\n" * (1 + 80 * (at == 1))
        sample = make_sample(
            at, score=float(right), verdict=verdict, parts={metric: float(right)}, groups=chosen,
            output=HOSTILE if at == 0 else repeated, extracted="72", gold="72", output_tokens=40, seconds=1.5,
            error="the engine ended" if verdict is Verdict.FAILED else None,
        )  # fmt: skip
        found.append(sample)
    return found


def _summarise(label: str, metric: str, kinds: list[str], samples: list[Sample]) -> BenchmarkResult:
    remarks: dict[str, float | str] = {"cost_usd": 0.0421} if label == "my-own" else {}
    benchmark = "custom" if label == "my-own" else label
    return summarise(
        samples, label=label, benchmark=benchmark, metrics=[metric], group_kinds=kinds, seconds=512.4,
        remarks=remarks,
    )  # fmt: skip


def _compare(a: ReportEvaluation, b: ReportEvaluation, label: str) -> ReportComparison:
    first, second = (next(each for each in side.results if each.label == label) for side in (a, b))
    tested = compare_pairs(_draw(1, 300, headline(first).value), _draw(1, 300, headline(second).value))
    comparison = Comparison(
        label=label, benchmark=first.benchmark, metric=first.headline, a=headline(first), b=headline(second),
        difference=tested.difference, p_value=tested.p_value, test=tested.test, pairs=tested.n,
        improved=tested.improved, worsened=tested.worsened,
        low=tested.interval.low if tested.interval else None,
        high=tested.interval.high if tested.interval else None,
        settings_differ=["decoding.temperature", "shots"] if label == "gsm8k" else [],
        obstacle="other_data" if label == "mmlu" else None,
    )  # fmt: skip
    return ReportComparison(a=a.id, b=b.id, comparison=comparison)


def _draw(seed: int, count: int, part: float) -> list[bool]:
    draw = random.Random(seed)
    return [draw.random() < part for _ in range(count)]
