"""A row of the dataset as the ``task`` that a workflow gets: plain values only."""

from collections.abc import Mapping
from typing import Any

#: Of verl's ``extra_info``, what says where a row stands and not what it holds.
_PLACES = ("index",)


def read_task(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read ``question``, ``answer``, ``messages``, ``data_source``, and other information in the row.

    >>> row = {"raw_prompt": [{"role": "user", "content": "1+1"}], "reward_model": {"ground_truth": "2"}}
    >>> read_task(row)["answer"]
    '2'
    """
    messages = [_plain(dict(message)) for message in row["raw_prompt"]]
    said = [message.get("content") for message in messages if message.get("role") == "user"]
    info = _plain(dict(row.get("extra_info") or {}))
    task = {name: value for name, value in info.items() if name not in _PLACES and value is not None}
    task["question"] = said[-1] if said else info.get("question", "")
    task["answer"] = _plain((row.get("reward_model") or {}).get("ground_truth"))
    task["messages"] = messages
    task["data_source"] = str(row.get("data_source", ""))
    return task


def _plain(value: Any) -> Any:
    """Convert NumPy's arrays and scalars to lists and numbers, everything unknown to text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
