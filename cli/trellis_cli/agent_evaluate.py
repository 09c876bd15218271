"""`trellis agent evaluate` and `trellis agent pairs`: a model's own responses, measured, or as pairs."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from trellis_cli.agent_sources import TOOLS_FILE, NamedData, find_data, find_model
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.local_job import platform_of_machine
from trellis_cli.output import Json, err, out, print_json, print_table
from trellis_cli.services.platform import python_command

EVALUATOR = "trellis_train.agents.tooluse.evaluator"
PAIR_MAKER = "trellis_train.agents.tooluse.pairs"
FORMATTER = "trellis_train.agents.tooluse.formatting.write"
#: Of the modules above: the rows or the model cannot be used.
EXIT_BAD_INPUT = 65  # EX_DATAERR
MANIFEST_FILE = "environment.json"
#: Shorter names of metrics.
METRIC_NAMES = {
    "tool_accuracy": "tool_selection_accuracy",
    "plan_success": "plan_success_rate",
    "efficiency": "step_efficiency",
    "timing": "timing_precision",
    "end_to_end": "end_to_end_success",
}

Model = Annotated[
    str,
    typer.Option(
        "--model", "--base-model", help="Folder of the model or the run that produced it, or a Hub model."
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        "--benchmark",
        help="Rows with prompts and references: a file, generated data, an environment's folder, or "
        "agent_benchmark:test.",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only use the first N rows.")]
MaxTokens = Annotated[int, typer.Option(min=1, help="Max tokens per response.")]
Seed = Annotated[int, typer.Option(help="Sampling seed.")]
Platform = Annotated[
    str | None, typer.Option(help="cpu or cuda; default: cuda if the machine has an NVIDIA GPU.")
]


def evaluate(
    model: Model,
    data: Data,
    metrics: Annotated[str | None, typer.Option(help="Comma-separated metrics.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file for responses and metrics.")
    ] = None,
    limit: Limit = None,
    max_tokens: MaxTokens = 512,
    seed: Seed = 0,
    split: Annotated[
        str | None, typer.Option(help="Split of a folder or of agent_benchmark; default: test.")
    ] = None,
    platform: Platform = None,
    as_json: Json = False,
) -> None:
    """Evaluate tool use: selection, planning, steps, timing and results."""
    with tempfile.TemporaryDirectory() as scratch:
        given = find_data(data)
        rows = locate_rows(given.path, _choose_split(data, given, split), Path(scratch) / "rows")
        weights = find_model(model, scratch=Path(scratch) / "model")
        options = _options(weights, rows, limit=limit, max_tokens=max_tokens, seed=seed, platform=platform)
        options += ["--metrics", _metrics(metrics)] if metrics else []
        options += ["--output", str(output)] if output else []
        found = run_module(EVALUATOR, options)
    if as_json:
        print_json(found)
        return
    lines = [
        (name, f"{each['mean']:.4f}", f"{each['std']:.4f}", each["count"]) for name, each in found.items()
    ]
    print_table(("metric", "mean", "std", "count"), lines)


def pairs(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output JSON Lines file for DPO training.")],
    num_samples: Annotated[int, typer.Option(min=2, help="Responses per prompt.")] = 4,
    temperature: Annotated[float, typer.Option(min=0.01, max=2.0)] = 1.0,
    reward_weights: Annotated[
        str | None,
        typer.Option(help=("Weights of the reward components as a JSON object; see docs/agents.md.")),
    ] = None,
    reward_penalties: Annotated[
        str | None, typer.Option(help="Reward penalties as a JSON object with values ≤ 0.")
    ] = None,
    compare_arguments: Annotated[
        bool, typer.Option(help="Count a right tool only as far as its arguments match.")
    ] = True,
    run_calls: Annotated[bool, typer.Option(help="Run the calls if their tools are simulated.")] = True,
    limit: Limit = None,
    max_tokens: MaxTokens = 512,
    seed: Seed = 0,
    platform: Platform = None,
    as_json: Json = False,
) -> None:
    """Sample responses and pair the best with the worst for each prompt."""
    with tempfile.TemporaryDirectory() as scratch:
        given = find_data(data)
        rows = locate_rows(given.path, given.split or "train", Path(scratch) / "rows")
        weights = find_model(model, scratch=Path(scratch) / "model")
        options = _options(weights, rows, limit=limit, max_tokens=max_tokens, seed=seed, platform=platform)
        options += ["--samples", str(num_samples), "--temperature", str(temperature), "--output", str(output)]
        options += ["--weights", reward_weights] if reward_weights else []
        options += ["--penalties", reward_penalties] if reward_penalties else []
        options += [] if compare_arguments else ["--no-compare-arguments"]
        options += [] if run_calls else ["--no-run-calls"]
        found = run_module(PAIR_MAKER, options)
    if as_json:
        print_json(found)
        return
    print_table(("pairs", "prompts", "same", "close", "mean margin"), [
        (found["pairs"], found["prompts"], found["same"], found["close"], f"{found['mean_margin']:.3f}")
    ])  # fmt: skip
    out.print(f"in {found['output']}", markup=False, highlight=False)


def _choose_split(data: str, given: NamedData, split: str | None) -> str:
    """Return the split to measure; raise ``Problem`` if the data names another split or has none."""
    if split is not None and given.path.is_file():
        raise Problem(
            f"{data} is a file, which has no split {split}",
            hint="leave out --split, or name a folder or agent_benchmark",
            exit_code=ExitCode.USAGE,
        )
    if split is not None and given.split not in (None, split):
        raise Problem(f"{data} names another split than {split}", exit_code=ExitCode.USAGE)
    return split or given.split or "test"


def _metrics(text: str) -> str:
    """Return the metrics' full names, separated by commas."""
    return ",".join(METRIC_NAMES.get(name.strip(), name.strip()) for name in text.split(","))


def locate_rows(data: Path, split: str, scratch: Path) -> Path:
    """Find the file of rows: ``data`` itself, an environment's file, or rows that are formatted now."""
    if data.is_file():
        return data
    found = data / "rl" / f"{split}.jsonl"
    if (data / MANIFEST_FILE).is_file():
        datasets = json.loads((data / MANIFEST_FILE).read_text(encoding="utf-8")).get("datasets", {})
        if split in datasets:
            found = data / datasets[split]
    elif (data / TOOLS_FILE).is_file():
        err.print(f"formatting the rows of {data}", markup=False)
        _check(_start(FORMATTER, [str(data), str(scratch)]))
        found = scratch / "rl" / f"{split}.jsonl"
    if not found.is_file():
        raise Problem(
            f"{data} contains no rows to sample from",
            hint="set --data to a file, a `trellis agent generate` folder, or an environment folder",
            exit_code=ExitCode.USAGE,
        )
    return found


def _options(model: str, rows: Path, *, platform: str | None, **named: Any) -> list[str]:
    options = ["--model", model, "--data", str(rows), "--platform", platform or platform_of_machine()]
    for name, value in named.items():
        options += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    return options


def run_module(module: str, options: list[str]) -> Any:
    """Run a module and return the JSON on its last line of output; vLLM prints lines before it."""
    done = _start(module, options)
    _check(done)
    return json.loads(done.stdout.strip().splitlines()[-1])


def _start(module: str, options: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own interpreter and module
        python_command("-m", module, *options), capture_output=True, text=True, encoding="utf-8", check=False
    )


def _check(done: "subprocess.CompletedProcess[str]") -> None:
    if done.returncode == 0:
        return
    lines = done.stderr.strip().splitlines()
    is_input = done.returncode in (EXIT_BAD_INPUT, 2)
    raise Problem(
        # argparse says before it whose option it is.
        lines[-1].rpartition(": error: ")[2] if lines else f"it ended with status {done.returncode}",
        exit_code=ExitCode.USAGE if is_input else ExitCode.FAILED,
    )


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(evaluate)
    app.command()(pairs)
