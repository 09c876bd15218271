"""Pairs from a model's responses: ``python -m trellis_train.agents.tooluse.pairs --model DIR ...``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from trellis_data.atomic_files import write_atomically

from trellis_train.agents.tooluse.command import add_sampling_options, prepare_process, read_sampling
from trellis_train.agents.tooluse.pairs.making import MIN_MARGIN, SAMPLES_PER_PROMPT, PairReport, make_pairs
from trellis_train.agents.tooluse.pairs.provenance import write_provenance
from trellis_train.agents.tooluse.sampling import Sampler, model_sampler
from trellis_train.agents.tooluse.scoring.settings import BadRewardSettings, RewardSettings
from trellis_train.agents.tooluse.tasks import BadTask, load_tasks

EXIT_BAD_INPUT = 65  # EX_DATAERR
TEMPERATURE = 1.0


def main(arguments: Sequence[str], sampler: Sampler | None = None) -> int:
    """Write the pairs and print a summary as JSON; ``sampler`` stands for the model in tests."""
    options = _read_options(arguments)
    try:
        settings = (
            RewardSettings.parse_texts(
                options.weights,
                options.penalties,
                compare_arguments=options.compare_arguments,
                run_calls=options.run_calls,
            )
            if options.reward is None
            else RewardSettings.parse_option_text(options.reward)
        )
        tasks = load_tasks(options.data, options.limit)
        sampling = read_sampling(options)
        if sampler is None:
            prepare_process(options.platform)
            sampler = model_sampler(
                options.model, platform=options.platform, max_model_len=options.max_model_len
            )
        report = make_pairs(tasks, sampler(tasks, sampling), min_margin=options.min_margin, settings=settings)
    except (BadTask, BadRewardSettings) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    output: Path = options.output
    output.parent.mkdir(parents=True, exist_ok=True)
    rows = render_pairs(report)
    # Before the pairs: whoever finds them finds where they come from.
    record = write_provenance(
        output,
        rows,
        report,
        model=options.model,
        data=options.data,
        sampling=sampling,
        min_margin=options.min_margin,
        reward=settings,
    )
    write_atomically(output, rows)
    print(json.dumps({**report.summary(), "output": str(output), "provenance": str(record)}))
    return 0


def render_pairs(report: PairReport) -> str:
    """Render pairs as JSON lines, one per pair."""
    lines = (json.dumps(pair.as_row(), ensure_ascii=False) for pair in report.pairs)
    return "".join(f"{line}\n" for line in lines)


def _read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tooluse.pairs")
    add_sampling_options(parser, samples=SAMPLES_PER_PROMPT, temperature=TEMPERATURE)
    parser.add_argument("--output", type=Path, required=True, help="the file of JSON lines to write")
    parser.add_argument("--min-margin", type=float, default=MIN_MARGIN)
    parser.add_argument("--weights", help="of the reward's parts, a JSON object")
    parser.add_argument("--penalties", help="of the reward, a JSON object")
    parser.add_argument("--no-compare-arguments", dest="compare_arguments", action="store_false")
    parser.add_argument("--no-run-calls", dest="run_calls", action="store_false")
    parser.add_argument("--reward", help="all options of the reward tool_use in one JSON object instead")
    options = parser.parse_args(arguments)
    if options.reward is not None and (options.weights or options.penalties):
        parser.error("--reward holds weights and penalties, which cannot be given beside it")
    if options.samples < 2:
        parser.error("a pair needs at least two samples of each prompt")
    if not options.min_margin > 0:
        parser.error("the margin of a pair must be above 0")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
