"""A manifest as it comes in, and the plan that is made of it."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from trellis_contracts.recipe import DataFormat
from trellis_recipes.issues import Issue

from trellis_api.core.choices import Choices
from trellis_api.jobs.schemas import DataColumns, JobCreate, JobName, RevisionText

_TEXT = 64
#: Ids as this and other platforms give them.
_ID = r"^[A-Za-z0-9_-]{1,64}$"
_HASH = r"^[0-9a-f]{64}$"
_MAX_DEPTH = 40


class _Part(BaseModel):
    """A part of a manifest; what a later version adds to one is passed over."""

    model_config = ConfigDict(extra="ignore")


class ManifestModel(_Part):
    """The weights that the run started from."""

    model_id: str = Field(pattern=_ID)
    sha256: str | None = Field(default=None, pattern=_HASH)


class ManifestRows(_Part):
    """Rows that the run read."""

    dataset_id: str = Field(pattern=_ID)
    version: RevisionText | None = None
    split: RevisionText | None = None
    format: DataFormat | None = None
    columns: DataColumns = Field(default_factory=dict)
    sha256: str = Field(pattern=_HASH)


class ManifestSeeds(_Part):
    """Seeds of the run."""

    run: int = Field(default=1, ge=0, lt=2**31)


class ManifestHardware(_Part):
    """The machine of the run."""

    platform: str | None = Field(default=None, max_length=_TEXT)
    gpus_asked: int = Field(default=1, ge=1, le=4096)
    gpus: list[str] = Field(default_factory=list, max_length=4096)


class ManifestCheckout(_Part):
    """The code of the run."""

    commit: str | None = Field(default=None, max_length=_TEXT)
    is_dirty: bool = False


class ManifestRequest(_Part):
    """What of the request the resolved configuration doesn't tell."""

    name: JobName | None = None
    preset: str | None = Field(default=None, max_length=100)
    overrides: Choices = Field(default_factory=dict)


def _check_depth(tree: dict[str, Any]) -> dict[str, Any]:
    """Limit the depth to a few levels, as in engine configurations: comparing must not overflow the stack."""
    todo: list[tuple[Any, int]] = [(tree, 0)]
    while todo:
        value, depth = todo.pop()
        if depth > _MAX_DEPTH:
            raise ValueError(f"has more than {_MAX_DEPTH} levels")
        below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        todo += [(each, depth + 1) for each in below]
    return tree


class ReplayManifest(_Part):
    """The manifest of a training run."""

    job_id: str | None = Field(default=None, pattern=_ID)
    recipe: str = Field(max_length=100)
    engine: str | None = Field(default=None, max_length=_TEXT)
    params: Choices = Field(description="Resolved parameters.")
    request: ManifestRequest | None = None
    config: Annotated[dict[str, Any], AfterValidator(_check_depth)] | None = Field(
        default=None, description="Only compared."
    )
    rewards: Annotated[dict[str, Any], AfterValidator(_check_depth)] | None = Field(
        default=None, description="Files, models and judges that scored the run; only compared."
    )
    seeds: ManifestSeeds = Field(default_factory=ManifestSeeds)
    model: ManifestModel
    train_data: ManifestRows
    validation_data: ManifestRows | None = None
    resume_from: str | None = Field(default=None, max_length=4096)
    packages: dict[str, str] = Field(default_factory=dict, max_length=200)
    git: ManifestCheckout | None = None
    hardware: ManifestHardware = Field(default_factory=ManifestHardware)


class ReplayCreate(BaseModel):
    """A run to repeat."""

    model_config = ConfigDict(extra="forbid")

    manifest: ReplayManifest = Field(description="As in GET /jobs/{id}/manifest, or from another platform.")
    name: JobName | None = Field(default=None, description="Name of the new job; default: that of the run.")


class ReplayDifference(BaseModel):
    """What is different from the run of the manifest."""

    what: Literal[
        "model", "data", "validation_data", "parameter", "setting", "reward", "engine",
        "package", "code", "hardware", "start",
    ]  # fmt: skip
    name: str
    was: str | None
    now: str | None


class ReplayPlan(BaseModel):
    """What would be launched, and what differs from the run of the manifest."""

    request: JobCreate | None = Field(description="The job; null if model or data are missing.")
    differences: list[ReplayDifference] = Field(
        description="They don't keep the run from being repeated, but its results may differ."
    )
    problems: list[Issue] = Field(description="Why it can't be repeated; empty if it can.")
    warnings: list[Issue]
