"""Measures a model on benchmarks: ``python -m trellis_train.engines.evaluate <spec.json>``.

One vLLM engine in this process. Every sample is on disk when it is scored, so that an attempt that was
stopped, or that died, costs the samples in flight alone.
"""

import logging
import os
import sys
from pathlib import Path

from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, EXIT_SUCCEEDED, NICENESS_VARIABLE, JobSpec

from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.stop import StoppedByRequest

PRODUCER = "evaluator"
#: Nothing is fetched, unless the spec's environment allows it for tasks of lm-evaluation-harness.
_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
#: The scheduler sees all requests at the same steps in every run, and nobody is told of it.
_ENVIRONMENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


def main(arguments: list[str]) -> int:
    """Run the evaluation of the spec file named in ``arguments``; the exit code of the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    if len(arguments) != 1:
        print("usage: python -m trellis_train.engines.evaluate <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = JobSpec.model_validate_json(Path(arguments[0]).read_text())
    task = spec.evaluation
    if task is None:
        print("bad spec: it does not say what to measure", file=sys.stderr)
        return EXIT_BAD_SPEC
    prepare_process(spec)
    from trellis_train.evaluate.run import EvaluationRun

    try:
        result = EvaluationRun(spec, task, Spool(spec.attempt_dir, PRODUCER)).run()
    except StoppedByRequest:
        print("The evaluation was stopped; it can be resumed.", flush=True)
        return EXIT_STOPPED
    for each in result.benchmarks:
        scores = ", ".join(f"{score.metric} {score.value:.4f}" for score in each.scores)
        print(f"{each.label}: {scores} ({each.problems} problems)", flush=True)
    return EXIT_SUCCEEDED


def prepare_process(spec: JobSpec) -> None:
    """Set environment and priority before torch and vLLM are imported, since they read both then."""
    os.environ.update({**_OFFLINE, **spec.env, **_ENVIRONMENT})
    if spec.evaluation is not None and spec.evaluation.hub_cache:
        os.environ["HF_HOME"] = spec.evaluation.hub_cache
    niceness = int(os.environ.get(NICENESS_VARIABLE, "0"))
    if niceness > 0:
        os.nice(niceness)
    if spec.platform == "cpu":
        from trellis_train.compat import vllm_name

        vllm_name.install()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
