"""All responses of a step, read from the TransferQueue once for everything that is measured of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trellis_train.hooks.metrics import to_scalars
from trellis_train.hooks.timeline import as_parts, as_span
from trellis_train.rollout.response_times import PARTS_KEY, SPAN_KEY, Part
from trellis_train.rollout.sample_ids import SampleKey, real_keys

if TYPE_CHECKING:
    from torch import Tensor

#: What an agent's own reward was made of, by name, among the extra fields of its loop.
EARNED_KEY = "reward_parts"
FIELDS = ["responses", "response_mask", "rm_scores", "extra_fields"]


@dataclass(frozen=True)
class StepResponses:
    """One entry a response, in the order of the batch; those that only fill up mini-batches are left out."""

    #: Prompt of the response.
    groups: Sequence[str]
    scores: Sequence[float]
    #: Token ids, 1-D each.
    tokens: "Sequence[Tensor]"
    #: Tokens that the policy wrote; the rest are those of tools and users.
    written: Sequence[int]
    #: What the rewards reported beside the score, numbers only; empty where there is nothing.
    infos: Sequence[Mapping[str, float]]
    #: Start and end, in seconds since 1970; None where the worker did not note them.
    spans: Sequence[tuple[float, float] | None] = ()
    #: (phase, start, end) of what was measured of each response.
    parts: Sequence[Sequence[Part]] = ()
    #: What an agent's own reward was made of; empty where rewards are the platform's.
    earned: Sequence[Mapping[str, float]] = ()


def places_by_group(groups: Sequence[str]) -> list[list[int]]:
    """Return the positions of the responses to each prompt, for prompts with two or more."""
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return [found for found in places.values() if len(found) > 1]


def read_step(batch: Any) -> StepResponses:
    """Read the responses of ``batch`` (verl's ``KVBatchMeta``) before it is cleared."""
    import transfer_queue as tq

    keys = real_keys(batch)
    if not keys:
        return StepResponses([], [], [], [], [])
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=FIELDS)
    extra = _read_extra_fields(data, len(keys))
    return StepResponses(
        groups=[SampleKey.parse(key).uid for key in keys],
        scores=[float(row.sum()) for row in data["rm_scores"].unbind()],
        tokens=list(data["responses"].unbind()),
        written=[int(row.sum()) for row in data["response_mask"].unbind()],
        infos=[to_scalars(fields.get("reward_extra_info") or {}) for fields in extra],
        earned=[to_scalars(fields.get(EARNED_KEY) or {}) for fields in extra],
        spans=[as_span(fields.get(SPAN_KEY)) for fields in extra],
        parts=[as_parts(fields.get(PARTS_KEY)) for fields in extra],
    )


def _read_extra_fields(data: Any, count: int) -> list[Mapping[str, Any]]:
    if "extra_fields" not in data:
        return [{}] * count
    column = data["extra_fields"]
    found = [
        getattr(each, "data", each) for each in (column.tolist() if hasattr(column, "tolist") else column)
    ]
    return [each if isinstance(each, dict) else {} for each in found]
