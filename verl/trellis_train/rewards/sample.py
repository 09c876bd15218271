"""A response to be scored, with all that a reward may look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Message = Mapping[str, str]
_JSON_TYPES = (str, int, float, bool, list, tuple, dict, type(None))


@dataclass(frozen=True)
class Sample:
    """One response to one prompt."""

    response: str
    #: The reference answer; empty where the row has none.
    answer: str = ""
    messages: Sequence[Message] = ()
    #: What else the row holds, as JSON.
    row: Mapping[str, Any] = field(default_factory=dict)
    #: Length of the response in tokens of the trained model, where that is known.
    response_tokens: int | None = None

    @property
    def prompt(self) -> str:
        """The prompt as text: the contents of its messages, apart by empty lines."""
        return "\n\n".join(str(message.get("content", "")) for message in self.messages)


def plain_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that fit in JSON; nested values that do not fit become text."""
    return {name: _plain(value) for name, value in values.items() if isinstance(value, _JSON_TYPES)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)
