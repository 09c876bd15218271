"""What Hugging Face asks of a model card's front matter, as far as cards of the platform can miss it."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

#: A repository, with or without an owner.
_ID = re.compile(r"([\w.-]+/)?[\w.-]+")
#: Some of the licences that the hub has a name for.
_LICENCES = {"apache-2.0", "mit", "cc-by-4.0", "gemma", "llama3.2", "unknown", "other"}
_LICENCE_NAME = re.compile(r"[a-z0-9.-]+")


def find_card_problems(card: str) -> Iterator[str]:
    """Yield what the hub would reject in a card; nothing if it is valid."""
    if not card.startswith("---\n"):
        return  # a card without front matter states nothing
    matter: dict[str, Any] = yaml.safe_load(card.split("---\n")[1])
    if matter.get("license") not in _LICENCES:
        yield f'"license" must be one of [{", ".join(sorted(_LICENCES))}]'
    if not _LICENCE_NAME.fullmatch(matter.get("license_name", "none")):
        yield '"license_name" fails to match the required pattern'
    if not _ID.fullmatch(base := matter.get("base_model", "none")):
        yield f'"base_model" with value "{base}" is not valid. Use a model id from https://hf.co/models.'
    for number, name in enumerate(matter.get("datasets", [])):
        if not _ID.fullmatch(name):
            yield (
                f'"datasets[{number}]" with value "{name}" is not valid. If possible, use a dataset id from '
                "https://hf.co/datasets."
            )
