"""What a run of an evaluation leaves, made without a model."""

import json
from collections.abc import Sequence
from typing import Any

from trellis_api.benchmarks import service as benchmark_service
from trellis_api.benchmarks.installed import InstalledSource, locate_benchmark
from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.evaluations.folder import result_path, samples_path
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.service import read_request
from trellis_contracts.evaluation import EvaluationResult, Sample
from trellis_evaluation.samples.store import write_store
from trellis_evaluation.statistics import summarise

from trellis_testing.samples import make_sample

MIRROR_ROWS = [{"question": f"{n}+1?", "answer": f"#### {n + 1}"} for n in range(3)]


def leave_results(
    settings: Settings,
    row: Evaluation,
    *,
    scores: Sequence[float] = (1.0, 0.0, 1.0, 1.0),
    seconds: float = 8.0,
) -> EvaluationResult:
    """Write samples with these scores and ``result.json`` for every benchmark of the evaluation."""
    results = []
    for order in read_request(row).benchmarks:
        label = str(order.label)
        samples = [make_sample_of_a_level(position, score) for position, score in enumerate(scores)]
        path = samples_path(settings, row.id, label)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_store(path, samples)
        results.append(
            summarise(
                samples,
                label=label,
                benchmark=order.benchmark,
                metrics=["strict"],
                group_kinds=["level"],
                seconds=seconds,
            )
        )
    result = EvaluationResult(
        evaluation_id=row.id, benchmarks=results, manifest={"seed": 0, "engine": {"name": "vllm"}}
    )
    result_path(settings, row.id).write_text(result.model_dump_json())
    return result


def make_sample_of_a_level(position: int, score: float) -> Sample:
    """Make a sample with level 1 or 2 in turn, ten prompt tokens and four output tokens."""
    return make_sample(
        position,
        score=score,
        groups={"level": f"Level {position % 2 + 1}"},
        prompt_tokens=10,
        output_tokens=4,
    )


def install_gsm8k(platform: Any) -> None:
    """Put three problems of GSM8K where the installing worker leaves them."""
    folder = locate_benchmark(platform.settings, "gsm8k")
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in MIRROR_ROWS))
    source = InstalledSource(
        name="gsm8k", origin="mirror", repo_id="openai/gsm8k", revision=None, sha256="1" * 64,
        files={"test": ["test.jsonl"]}, rows={"test": 3}, groups={}, size_bytes=9,
        installed_at=utc_now().isoformat(),
    )  # fmt: skip
    (folder / "source.json").write_text(source.model_dump_json())
    with platform.write() as session:
        benchmark_service.mark_ready(session, source=source)
