"""Measures a model: ``python -m trellis_train.agents.tooluse.evaluator --model DIR --data FILE ...``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from trellis_train.agents.tooluse.command import add_sampling_options, prepare_process, read_sampling
from trellis_train.agents.tooluse.evaluator.metrics import METRICS, measure, summarise
from trellis_train.agents.tooluse.sampling import Sampler, model_sampler
from trellis_train.agents.tooluse.tasks import BadTask, Task, load_tasks

EXIT_BAD_INPUT = 65  # EX_DATAERR


def main(arguments: Sequence[str], sampler: Sampler | None = None) -> int:
    """Print ``{metric: {mean, std, count}}`` as JSON; ``sampler`` stands for the model in tests."""
    options = _read_options(arguments)
    try:
        tasks = load_tasks(options.data, options.limit)
        toolboxes = [task.toolbox for task in tasks]
        if sampler is None:
            prepare_process(options.platform)
            sampler = model_sampler(
                options.model, platform=options.platform, max_model_len=options.max_model_len
            )
        responses = sampler(tasks, read_sampling(options))
    except BadTask as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    measured = [
        {name: sum(each[name] for each in found) / len(found) for name in METRICS}
        for task, toolbox, texts in zip(tasks, toolboxes, responses, strict=True)
        if (found := [measure(text, task.truth, toolbox) for text in texts])
    ]
    if options.output is not None:
        _write_samples(options.output, tasks, responses, measured)
    print(json.dumps(summarise(measured, options.metrics)))
    return 0


def _write_samples(
    output: Path, tasks: Sequence[Task], responses: list[list[str]], measured: list[dict[str, float]]
) -> None:
    """Write each row's responses and metrics as JSON lines."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", encoding="utf-8") as file:
        for task, texts, values in zip(tasks, responses, measured, strict=True):
            row = {"id": task.id, "responses": texts, "metrics": values}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tooluse.evaluator")
    add_sampling_options(parser, samples=1, temperature=0.0)
    parser.add_argument("--metrics", type=_metrics, default=list(METRICS), help=f"of {','.join(METRICS)}")
    parser.add_argument("--output", type=Path, default=None, help="responses and metrics of each row")
    return parser.parse_args(arguments)


def _metrics(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in METRICS]
    if not names:
        raise argparse.ArgumentTypeError("no metric was given")
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown metric: {', '.join(unknown)}")
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
