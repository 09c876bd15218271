"""Generations as clients ask for them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from trellis_contracts.generation import RejectionSampling, Sampling, SelfInstruct

from trellis_api.core.texts import NO_NUL, Name
from trellis_api.pipelines.schemas import MaxJudgeCost, Revision, ShortName, SplitName, ToDataset, ToVersion


class GenerationEndpoint(BaseModel):
    """A chat endpoint that the platform's settings name (``TRELLIS_JUDGES``)."""

    name: str
    model: str
    requests_per_minute: float
    input_price: float = Field(description="US dollars per million tokens.")
    output_price: float


class GenerationEndpointList(BaseModel):
    """Endpoints that can be used."""

    items: list[GenerationEndpoint]


class GenerationCreate(BaseModel):
    """Rows to generate from the rows of a version, by a model of the platform or an endpoint by name."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    dataset: str = Field(description="ID or name; its rows are the seeds.")
    version: Revision = None
    split: SplitName | None = Field(default=None, description="Default train, or the only one.")
    endpoint: ShortName | None = Field(default=None, description="Name of an endpoint; or give a model.")
    model: Name | None = Field(
        default=None, description="Model on the platform, by ID or name; it is served meanwhile."
    )
    method: Annotated[SelfInstruct | RejectionSampling, Field(discriminator="kind")]
    sampling: Sampling = Field(default_factory=Sampling)
    system: Annotated[str, Field(max_length=20_000, pattern=NO_NUL)] | None = None
    max_cost: float = Field(default=1.0, gt=0, le=100_000, description="Total cost limit in US dollars.")
    concurrency: int = Field(default=16, ge=1, le=256)
    seed: int = Field(default=0, ge=0, lt=2**31)
    max_judge_cost: MaxJudgeCost = 1.0
    output: Annotated[ToVersion | ToDataset, Field(discriminator="kind")] = Field(
        description="The generated rows become a version of the dataset, without the seed rows."
    )
