"""Runs benchmarks by name and prints one line a figure."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err, out, print_json

from trellis_tools.bench import api, grpo, training
from trellis_tools.bench.browse import measure_browse
from trellis_tools.bench.comparison import measure_comparison
from trellis_tools.bench.cpu_layer import measure_cpu_layer
from trellis_tools.bench.data.run import DEFAULT_ROWS, measure_data
from trellis_tools.bench.eval_samples import measure_samples
from trellis_tools.bench.eval_scoring import measure_eval_scoring
from trellis_tools.bench.evaluation import measure_evaluation
from trellis_tools.bench.grpo_shapes import choose_shapes
from trellis_tools.bench.idle import measure_idle
from trellis_tools.bench.light_platform import LightPlatform, light_platform
from trellis_tools.bench.memory import measure_memory
from trellis_tools.bench.real_model import DEFAULT as DEFAULT_MODEL
from trellis_tools.bench.real_model import fetch_model, measure_real_model
from trellis_tools.bench.result import Result
from trellis_tools.bench.scale import (
    DEFAULT_JOBS,
    DEFAULT_POINTS,
    DEFAULT_VIEWERS,
    measure_job_list,
    measure_points,
    measure_viewers,
)
from trellis_tools.bench.serving import measure_serving
from trellis_tools.bench.token_traces import measure_token_traces
from trellis_tools.bench.tool_search import measure_tool_search

API_BENCHMARKS: dict[str, Callable[[LightPlatform], Result]] = {
    "post_jobs": api.measure_post_jobs,
    "ingest": api.measure_ingest,
    "chart_million_points": api.measure_chart,
    "compare_20_runs": measure_comparison,
    "event_to_browser": api.measure_event,
}
#: Measured together: one run of each side gives both figures.
TRAINING_BENCHMARKS = ("step_time", "time_to_first_step")
GRPO_BENCHMARK = "grpo_against_trl"
#: One name for all figures of the data factory: they come from one corpus.
DATA_BENCHMARK = "data"
#: A whole evaluation beside lm-evaluation-harness.
EVALUATION_BENCHMARK = "eval_against_lm_eval"
#: Answers to all of MATH.
SCORING_BENCHMARK = "eval_scoring"
#: Pages of a large dataset through the API.
BROWSE_BENCHMARK = "browse"
#: Pages of a large evaluation's samples.
SAMPLES_BENCHMARK = "eval_samples"
#: A query over the vectors of all tools.
TOOL_SEARCH_BENCHMARK = "tool_search"
#: What traces of tokens take of a step: two minutes.
TRACES_BENCHMARK = "token_traces"
#: A pretrained model beside TRL and lm-evaluation-harness. Takes most of an hour.
REAL_MODEL_BENCHMARK = "real_model"
#: Estimates of memory and measured peaks, on the starter model and on a pretrained one: half an hour.
MEMORY_BENCHMARK = "memory"
#: Processor time and memory of a platform that nobody uses: three minutes.
IDLE_BENCHMARK = "idle"
#: 64 streams at once through the platform, beside the same engine asked directly.
SERVING_BENCHMARK = "serving"
#: The same on a pretrained model: some minutes.
REAL_SERVING_BENCHMARK = "serving_real_model"
#: What each piece of the CPU layer gains: two hours.
CPU_LAYER_BENCHMARK = "cpu_layer"
#: Charts among many metric points, a list of many jobs, many viewers of a stream: minutes each.
POINTS_BENCHMARK, JOBS_BENCHMARK, VIEWERS_BENCHMARK = "points", "jobs", "viewers"
#: Run only by their names.
LONG = (
    POINTS_BENCHMARK,
    JOBS_BENCHMARK,
    VIEWERS_BENCHMARK,
    REAL_MODEL_BENCHMARK,
    REAL_SERVING_BENCHMARK,
    MEMORY_BENCHMARK,
    CPU_LAYER_BENCHMARK,
)
#: One name for all that is promised about evaluations.
GROUPS = {"eval": (EVALUATION_BENCHMARK, SCORING_BENCHMARK, SAMPLES_BENCHMARK)}
NAMES = (
    *API_BENCHMARKS,
    *TRAINING_BENCHMARKS,
    GRPO_BENCHMARK,
    DATA_BENCHMARK,
    BROWSE_BENCHMARK,
    SAMPLES_BENCHMARK,
    SCORING_BENCHMARK,
    EVALUATION_BENCHMARK,
    TOOL_SEARCH_BENCHMARK,
    TRACES_BENCHMARK,
    IDLE_BENCHMARK,
    SERVING_BENCHMARK,
    *LONG,
)


def run_benchmarks(
    names: list[str],
    *,
    as_json: bool,
    shapes: str | None = None,
    rounds: int = 1,
    rows: int = DEFAULT_ROWS,
    points: int = DEFAULT_POINTS,
    jobs: int = DEFAULT_JOBS,
    viewers: int = DEFAULT_VIEWERS,
    model: str = DEFAULT_MODEL,
    pieces: Sequence[str] = (),
) -> bool:
    """Run them; True when every promise was kept.

    ``shapes`` and ``rounds`` are those of the comparison with TRL, ``rows`` is the size of the corpus of
    `data` and of the dataset of `browse`, and the number of samples of `eval_samples`; ``points``, ``jobs``
    and ``viewers`` are the sizes of the benchmarks of these names; ``model`` is that
    of `real_model`, `serving_real_model`, `memory` and `cpu_layer`: a folder, or a name of the catalogue.
    ``pieces`` are those of the CPU layer that `cpu_layer` measures, all for none.
    """
    chosen_shapes = choose_shapes(shapes)
    names = [each for name in names for each in GROUPS.get(name, (name,))]
    unknown = set(names) - set(NAMES)
    if unknown:
        raise Problem(
            f"unknown benchmark: {', '.join(sorted(unknown))}",
            hint=f"known: {', '.join([*NAMES, *GROUPS])}",
            exit_code=ExitCode.USAGE,
        )
    wanted = names or [each for each in NAMES if each not in LONG]
    results = []
    if any(name in API_BENCHMARKS for name in wanted):
        with light_platform() as platform:
            for name in API_BENCHMARKS:
                if name in wanted:
                    results.append(tell(API_BENCHMARKS[name](platform), as_json=as_json))
    if any(name in TRAINING_BENCHMARKS for name in wanted):
        for result in training.measure_training():
            if result.name in wanted:
                results.append(tell(result, as_json=as_json))
    if GRPO_BENCHMARK in wanted:
        comparison = grpo.measure_grpo(chosen_shapes, rounds)
        results += [tell(result, as_json=as_json) for result in comparison]
    if DATA_BENCHMARK in wanted:
        results += [tell(result, as_json=as_json) for result in measure_data(rows)]
    if BROWSE_BENCHMARK in wanted:
        with light_platform() as platform:
            results += [tell(result, as_json=as_json) for result in measure_browse(platform, rows)]
    for name, measure, size in (
        (POINTS_BENCHMARK, measure_points, points),
        (JOBS_BENCHMARK, measure_job_list, jobs),
        (VIEWERS_BENCHMARK, measure_viewers, viewers),
    ):
        if name in wanted:
            with light_platform() as platform:
                results += [tell(result, as_json=as_json) for result in measure(platform, size)]
    if SAMPLES_BENCHMARK in wanted:
        results += [tell(result, as_json=as_json) for result in measure_samples(rows)]
    if SCORING_BENCHMARK in wanted:
        results.append(tell(measure_eval_scoring(), as_json=as_json))
    if EVALUATION_BENCHMARK in wanted:
        results += [tell(result, as_json=as_json) for result in measure_evaluation()]
    if TOOL_SEARCH_BENCHMARK in wanted:
        results.append(tell(measure_tool_search(), as_json=as_json))
    if TRACES_BENCHMARK in wanted:
        results.append(tell(measure_token_traces(), as_json=as_json))
    if IDLE_BENCHMARK in wanted:
        results += [tell(result, as_json=as_json) for result in measure_idle()]
    if SERVING_BENCHMARK in wanted:
        with light_platform() as platform:
            results += [tell(result, as_json=as_json) for result in measure_serving(platform)]
    if REAL_SERVING_BENCHMARK in wanted:
        with tempfile.TemporaryDirectory(prefix="trellis-bench-") as root:
            folder = fetch_model(model, Path(root) / "model")
            with light_platform() as platform:
                results += [tell(result, as_json=as_json) for result in measure_serving(platform, folder)]
    if REAL_MODEL_BENCHMARK in wanted:
        results += [tell(result, as_json=as_json) for result in measure_real_model(model)]
    if MEMORY_BENCHMARK in wanted:
        results += [tell(result, as_json=as_json) for result in measure_memory(model)]
    if CPU_LAYER_BENCHMARK in wanted:
        results += [tell(result, as_json=as_json) for result in measure_cpu_layer(model, pieces)]
    return all(result.is_kept for result in results)


def tell(result: Result, *, as_json: bool) -> Result:
    """Print a figure when it is there; the next one may take minutes."""
    if as_json:
        print_json(result.as_json())
    else:
        out.print(
            f"{result.name:24} {result.ours:12.3f} {result.unit:9} against {result.theirs:.3f}"
            f"   ratio {result.ratio:.3f} ({_verdict(result)})",
            soft_wrap=True,
        )
        for name, detail in result.details.items():
            out.print(f"    {name}: {detail}", soft_wrap=True, highlight=False)
    if not result.is_kept:
        err.print(f"[red]{result.name} misses its target[/red]")
    return result


def _verdict(result: Result) -> str:
    if result.bound is None:
        return "no bound"
    sign = "≥" if result.is_more_better else "≤"
    return f"{sign} {result.bound:g}: " + ("[green]met[/green]" if result.is_kept else "[red]missed[/red]")
