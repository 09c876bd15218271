"""Request schemas of fine-tuning. Unknown fields are rejected by name."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from trellis_api.core.redaction import has_secret
from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints.openai.messages import Strict
from trellis_api.fine_tuning.graders.schemas import Grader
from trellis_api.jobs.reporting.schemas import ReportTo, WandbSettings

MAX_SUFFIX = 64
Auto = Literal["auto"]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Epochs = Annotated[int, Field(ge=1, le=1000)]
Multiplier = Annotated[float, Field(gt=0, le=10_000)]
FileId = Annotated[str, StringConstraints(max_length=64, pattern=NO_NUL)]
Suffix = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SUFFIX, pattern=r"^[A-Za-z0-9._-]+$")]
MetadataKey = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=NO_NUL)]
MetadataValue = Annotated[str, StringConstraints(max_length=512, pattern=NO_NUL)]
#: What jobs may be looked for by: a key is part of a path into JSON, where quotes would end it.
_FilterKey = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r'^[^\x00"\\]+$')]
METADATA: TypeAdapter[dict[str, str]] = TypeAdapter(
    Annotated[dict[_FilterKey, MetadataValue], Field(max_length=16)]
)


class Hyperparameters(Strict):
    """Hyperparameters of all methods."""

    n_epochs: Auto | Epochs = "auto"
    batch_size: Auto | Count = "auto"
    learning_rate_multiplier: Auto | Multiplier = "auto"


class DpoHyperparameters(Hyperparameters):
    """Hyperparameters of DPO."""

    beta: Auto | Annotated[float, Field(gt=0, le=100)] = "auto"


class ReinforcementHyperparameters(Hyperparameters):
    """Hyperparameters of reinforcement. ``reasoning_effort`` only supports the default."""

    compute_multiplier: Auto | Annotated[float, Field(gt=0, le=64)] = "auto"
    eval_interval: Auto | Count = "auto"
    eval_samples: Auto | Annotated[int, Field(ge=1, le=64)] = "auto"
    reasoning_effort: Literal["default"] | None = None


class Supervised(Strict):
    """Supervised fine-tuning on assistant messages."""

    hyperparameters: Hyperparameters = Field(default_factory=Hyperparameters)


class Dpo(Strict):
    """DPO on preference pairs."""

    hyperparameters: DpoHyperparameters = Field(default_factory=DpoHyperparameters)


class Reinforcement(Strict):
    """Reinforcement learning on graded responses."""

    grader: Grader
    hyperparameters: ReinforcementHyperparameters = Field(default_factory=ReinforcementHyperparameters)


class Method(Strict):
    """The fine-tuning method."""

    type: Literal["supervised", "dpo", "reinforcement"]
    supervised: Supervised | None = None
    dpo: Dpo | None = None
    reinforcement: Reinforcement | None = None

    @model_validator(mode="after")
    def _check_type(self) -> "Method":
        for name in ("supervised", "dpo", "reinforcement"):
            if name != self.type and getattr(self, name) is not None:
                raise ValueError(f"'{name}' is given, and the type is '{self.type}'")
        if self.type == "reinforcement" and self.reinforcement is None:
            raise ValueError("'reinforcement' with its grader is needed")
        self.supervised = self.supervised or (Supervised() if self.type == "supervised" else None)
        self.dpo = self.dpo or (Dpo() if self.type == "dpo" else None)
        return self

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Those of the method."""
        chosen = {"supervised": self.supervised, "dpo": self.dpo, "reinforcement": self.reinforcement}
        part = chosen[self.type]
        assert part is not None  # noqa: S101 - the validator above saw to it
        return part.hyperparameters


class Integration(Strict):
    """A service that receives the job's metrics."""

    type: str = Field(max_length=64)
    wandb: WandbSettings | None = None


class FineTuningCreate(Strict):
    """``POST /v1/fine_tuning/jobs``."""

    model: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    training_file: FileId
    validation_file: FileId | None = None
    method: Method = Field(default_factory=lambda: Method(type="supervised"))
    #: The older place of a supervised job's hyperparameters.
    hyperparameters: Hyperparameters | None = None
    suffix: Suffix | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    metadata: dict[MetadataKey, MetadataValue] | None = Field(default=None, max_length=16)
    integrations: list[Integration] | None = Field(default=None, max_length=16)

    @model_validator(mode="after")
    def _settle(self) -> "FineTuningCreate":
        if self.hyperparameters is not None:
            if "method" in self.model_fields_set:
                raise ValueError("give 'hyperparameters' within 'method'")
            self.method = Method(
                type="supervised", supervised=Supervised(hyperparameters=self.hyperparameters)
            )
        if has_secret(self.metadata or {}):
            raise ValueError("'metadata' holds what looks like a token or password")
        if has_secret([each.model_dump() for each in self.integrations or []]):
            raise ValueError("'integrations' holds what looks like a token or password")
        return self

    @property
    def report_to(self) -> ReportTo | None:
        """Where the job's metrics go."""
        wandb = next((each.wandb for each in self.integrations or [] if each.wandb is not None), None)
        return None if wandb is None else ReportTo(wandb=wandb)
