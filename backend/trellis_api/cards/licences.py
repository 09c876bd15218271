"""Finds the licence of weights: the catalogue's, one that was given, or that of the card in their folder."""

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
_OTHER, _UNKNOWN = "other", "unknown"
#: What Hugging Face takes as ``license``; it refuses cards with any other word there.
_OF_HUGGING_FACE = """
    afl-3.0 agpl-3.0 apache-2.0 apple-amlr apple-ascl artistic-2.0 bigcode-openrail-m
    bigscience-bloom-rail-1.0 bigscience-openrail-m bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear
    bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0
    cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0
    cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0
    creativeml-openrail-m deepfloyd-if-license ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2
    fair-noncommercial-research-license gemma gfdl gpl gpl-2.0 gpl-3.0 grok2-community h-research
    intel-research isc lgpl lgpl-2.1 lgpl-3.0 lgpl-lr llama2 llama3 llama3.1 llama3.2 llama3.3 llama4
    lppl-1.3c mit mpl-2.0 ms-pl ncsa odbl odc-by ofl-1.1 openmdw-1.0 openrail openrail++ osl-3.0 other
    pddl postgresql unknown unlicense wtfpl zlib
"""
_NOT_OF_A_NAME = re.compile(r"[^a-z0-9.]+")


def describe_for_hubs(licence: str | None) -> dict[str, str]:
    """Return a licence as the front matter of a card says it: by Hugging Face's name, or as another one's."""
    if licence is None:
        return {"license": _UNKNOWN}
    name = licence.lower()
    if name in _OF_HUGGING_FACE.split():
        return {"license": name}
    return {"license": _OTHER, "license_name": _NOT_OF_A_NAME.sub("-", name)}


def find_licence(model: Model, *, data_root: Path) -> str | None:
    """Return the licence of a model's weights, by Hugging Face's name where it has one; None if not known."""
    if model.source.get("kind") == "catalogue":
        entry = find_entry(str(model.source["name"]))
        return entry.licence if entry else None
    if given := model.source.get("licence"):
        return str(given)
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
