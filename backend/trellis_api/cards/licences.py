"""Finds the licence of weights: the catalogue's, or that of the card in their own folder."""

import re
from pathlib import Path

from trellis_api.models.catalogue import find_entry
from trellis_api.models.models import Model

_CARD = "README.md"
_MAX_CHARACTERS = 16_384
_FRONT_MATTER = re.compile(r"\A---\n(.*?)^---$", re.DOTALL | re.MULTILINE)
#: Names of licences as hubs write them; no YAML is parsed that strangers wrote.
_LINE = re.compile(
    r"""^(license|license_name):[ \t]*["']?([A-Za-z0-9][\w.+-]{0,79})["']?[ \t]*$""", re.MULTILINE
)
_OTHER = "other"


def find_licence(model: Model, *, data_root: Path) -> str | None:
    """Return the licence of a model's weights, by Hugging Face's name where it has one; None if not known."""
    if model.source.get("kind") == "catalogue":
        entry = find_entry(str(model.source["name"]))
        return entry.licence if entry else None
    return read_licence(data_root / model.path) if model.path else None


def read_licence(folder: Path) -> str | None:
    """Return what the front matter of the folder's ``README.md`` says; ``license_name`` for another licence.

    https://huggingface.co/docs/hub/repositories-licenses
    """
    try:
        with (folder / _CARD).open(errors="replace") as file:
            text = file.read(_MAX_CHARACTERS)
    except OSError:
        return None
    matter = _FRONT_MATTER.search(text.replace("\r\n", "\n"))
    said = dict(_LINE.findall(matter[1])) if matter else {}
    licence = said.get("license")
    return said.get("license_name", licence) if licence == _OTHER else licence
