"""Trains and measures tool use on this machine: each method is a command of ``trellis agent``."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import Any

from trellis.agent_training import AgentRewardModel, AgentSFTConfig, RLTrainingConfig, write_settings

#: Responses to a prompt of which a preference pair is made.
PAIR_SAMPLES = 4


class AgentTrainingFailed(RuntimeError):
    """A stage did not end well; the message is what the command said of it."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        #: Of rows that are of no use: ``no_usable_rows``, ``dataset_empty``, ``rows_unusable``,
        #: ``dataset_unreadable``; None of everything else.
        self.code = code


@dataclass(frozen=True)
class PreparedDatasets:
    """How many rows a training learns from."""

    train_rows: int
    validation_rows: int
    #: Rows of the dataset that could be trained on, and those of them that are left out (shares, coreset).
    dataset_rows: int
    left_out_rows: int
    #: Of earlier runs, among ``train_rows``.
    replayed_rows: int
    task_types: dict[str, int]


@dataclass(frozen=True)
class AgentTrainResult:
    """How a stage ended, and what it left."""

    #: ``succeeded`` or ``stopped``.
    outcome: str
    #: With metrics, log and checkpoints; the other classes take it for a model.
    folder: str
    step: int = 0
    #: The newest value of every metric.
    metrics: dict[str, float] = field(default_factory=dict)
    checkpoint: str | None = None


class _Trainer:
    """A stage with a folder of its own."""

    output_dir: Path

    @property
    def model(self) -> str:
        """What was trained, for ``AgentTrainingEvaluator`` and other trainers: the folder of the run."""
        return str(self.output_dir)

    def save_model(self, folder: Path | str) -> Path:
        """Write what was trained as whole weights into an empty folder; ``AgentTrainingFailed``."""
        _run(["export", str(self.output_dir), "--output", str(folder)])
        return Path(folder)


class AgentSFTTrainer(_Trainer):
    """Supervised training on dialogs (``agent_sft``)."""

    def __init__(self, config: AgentSFTConfig | None = None, output_dir: Path | str = "agent-sft") -> None:
        self.config, self.output_dir = config or AgentSFTConfig(), Path(output_dir)

    def train(
        self,
        train_data: Path | str | None = None,
        dev_data: Path | str | None = None,
        *,
        resume: bool = False,
        **parameters: Any,
    ) -> AgentTrainResult:
        """Train to the end, in the foreground; ``AgentTrainingFailed``.

        ``train_data`` is a file of rows, generated data, or a name such as ``agent_sft:train``; what is not
        named comes from the configuration. ``resume`` goes on from the last checkpoint of ``output_dir``,
        which else must have none. ``parameters`` are others of the recipe (``total_steps=10``).
        """
        options = [*self._options(train_data, dev_data), *(["--resume"] if resume else [])]
        return _train("sft", self.output_dir, options, parameters, sft=self.config)

    def prepare_datasets(
        self, train_data: Path | str | None = None, dev_data: Path | str | None = None, **parameters: Any
    ) -> PreparedDatasets:
        """Select and replay the rows as ``train`` does with the same arguments, and count them.

        Raises ``AgentTrainingFailed`` where rows are missing or of no use; its ``code`` says which, such as
        ``no_usable_rows``. Nothing is noted for the replay of other runs.
        """
        options = self._options(train_data, dev_data)
        found = _run_stage("sft", self.output_dir, [*options, "--dry-run"], parameters, sft=self.config)
        mix = found.get("mix", {})
        return PreparedDatasets(
            train_rows=found["train_rows"],
            validation_rows=found["validation_rows"],
            dataset_rows=mix["dataset_rows"],
            left_out_rows=mix["left_out_rows"],
            replayed_rows=mix["replayed_rows"],
            task_types=mix["task_types"],
        )

    def _options(self, train_data: Path | str | None, dev_data: Path | str | None) -> list[str]:
        options = [
            "--data",
            str(train_data or self.config.train_data),
            "--base-model",
            self.config.base_model,
        ]
        return options + (["--dev-data", str(dev_data)] if dev_data is not None else [])


#: The trainer by its other name: an adapter is what it trains, unless ``lora_r`` is 0.
AgentLoRATrainer = AgentSFTTrainer


class AgentRLTrainer(_Trainer):
    """What follows: preferences (``agent_dpo``) or reinforcement (``agent_ppo``, ``agent_grpo``)."""

    def __init__(
        self,
        config: RLTrainingConfig | None = None,
        sft_model: Path | str | None = None,
        output_dir: Path | str = "agent-rl",
        *,
        sft_model_path: Path | str | None = None,
        base_model_path: Path | str | None = None,
        reward_model: AgentRewardModel | None = None,
    ) -> None:
        """Take an SFT model (``sft_model`` or ``sft_model_path``), a weights or run folder, or a base model.

        A run knows its base, so ``base_model_path`` counts only where no SFT model is named.
        """
        self.config, self.output_dir = config or RLTrainingConfig(), Path(output_dir)
        chosen = sft_model or sft_model_path or base_model_path
        self.sft_model = None if chosen is None else str(chosen)
        self.reward_model = reward_model

    def train(
        self,
        train_data: Path | str = "agent_benchmark:train",
        *,
        num_samples: int | None = None,
        resume: bool = False,
        **parameters: Any,
    ) -> AgentTrainResult:
        """Train to the end, in the foreground; ``AgentTrainingFailed``.

        ``num_samples`` of dpo samples so many responses of the model to each prompt, of which pairs are
        made; without it the rows of dpo are pairs already. A reward model's weights and penalties are what
        ppo and grpo train with, and what responses are ranked by for pairs: with one, dpo samples 4 unless
        told otherwise, so leave it out where the rows are pairs. ``resume`` goes on from the last checkpoint
        of ``output_dir``, which else must have none.
        """
        if self.config.algorithm == "dpo" and self.reward_model is not None:
            num_samples = num_samples or PAIR_SAMPLES
        options = ["--data", str(train_data), "--sft-model", self._require_model()]
        options += ["--num-samples", str(num_samples)] if num_samples is not None else []
        options += ["--resume"] if resume else []
        if self.reward_model is not None:
            parameters = {"rewards": [_as_term(self.reward_model)], **parameters}
        return _train(self.config.algorithm, self.output_dir, options, parameters, rl=self.config)

    def generate_preference_pairs(
        self,
        prompts: Path | str | Sequence[Mapping[str, Any]] = "agent_benchmark:train",
        num_samples: int = PAIR_SAMPLES,
        *,
        output: Path | str | None = None,
        limit: int | None = None,
        seed: int = 0,
    ) -> list[dict[str, Any]]:
        """Sample responses of the model to prompts with references, and pair the best with the worst.

        ``prompts`` is a file, generated data, a name such as ``agent_benchmark:train``, or a list of rows;
        ``ValueError`` for a list of texts, which have no reference to score by.

        Gives ``{prompt, chosen, rejected, chosen_score, rejected_score, margin, sample_id}``, and writes
        them to ``output``, which ``train`` takes. ``AgentTrainingFailed``.
        """
        with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
            target = Path(output) if output is not None else Path(folder) / "pairs.jsonl"
            data = _place_rows(prompts, Path(folder) / "prompts.jsonl")
            options = ["--model", self._require_model(), "--data", data, "--output", str(target)]
            options += ["--num-samples", str(num_samples), "--seed", str(seed)]
            options += ["--limit", str(limit)] if limit is not None else []
            if self.reward_model is not None:
                options += ["--reward-weights", dumps(self.reward_model.weights)]
                options += ["--reward-penalties", dumps(self.reward_model.penalties)]
                options += [f"--no-{name.replace('_', '-')}" for name in self.reward_model.switched_off]
            _run(["pairs", *options])
            # Line by line: ``splitlines`` would also cut at U+2028 and its like within the texts.
            with target.open(encoding="utf-8") as lines:
                return [loads(line) for line in lines]

    def _require_model(self) -> str:
        if self.sft_model is None:
            raise ValueError("sft_model is missing: the weights to begin with")
        return self.sft_model


def _place_rows(prompts: Path | str | Sequence[Mapping[str, Any]], target: Path) -> str:
    """Return the value for ``--data``: the path given, or a file to which a list of rows is written."""
    if isinstance(prompts, str | Path):
        return str(prompts)
    if not prompts or not all(isinstance(row, Mapping) and row.get("reward_model") for row in prompts):
        raise ValueError(
            "prompts: a text alone has no reference to score responses by; give rows of "
            "{'prompt': [{'role': 'user', 'content': ...}], 'reward_model': {'ground_truth': ...}}, "
            "a file of them, or 'agent_benchmark:train'"
        )
    target.write_text("".join(f"{dumps(dict(row))}\n" for row in prompts), encoding="utf-8")
    return str(target)


def _as_term(model: AgentRewardModel) -> dict[str, Any]:
    """Return the reward in the form of a recipe's ``rewards``."""
    return {"name": "tool_use", "options": model.options}


class AgentTrainingEvaluator:
    """Measures how well a model uses tools.

    ``AgentTrainingEvaluator(model).evaluate(benchmark)``, or the other way round:
    ``AgentTrainingEvaluator(benchmark).evaluate(model=model, split="test")``.
    """

    def __init__(self, model_or_benchmark: Path | str) -> None:
        """Take a model (a weights or run folder, or a name on the hub) or a benchmark (a path or a name).

        Which it is, ``evaluate`` tells. ``TypeError`` for an object that loads a benchmark.
        """
        if not isinstance(model_or_benchmark, str | Path):
            raise TypeError(
                "a benchmark is named, not loaded: 'agent_benchmark', a folder or a file, not an object "
                f"of the type {type(model_or_benchmark).__name__}"
            )
        self._given = str(model_or_benchmark)

    def evaluate(
        self,
        benchmark: Path | str | None = None,
        metrics: Sequence[str] | None = None,
        *,
        model: Path | str | None = None,
        split: str | None = None,
        limit: int | None = None,
        max_tokens: int = 512,
        seed: int = 0,
        output: Path | str | None = None,
    ) -> dict[str, dict[str, float]]:
        """Evaluate and return ``{metric: {mean, std, count}}``; ``AgentTrainingFailed`` for unusable input.

        With ``model``, the evaluator was made for a benchmark. ``split`` is of a folder or of
        ``agent_benchmark``; "test" unless the name has one.
        """
        measured, data = self._given, str(benchmark or "agent_benchmark:test")
        if model is not None:
            if benchmark is not None:
                raise ValueError("benchmark is given twice: to AgentTrainingEvaluator and to evaluate")
            if not isinstance(model, str | Path):
                raise TypeError(
                    "model is a folder or a name, such as a trainer's .model, "
                    f"not of the type {type(model).__name__}"
                )
            measured, data = str(model), self._given
        elif benchmark is None and split is not None:
            data = "agent_benchmark"
        options = ["--model", measured, "--data", data]
        options += ["--max-tokens", str(max_tokens), "--seed", str(seed)]
        for name, value in (
            ("--metrics", ",".join(metrics or ()) or None), ("--limit", limit), ("--output", output),
            ("--split", split),
        ):  # fmt: skip
            options += [name, str(value)] if value is not None else []
        found: dict[str, dict[str, float]] = _run(["evaluate", *options])
        return found


def search_tools(model: Path | str, query: str, count: int = 10) -> list[tuple[str, float]]:
    """Find the tools that a trained retriever returns for a request, with their cosine, the nearest first.

    ``model`` is the folder of a run of the stage ``retrieval``, or an export of its model;
    ``AgentTrainingFailed`` for another one.
    """
    (found,) = _run(["search", "--count", str(count), "--", str(model), query])
    return [(each["tool"], each["score"]) for each in found["tools"]]


def _train(
    stage: str,
    output: Path,
    options: list[str],
    parameters: Mapping[str, Any],
    *,
    sft: AgentSFTConfig | None = None,
    rl: RLTrainingConfig | None = None,
) -> AgentTrainResult:
    ended = _run_stage(stage, output, options, parameters, sft=sft, rl=rl)
    known = AgentTrainResult.__dataclass_fields__
    return AgentTrainResult(**{name: value for name, value in ended.items() if name in known})


def _run_stage(
    stage: str,
    output: Path,
    options: list[str],
    parameters: Mapping[str, Any],
    *,
    sft: AgentSFTConfig | None = None,
    rl: RLTrainingConfig | None = None,
) -> dict[str, Any]:
    """Run a stage with `trellis agent train` and return its result."""
    chosen = [part for name, value in parameters.items() for part in ("--set", f"{name}={dumps(value)}")]
    with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
        settings = write_settings(Path(folder) / "settings.yaml", sft=sft, rl=rl)
        command = ["train", stage, "--output", str(output), "--config", str(settings), *options, *chosen]
        found: dict[str, Any] = _run(command)
    return found


def _run(arguments: list[str]) -> Any:
    """Run the command and return its JSON output; raise ``AgentTrainingFailed`` if it fails."""
    from trellis_contracts.engine_install import require_engine

    from trellis.tuning import end_with_parent

    require_engine()
    name, *options = arguments
    command = [sys.executable, "-m", "trellis_cli", "agent", name, "--json", *options]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent
    )
    printed, said = process.communicate()
    if process.returncode != 0:
        if printed.startswith('{"error"'):
            error = loads(printed)["error"]
            raise AgentTrainingFailed(error["message"], error["code"])
        lines = [line for line in said.strip().splitlines() if line.strip()]
        raise AgentTrainingFailed("\n".join(lines[-20:]) or f"exit code {process.returncode}")
    return loads(printed)
