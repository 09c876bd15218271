"""What texts may hold, and how those of foreign processes are made fit for every database."""

from typing import Annotated, Any

from pydantic import StringConstraints

CUT_MARK = " … [cut]"
#: PostgreSQL keeps no NUL.
NO_NUL = r"^[^\x00]*$"
MAX_NAME_CHARACTERS = 120
#: Of a dataset or a model. Printable: names stand in tables, file names and log lines.
Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        pattern=r"^[^\x00-\x1f\x7f]+$",
    ),
]
#: Of data or weights: an SPDX identifier, or how its card calls it.
Licence = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120, pattern=NO_NUL)
]
#: In a query: a name, an ID, or a part of one.
QueryText = Annotated[str, StringConstraints(max_length=200, pattern=NO_NUL)]
Description = Annotated[str, StringConstraints(max_length=2000, pattern=NO_NUL)]


def number_name(name: str, number: int) -> str:
    """Append a number to the name, which is cut if it would be too long."""
    ending = f" ({number})"
    return name[: MAX_NAME_CHARACTERS - len(ending)] + ending


def storable(text: str) -> str:
    """Replace NUL characters and lone surrogates, which PostgreSQL can't store."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def storable_tree(value: Any) -> Any:
    """Return the same structure with every text made storable, and every number one that JSON can hold."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [storable_tree(item) for item in value]
    if isinstance(value, dict):
        return {storable(str(key)): storable_tree(item) for key, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value


def shorten(text: str, *, limit: int) -> str:
    """Shorten to at most ``limit`` characters, with a mark where something was cut off."""
    return text if len(text) <= limit else text[: limit - len(CUT_MARK)] + CUT_MARK
