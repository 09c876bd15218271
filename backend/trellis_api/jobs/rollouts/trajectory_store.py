"""Makes trajectories fit to be kept: without secrets, without what databases refuse, and not too long."""

import json
from typing import Any

from trellis_contracts.agents import Trajectory

from trellis_api.core.redaction import redact_tree
from trellis_api.core.texts import shorten, storable, storable_tree

#: Of one trajectory as JSON.
MAX_CHARACTERS = 262_144
#: Lengths to which texts are cut, one after the other, until the whole fits.
_TEXT_LIMITS = (16_384, 4_096, 1_024, 256)
MAX_REASON_CHARACTERS = 64


def as_columns(trajectory: Trajectory | None) -> dict[str, Any]:
    """Return the columns that a response's row has for its trajectory."""
    if trajectory is None:
        return {"trajectory": None, "stop_reason": None, "turn_count": None}
    kept = fit(redact_tree(storable_tree(trajectory.model_dump(mode="json"))))
    return {
        "trajectory": kept,
        "stop_reason": storable(trajectory.stop_reason)[:MAX_REASON_CHARACTERS],
        "turn_count": len(trajectory.turns),
    }


def fit(tree: dict[str, Any], *, limit: int = MAX_CHARACTERS) -> dict[str, Any]:
    """Fit the tree into the limit: texts are cut first, then turns in the middle dropped, with a note."""
    if _length(tree) <= limit:
        return tree
    for text_limit in _TEXT_LIMITS:
        short: dict[str, Any] = {**_cut(tree, text_limit), "is_shortened": True}
        if _length(short) <= limit:
            return short
    while _length(short) > limit and len(short["turns"]) > 2:
        turns = short["turns"]
        middle = len(turns) // 2
        # A sixteenth at a time: ten thousand turns are measured a few dozen times.
        gone = max(1, len(turns) // 16)
        short["turns"] = [*turns[: middle - gone // 2], *turns[middle - gone // 2 + gone :]]
    if _length(short) > limit:
        short["turns"] = [{**turn, "calls": []} for turn in short["turns"]]
    return short


def _length(tree: dict[str, Any]) -> int:
    return len(json.dumps(tree, ensure_ascii=False))


def _cut(value: Any, text_limit: int) -> Any:
    if isinstance(value, str):
        return shorten(value, limit=text_limit)
    if isinstance(value, list):
        return [_cut(item, text_limit) for item in value]
    if isinstance(value, dict):
        return {key: _cut(item, text_limit) for key, item in value.items()}
    return value
