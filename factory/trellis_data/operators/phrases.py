"""Lists of words and phrases: those that ship with the factory, and those that a person brings."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from trellis_data.operator import OperatorProblem
from trellis_data.row_texts import is_text

BuiltIn = Literal["placeholders", "disclaimers", "refusals", "toxicity"]
#: Of a list that is a dataset: which of several columns with texts holds the phrases.
_COLUMNS = ("phrase", "word", "text")


@cache
def built_in_phrases(name: BuiltIn) -> tuple[str, ...]:
    """Return a built-in list of phrases, in lower case."""
    lists = yaml.safe_load(files(__package__).joinpath("phrases.yaml").read_text(encoding="utf-8"))
    return tuple(lists[name])


def read_phrases(path: Path) -> list[str]:
    """Read phrases from a text file, one per line, or Parquet, one per row; # starts a comment."""
    try:
        lines = _read_rows(path) if path.suffix == ".parquet" else _read_lines(path)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise OperatorProblem(
            "word_list_unreadable",
            f"{path.name} cannot be read as a word list ({error}); it has to be UTF-8 text, a phrase a line, "
            "or Parquet, a phrase a row.",
        ) from None
    phrases = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not phrases:
        raise OperatorProblem("word_list_empty", f"{path.name} holds no phrase.")
    return phrases


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig").splitlines()


def _read_rows(path: Path) -> list[str]:
    """Read the texts of the column with the most likely name, else of the first column with texts."""
    with pq.ParquetFile(path) as file:
        texts = [field.name for field in file.schema_arrow if is_text(field.type)]
        if not texts:
            raise OperatorProblem("word_list_empty", f"{path.name} has no column with texts.")
        name = next((each for each in _COLUMNS if each in texts), texts[0])
        return [text for text in file.read([name]).column(name).to_pylist() if text is not None]
