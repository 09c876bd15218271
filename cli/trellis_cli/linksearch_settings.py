"""Settings of `trellis linksearch`: the command line over the environment over YAML over the defaults."""

import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from trellis_recipes.quantized_keys import check_weights_name, refuse_bits

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.event_files import Monitor

_Weight = Annotated[float, Field(ge=0, le=10)]


class Mode(StrEnum):
    """How episodes are learned from."""

    MASKED = "masked"
    ROLLOUT = "rollout"
    SIMPLE = "simple"


class RewardWeights(BaseModel):
    """What the parts of the reward are worth in the mode masked; parameters of the recipe, too."""

    reward_score: _Weight = 1.5
    reward_found: _Weight = 0.10
    reward_read: _Weight = 0.05
    reward_returned_read: _Weight = 0.20
    reward_strategy: _Weight = 0.05
    reward_efficiency: _Weight = 0.10
    penalty_needless: _Weight = 0.10
    penalty_zero_result: _Weight = 0.05
    penalty_sql_error: _Weight = 0.08
    penalty_denied: _Weight = 0.15
    penalty_malformed: _Weight = 0.25


REWARD_WEIGHTS = tuple(RewardWeights.model_fields)


class LinkSearchSettings(RewardWeights):
    """Names are those of the environment variables, in lower case."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    profile_db_path: Path = Field(Path("linksearch/profiles.db"), description="The database of profiles.")
    queries: str | None = Field(
        None, description="File, folder or hub dataset of the queries; default the database's folder."
    )
    hf_token: SecretStr | None = Field(None, description="Token of the hub; never written anywhere.")
    model_name: str = Field("Qwen/Qwen2.5-1.5B-Instruct", description="Folder or hub name of the model.")
    mode: Mode = Field(Mode.MASKED, description="masked: as recommended; rollout: the ablation; simple.")
    enable_detailed_logging: bool = Field(False, description="A file for every rollout, in rollout_logs/.")
    tool_template: Literal["model", "hermes"] = Field(
        "model", description="The model's chat template, or that with the tools put into it."
    )
    train_dataset_size: int = Field(1000, ge=1, description="Number of training queries.")
    eval_dataset_size: int = Field(100, ge=1, description="Number of evaluation queries.")
    max_steps: int = Field(200, ge=1, description="Training steps.")
    learning_rate: float = Field(1e-5, ge=0, description="Of the policy.")
    num_generations: int = Field(4, ge=2, description="Episodes of each query.")
    max_turns: int = Field(15, ge=1, le=100, description="Turns of the agent in an episode.")
    max_profiles: int = Field(10, ge=1, le=100, description="Handles of an answer that count.")
    target_accuracy: float | None = Field(0.80, ge=0, le=1, description="The run ends when it is reached.")
    max_tokens: int = Field(4096, ge=16, description="Of an episode after its prompt.")
    per_device_train_batch_size: int = Field(2, ge=1, description="Queries at once.")
    gradient_accumulation_steps: int = Field(4, ge=1, description="Such batches in a step.")
    eval_steps: int = Field(10, ge=1, description="Steps between evaluations.")
    save_steps: int = Field(10, ge=1, description="Steps between checkpoints.")
    patience: int = Field(5, ge=0, description="Evaluations without improvement that end a run; 0: none do.")
    monitor_type: Monitor = Field(
        Monitor.NONE, description="tensorboard: event files beside the metrics; wandb: a W&B run."
    )
    seed: int = Field(42, ge=0)
    gpus: int = Field(1, ge=1, description="GPUs of this machine; on a CPU, processes.")
    output_dir: Path = Field(Path("outputs/linksearch"), description="Folder of the run.")
    preset: str | None = Field(None, description="Preset of the recipe; default by this machine.")
    params: dict[str, Any] = Field(default_factory=dict, description="Further parameters of the recipe.")

    @field_validator("model_name")
    @classmethod
    def _check_weights(cls, value: str) -> str:
        """Check the name of the weights; a folder's config.json is checked when it is read."""
        if not Path(value).is_dir():
            check_weights_name(value)
        return value

    @field_validator("params", mode="before")
    @classmethod
    def _read_params(cls, value: object) -> object:
        """Parse parameters from JSON, the form that an environment variable has."""
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("target_accuracy", mode="before")
    @classmethod
    def _read_none(cls, value: object) -> object:
        """Convert ``none`` to None, since an environment variable or option cannot hold a missing value."""
        return None if isinstance(value, str) and value.strip().lower() == "none" else value

    @property
    def source(self) -> str:
        """Where the queries are."""
        return self.queries or str(self.profile_db_path.parent)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the recipe ``linksearch``; ``params`` override the others."""
        queries = self.per_device_train_batch_size * self.gradient_accumulation_steps
        return {
            "total_steps": self.max_steps,
            "learning_rate": self.learning_rate,
            "group_size": self.num_generations,
            "mode": self.mode.value,
            "detailed_logging": self.enable_detailed_logging,
            "tool_template": self.tool_template,
            "max_turns": self.max_turns,
            "max_profiles": self.max_profiles,
            "target_accuracy": self.target_accuracy,
            "patience": self.patience,
            "max_response_length": self.max_tokens,
            "batch_size": queries,
            "mini_batch_size": queries,
            "micro_batch_size": self.per_device_train_batch_size * self.num_generations,
            "validate_every": self.eval_steps,
            "validate_before": True,
            "save_every": self.save_steps,
            **{name: getattr(self, name) for name in REWARD_WEIGHTS},
            **self.params,
        }

    def shown(self) -> dict[str, Any]:
        """Return all settings, with the token masked."""
        return self.model_dump(mode="json")


def read_settings(
    given: Mapping[str, Any], *, config: Path | None = None, environment: Mapping[str, str] | None = None
) -> LinkSearchSettings:
    """Read each setting from ``given``, else the environment, else the YAML file, else its default.

    Raises ``Problem`` that names what is wrong and where it came from.
    """
    environment = os.environ if environment is None else environment
    names = list(LinkSearchSettings.model_fields)
    layers: list[tuple[str, dict[str, Any]]] = [
        (str(config), _read_yaml(config)),
        ("environment", {name: environment[name.upper()] for name in names if environment.get(name.upper())}),
        ("option", {name: value for name, value in given.items() if value is not None}),
    ]
    merged = {name: (value, place) for place, layer in layers for name, value in layer.items()}
    try:
        return LinkSearchSettings.model_validate({name: value for name, (value, _) in merged.items()})
    except ValidationError as error:
        raise Problem(_explain(error, {name: place for name, (_, place) in merged.items()})) from None


def _explain(error: ValidationError, places: Mapping[str, str]) -> str:
    told = []
    for each in error.errors():
        name = str(each["loc"][0])
        told.append(f"{name.upper()} ({places.get(name, 'default')}): {each['msg']}")
    return "; ".join(told)


def _read_yaml(path: Path | None) -> dict[str, Any]:
    """Read the file's settings; upper-case names are those of the environment variables."""
    if path is None:
        return {}
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Problem(f"{path} cannot be read: {error}", exit_code=ExitCode.USAGE) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Problem(f"{path} is not a mapping of settings", exit_code=ExitCode.USAGE)
    try:
        return refuse_bits({str(name).lower(): value for name, value in found.items()})
    except ValueError as error:
        raise Problem(f"{path}: {error}", exit_code=ExitCode.USAGE) from None
