"""Texts of reports in both languages."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trellis_evaluation.reports.document import Language

_FOLDER = Path(__file__).parent


class Texts:
    """All texts of one language."""

    def __init__(self, language: Language, texts: dict[str, Any]) -> None:
        self.language, self._texts = language, texts

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of that key with its placeholders filled in."""
        text = str(self._texts[key]).strip()
        return text.format(**values) if values else text

    def name(self, names: str, key: str) -> str:
        """Return the display name for a key (``metric_names`` ...), or the key itself if it has none."""
        return str(self._texts[names].get(key, key))

    def points(self, key: str) -> list[str]:
        """Return a list of texts."""
        return [str(each).strip() for each in self._texts[key]]


@cache
def read_texts(language: Language) -> Texts:
    """Read the texts of a language."""
    return Texts(language, yaml.safe_load((_FOLDER / f"{language}.yaml").read_text("utf-8")))
