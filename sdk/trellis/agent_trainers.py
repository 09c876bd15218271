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


class AgentTrainingFailed(RuntimeError):
    """A stage did not end well; the message is what the command said of it."""


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
        **parameters: Any,
    ) -> AgentTrainResult:
        """Train to the end, in the foreground; ``AgentTrainingFailed``.

        ``train_data`` is a file of rows, generated data, or a name such as ``agent_sft:train``; what is not
        named comes from the configuration. ``parameters`` are others of the recipe (``total_steps=10``).
        """
        options = [
            "--data",
            str(train_data or self.config.train_data),
            "--base-model",
            self.config.base_model,
        ]
        options += ["--dev-data", str(dev_data)] if dev_data is not None else []
        return _train("sft", self.output_dir, options, parameters, sft=self.config)


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
        """``sft_model`` (or ``sft_model_path``) is a folder of weights or of a run, else the base model.

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
        **parameters: Any,
    ) -> AgentTrainResult:
        """Train to the end, in the foreground; ``AgentTrainingFailed``.

        ``num_samples`` of dpo samples so many responses of the model to each prompt, of which pairs are
        made; without it the rows of dpo are pairs already. A reward model's weights and penalties are what
        ppo and grpo train with, and what ``generate_preference_pairs`` scores with.
        """
        if self.reward_model is not None and num_samples is not None:
            raise ValueError("pairs by another reward: generate_preference_pairs, then train on its file")
        options = ["--data", str(train_data), "--sft-model", self._require_model()]
        options += ["--num-samples", str(num_samples)] if num_samples is not None else []
        if self.reward_model is not None and self.config.algorithm != "dpo":
            parameters = {"rewards": [_as_term(self.reward_model)], **parameters}
        return _train(self.config.algorithm, self.output_dir, options, parameters, rl=self.config)

    def generate_preference_pairs(
        self,
        prompts: Path | str = "agent_benchmark:train",
        num_samples: int = 4,
        *,
        output: Path | str | None = None,
        limit: int | None = None,
        seed: int = 0,
    ) -> list[dict[str, Any]]:
        """Sample responses of the model to prompts with references, and pair the best with the worst.

        Gives ``{prompt, chosen, rejected, chosen_score, rejected_score, margin, sample_id}``, and writes
        them to ``output``, which ``train`` takes. ``AgentTrainingFailed``.
        """
        with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
            target = Path(output) if output is not None else Path(folder) / "pairs.jsonl"
            options = ["--model", self._require_model(), "--data", str(prompts), "--output", str(target)]
            options += ["--num-samples", str(num_samples), "--seed", str(seed)]
            options += ["--limit", str(limit)] if limit is not None else []
            if self.reward_model is not None:
                options += ["--reward-weights", dumps(self.reward_model.weights)]
                options += ["--reward-penalties", dumps(self.reward_model.penalties)]
            _run(["pairs", *options])
            # Line by line: ``splitlines`` would also cut at U+2028 and its like within the texts.
            with target.open(encoding="utf-8") as lines:
                return [loads(line) for line in lines]

    def _require_model(self) -> str:
        if self.sft_model is None:
            raise ValueError("sft_model is missing: the weights to begin with")
        return self.sft_model


def _as_term(model: AgentRewardModel) -> dict[str, Any]:
    """The reward as a recipe's ``rewards`` hold it."""
    options = {f"weight_{name}": value for name, value in model.weights.items()}
    options |= {f"penalty_{name}": value for name, value in model.penalties.items()}
    return {"name": "tool_use", "options": options}


class AgentTrainingEvaluator:
    """Measures how well a model uses tools."""

    def __init__(self, model: Path | str) -> None:
        """``model`` is a folder of weights, or that of a run."""
        self.model = str(model)

    def evaluate(
        self,
        benchmark: Path | str = "agent_benchmark:test",
        metrics: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        max_tokens: int = 512,
        seed: int = 0,
        output: Path | str | None = None,
    ) -> dict[str, dict[str, float]]:
        """``{metric: {mean, std, count}}``; ``AgentTrainingFailed`` for a model or rows of no use."""
        options = ["--model", self.model, "--data", str(benchmark)]
        options += ["--max-tokens", str(max_tokens), "--seed", str(seed)]
        for name, value in (
            ("--metrics", ",".join(metrics or ()) or None), ("--limit", limit), ("--output", output),
        ):  # fmt: skip
            options += [name, str(value)] if value is not None else []
        found: dict[str, dict[str, float]] = _run(["evaluate", *options])
        return found


def _train(
    stage: str,
    output: Path,
    options: list[str],
    parameters: Mapping[str, Any],
    *,
    sft: AgentSFTConfig | None = None,
    rl: RLTrainingConfig | None = None,
) -> AgentTrainResult:
    chosen = [part for name, value in parameters.items() for part in ("--set", f"{name}={dumps(value)}")]
    with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
        settings = write_settings(Path(folder) / "settings.yaml", sft=sft, rl=rl)
        command = ["train", stage, "--output", str(output), "--config", str(settings), *options, *chosen]
        ended = _run(command)
    known = AgentTrainResult.__dataclass_fields__
    return AgentTrainResult(**{name: value for name, value in ended.items() if name in known})


def _run(arguments: list[str]) -> Any:
    """What the command prints as JSON; its progress goes where this process's messages go."""
    from trellis.tuning import end_with_parent, require_engine

    require_engine()
    command = [sys.executable, "-m", "trellis_cli", "agent", *arguments, "--json"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent
    )
    printed, said = process.communicate()
    if process.returncode != 0:
        lines = [line for line in said.strip().splitlines() if line.strip()]
        raise AgentTrainingFailed("\n".join(lines[-20:]) or f"exit code {process.returncode}")
    return loads(printed)
