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
        """The text of that key, with what it leaves open filled in."""
        text = str(self._texts[key]).strip()
        return text.format(**values) if values else text

    def name(self, names: str, key: str) -> str:
        """What something is called (``metric_names`` ...); itself where it has no other name."""
        return str(self._texts[names].get(key, key))

    def points(self, key: str) -> list[str]:
        """A list of texts."""
        return [str(each).strip() for each in self._texts[key]]


@cache
def read_texts(language: Language) -> Texts:
    """The texts of a language."""
    return Texts(language, yaml.safe_load((_FOLDER / f"{language}.yaml").read_text("utf-8")))
