"""Settings, reward and choice of rows of the tool-use pipeline, under the names of its design.

Thin over what `trellis agent` and the recipes use: a configuration becomes the file of ``--config``, and the
reward is the one that trains. What trains is loaded when it is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Row = Mapping[str, Any]
Strategy = Literal["loss_topk", "diversity", "hybrid", "random"]


def _task_weights() -> dict[str, float]:
    return {
        "tool_selection": 0.35,
        "multi_step_planning": 0.30,
        "timing_decision": 0.20,
        "tool_retrieval": 0.15,
    }


def _targets() -> list[str]:
    return ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@dataclass
class AgentSFTConfig:
    """Supervised training on dialogs; ``ValueError`` for a value that cannot be."""

    train_data: str = "agent_sft:train"
    dev_data: str = "agent_sft:dev"
    task_weights: dict[str, float] = field(default_factory=_task_weights)
    base_model: str = "Qwen/Qwen2.5-7B-Instruct"
    max_length: int = 4096
    lora_r: int = 64
    lora_alpha: int = 128
    lora_dropout: float = 0.05
    lora_target_modules: list[str] = field(default_factory=_targets)
    num_epochs: int = 3
    batch_size: int = 4
    gradient_accumulation: int = 8
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.1
    lr_scheduler: str = "cosine"
    use_coreset_selection: bool = False
    coreset_target_size: int = 1000
    coreset_strategy: Strategy = "hybrid"
    use_online_continual: bool = False
    continual_buffer_size: int = 2048
    continual_replay_ratio: float = 0.25
    #: The frozen base in fewer bits, beside an adapter; needs an NVIDIA GPU and bitsandbytes.
    load_in_4bit: bool = False
    load_in_8bit: bool = False

    def __post_init__(self) -> None:
        from trellis_recipes.tool_use_settings import SFTSettings

        SFTSettings.model_validate(asdict(self))


@dataclass
class RLTrainingConfig:
    """Training after the supervised one; ``ValueError`` for a value that cannot be."""

    algorithm: Literal["dpo", "ppo", "grpo"] = "dpo"
    #: What is not named keeps its default.
    dpo_config: dict[str, Any] = field(default_factory=dict)
    ppo_config: dict[str, Any] = field(default_factory=dict)
    grpo_config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from trellis_recipes.tool_use_settings import RLSettings

        checked = RLSettings.model_validate(asdict(self))
        for name in ("dpo", "ppo", "grpo"):
            setattr(self, f"{name}_config", getattr(checked, name).model_dump(exclude_none=True))


def write_settings(
    path: Path | str, *, sft: AgentSFTConfig | None = None, rl: RLTrainingConfig | None = None
) -> Path:
    """Write the file that ``trellis agent train STAGE --config FILE`` reads; its path.

    Rows are named in it only where they are others than the defaults: those stand for the splits of whatever
    is trained on.
    """
    import yaml  # the client alone comes without it

    parts = {name: asdict(part) for name, part in (("sft", sft), ("rl", rl)) if part is not None}
    for name in ("train_data", "dev_data"):
        if sft is not None and getattr(sft, name) == getattr(AgentSFTConfig, name):
            del parts["sft"][name]
    target = Path(path)
    target.write_text(yaml.safe_dump(parts, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return target


@dataclass
class AgentRewardConfig:
    """Weights, which count as shares of their sum, and penalties, 0 or below; those not named keep theirs."""

    weights: dict[str, float] = field(
        default_factory=lambda: {
            "task_completion": 0.4,
            "tool_accuracy": 0.25,
            "efficiency": 0.15,
            "timing_quality": 0.10,
            "format_compliance": 0.10,
        }
    )
    penalties: dict[str, float] = field(
        default_factory=lambda: {
            "wrong_tool": -0.3,
            "redundant_call": -0.2,
            "format_error": -0.1,
            "timeout": -0.5,
            "hallucinated_tool": -0.4,
        }
    )
    #: Whether a right tool counts only as far as its arguments are right.
    compare_arguments: bool = True
    #: Whether calls are run where their tools can be simulated, and what came of them counts.
    run_calls: bool = True


#: The parts of a reward by the names of ``AgentRewardConfig``.
_PARTS = {
    "completion": "task_completion",
    "tool_f1": "tool_accuracy",
    "efficiency": "efficiency",
    "timing": "timing_quality",
    "format": "format_compliance",
}


class AgentRewardModel:
    """The reward ``tool_use``, for a response that is at hand."""

    def __init__(self, config: AgentRewardConfig | None = None) -> None:
        """Raise ``ValueError`` for weights or penalties that cannot be."""
        from trellis_train.agents.tooluse.scoring.settings import RewardSettings

        config = config or AgentRewardConfig()
        self._settings = RewardSettings.parse(
            config.weights,
            config.penalties,
            compare_arguments=config.compare_arguments,
            run_calls=config.run_calls,
        )

    @property
    def weights(self) -> dict[str, float]:
        """The weights by the names of the reward's parts, as the commands and the recipes take them."""
        return dict(self._settings.weights)

    @property
    def penalties(self) -> dict[str, float]:
        """The penalties by their names, 0 or below."""
        return dict(self._settings.penalties)

    @property
    def switched_off(self) -> list[str]:
        """Of ``compare_arguments`` and ``run_calls`` those that are off."""
        return [name for name in ("compare_arguments", "run_calls") if not getattr(self._settings, name)]

    @property
    def options(self) -> dict[str, Any]:
        """All of them as the options of the reward ``tool_use``."""
        options: dict[str, Any] = {f"weight_{name}": value for name, value in self.weights.items()}
        options |= {f"penalty_{name}": value for name, value in self.penalties.items()}
        settings = self._settings
        return {
            **options,
            "compare_arguments": settings.compare_arguments,
            "run_calls": settings.run_calls,
        }

    def compute_reward(
        self,
        query: str,  # noqa: ARG002 - of the design's signature
        response: str,
        ground_truth: Mapping[str, Any],
        execution_trace: Sequence[Mapping[str, Any]] = (),
        tools: Sequence[Row] = (),
    ) -> dict[str, Any]:
        """Score a response: ``{total, signed, breakdown, penalties, feedback}``.

        ``total`` lies between 0 and 1, ``signed`` between -1 and 1. ``ground_truth`` is a reference of tool
        use (``steps`` ...) or names ``target_tools``, and may say how many calls are needed
        (``optimal_steps``); an entry of ``execution_trace`` says ``success`` of a call in order, and
        ``timed_out``. ``tools`` are rows of ``agent_tools``, by whose schemas arguments are checked; without
        a trace calls of them are run where they can be simulated. ``query`` has no part in the reward.
        """
        from trellis_train.agents.tooluse.data.simulator import Toolbox
        from trellis_train.agents.tooluse.running import score_with_tools
        from trellis_train.agents.tooluse.scoring.components import Trace
        from trellis_train.agents.tooluse.scoring.reward import score
        from trellis_train.agents.tooluse.scoring.truth import GroundTruth

        given = dict(ground_truth)
        if (targets := given.pop("target_tools", None)) is not None:
            given.setdefault("steps", [{"name": str(name)} for name in targets])
        trace = None
        if execution_trace:
            trace = Trace(
                tuple(bool(each.get("success")) for each in execution_trace),
                any(each.get("timed_out") for each in execution_trace),
            )
        truth, toolbox = GroundTruth.model_validate(given), Toolbox(tools)
        if trace is None:
            reward = score_with_tools(response, truth, toolbox, self._settings)
        else:
            reward = score(response, truth, trace, self._settings, toolbox.tools)
        return {
            "total": reward.total,
            "signed": reward.signed,
            "breakdown": {_PARTS[name]: value for name, value in reward.components.items()},
            "penalties": dict(reward.penalties),
            "feedback": reward.feedback(),
        }


class AgentSFTFormatter:
    """Brings dialogs of ``agent_sft`` into rows to train on."""

    def __init__(self, tools: Sequence[Row]) -> None:
        """Format rows for tools; ``tools`` are rows of ``agent_tools``: name, description, parameters."""
        self._tools = {str(tool["name"]): tool for tool in tools}

    def format_dialog(self, dialog: Row) -> dict[str, Any]:
        """Give ``{id, input, output, task_type, metadata, messages}``; trainers read ``messages``.

        Raises ``ValueError`` for a dialog that names a tool that there is not, or has no assistant.
        """
        from trellis_train.agents.tooluse.formatting.formatter import format_dialog

        return format_dialog(dialog, self._tools)


class CoresetSelector:
    """Chooses the most useful of some rows (``id``, ``messages``, ``metadata``)."""

    def __init__(self, strategy: Strategy = "hybrid", *, seed: int = 0) -> None:
        self.strategy, self.seed = strategy, seed

    def select(self, rows: Sequence[Row], target_size: int) -> list[Row]:
        """Choose at most ``target_size`` rows, in the order chosen; ``ValueError`` for two rows of one id."""
        from trellis_train.agents.tooluse.selection.dialog_items import select_rows

        return list(select_rows(rows, target_size, self.strategy, seed=self.seed))


class OnlineContinualLearner:
    """Rows of earlier rounds, of which some are trained on again beside new ones."""

    def __init__(
        self,
        buffer_size: int = 2048,
        replay_ratio: float = 0.25,
        *,
        path: Path | str | None = None,
        strategy: Strategy = "hybrid",
        seed: int = 0,
    ) -> None:
        """Open the buffer in the file ``path``, where there is one; ``ValueError`` where it is broken."""
        from trellis_train.agents.tooluse.selection.replay import ReplayBuffer

        self._path = None if path is None else Path(path)
        if self._path is None:
            self._buffer = ReplayBuffer(size=buffer_size, ratio=replay_ratio, strategy=strategy, seed=seed)
        else:
            self._buffer = ReplayBuffer.open(
                self._path, size=buffer_size, ratio=replay_ratio, strategy=strategy, seed=seed
            )

    def update(self, rows: Sequence[Row]) -> list[Row]:
        """Take in the rows of a round; give them with those that are replayed. The file is written whole."""
        replayed = self._buffer.absorb(rows)
        if self._path is not None:
            self._buffer.save(self._path)
        return [*rows, *replayed]
