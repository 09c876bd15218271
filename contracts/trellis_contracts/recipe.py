"""A recipe: one training algorithm, its parameters, presets and mapping to engine keys.

The launch form, the API's validation, the CLI's help and the documentation are
all made from this one model.
"""

from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from trellis_contracts.renamed import Renamed, deprecated_field


class Strict(BaseModel):
    """Base of every contract: an unknown field is an error, not a silent loss."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Text(Strict):
    """A sentence for users, in both languages of the product."""

    en: str
    zh: str


class Engine(StrEnum):
    """The trainer that runs a recipe."""

    VERL_PPO = "verl-ppo"
    VERL_SFT = "verl-sft"
    TRL = "trl"
    #: Not a trainer and in no recipe: writes a checkpoint as a Hugging Face folder.
    EXPORT = "export"
    #: Trains an encoder that finds tools; writes Hugging Face folders.
    RETRIEVAL = "retrieval"
    #: Neither a trainer: measures a model on benchmarks.
    EVALUATE = "evaluate"
    #: Neither a trainer: answers requests with a model.
    SERVE = "serve"


class DataFormat(StrEnum):
    """Row formats that the platform recognises (names follow Hugging Face, OpenAI and verl)."""

    PROMPT_ANSWER = "prompt-answer"
    MESSAGES = "messages"
    #: ``prompt``, ``chosen``, ``rejected`` (texts or messages; the prompt may be implicit in both).
    PREFERENCE = "preference"
    #: ``prompt``, ``completion``, ``label`` (TRL's name).
    UNPAIRED_PREFERENCE = "unpaired-preference"
    TEXT = "text"
    VERL_RL = "verl-rl"
    UNKNOWN = "unknown"


class Paper(Strict):
    """The publication that a recipe follows."""

    title: str
    arxiv: str | None = None
    year: int


class Parameter(Strict):
    """One parameter of a recipe."""

    name: str
    #: "rewards" is a list of ``RewardTerm`` (``trellis_contracts.rewards``), by default none;
    #: "environment" and "workflow" are ids of an environment and of an uploaded workflow file.
    type: Literal["int", "float", "bool", "str", "choice", "rewards", "environment", "workflow"]
    default: int | float | bool | str | None
    #: None may be given though there is a default; a parameter without a default takes it anyway.
    can_be_empty: bool = False
    #: Empty means derived (``trellis_recipes.automatic``): prompts of an update from those of a step, or the
    #: size of a pass from rows, lengths and memory.
    auto: Literal["batch", "half_batch", "passes"] | None = None
    title: Text
    help: Text
    #: "seconds", "tokens", "samples", "steps" ...; None for a pure number.
    unit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    choices: list[str] = Field(default_factory=list)
    #: Shown under "advanced" in the form.
    advanced: bool = False
    group: Literal[
        "data", "model", "optimisation", "algorithm", "critic", "rollout", "reward", "agent", "run"
    ] = "run"
    #: Dotted engine keys that take this parameter's value as it is.
    engine_keys: list[str] = Field(default_factory=list)


class Preset(Strict):
    """Parameter values and engine overrides that suit one size of machine."""

    #: Of a machine; or of a size of model, beside those (the recipes for agents).
    id: Literal["cpu-tiny", "cpu-small", "gpu-24gb", "gpu-80gb", "gpu-8x80gb", "development", "production"]
    title: Text
    gpus: int = Field(ge=1)
    params: dict[str, Any] = Field(default_factory=dict)
    overrides: dict[str, Any] = Field(default_factory=dict)

    @property
    def platform(self) -> Literal["cpu", "cuda"] | None:
        """The platform that its sizes are for; None of one for a size of model."""
        if self.id.startswith("cpu-"):
            return "cpu"
        return "cuda" if self.id.startswith("gpu-") else None


class Recipe(Strict, Renamed):
    """One algorithm that can be launched from the form, the API or the CLI."""

    old_names: ClassVar = {"knobs": "parameters", "trains_on": "row_format"}

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    family: Literal["supervised", "rl", "preference", "agent"]
    engine: Engine
    title: Text
    description: Text
    paper: Paper | None = None
    #: Its trainer is marked experimental upstream: it may change or go with the next release.
    is_experimental: bool = False
    #: The form in which the trainer gets its rows, and the formats that can be brought into it.
    row_format: DataFormat
    data_formats: list[DataFormat]
    #: One of them whose rows are prompts with references: what is trained on is sampled from the job's model.
    sampled_from: DataFormat | None = None
    #: Metric keys that the job page charts first.
    headline_metrics: list[str]
    parameters: list[Parameter]
    presets: list[Preset]
    #: The agent loop that makes its rollouts; None for rollouts of a single turn. Its options are
    #: the parameters of group "agent".
    agent: str | None = None
    #: Engine keys that define the algorithm, whatever the parameters say.
    fixed: dict[str, Any] = Field(default_factory=dict)

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    @deprecated_field("parameters")
    def knobs(self) -> list[Parameter]:
        return self.parameters

    @deprecated_field("row_format")
    def trains_on(self) -> DataFormat:
        return self.row_format
