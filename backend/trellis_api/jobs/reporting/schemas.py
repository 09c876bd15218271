"""Where a job's metrics are sent as well, and how that goes."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from trellis_api.core.redaction import has_secret
from trellis_api.core.texts import NO_NUL

WandbText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]
MAX_TAGS = 64


class WandbSettings(BaseModel):
    """Weights & Biases settings. The key is a setting of the platform."""

    model_config = ConfigDict(extra="forbid")

    project: WandbText
    entity: WandbText | None = Field(default=None, description="Team or user; default the key's own.")
    name: WandbText | None = Field(
        default=None, description="Of the run; default the job's name. In a sweep: of the runs' group."
    )
    tags: list[WandbText] | None = Field(default=None, max_length=MAX_TAGS)


class ReportTo(BaseModel):
    """A service that receives the job's metrics too."""

    model_config = ConfigDict(extra="forbid")

    wandb: WandbSettings

    @model_validator(mode="after")
    def _check(self) -> Self:
        if has_secret(self.model_dump()):
            raise ValueError("holds what looks like a token; the key belongs in TRELLIS_WANDB_API_KEY")
        return self


class JobReportRead(BaseModel):
    """Where the metrics go, and how far they are."""

    wandb: WandbSettings
    url: str | None = Field(description="Page of the run, once something was sent.")
    sent_step: int | None = Field(description="The last step that was sent.")
    problem: str | None = Field(description="Why metrics can't be sent now; the job isn't affected.")
