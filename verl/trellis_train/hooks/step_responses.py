"""All responses of a step, read from the TransferQueue once for everything that is measured of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trellis_train.hooks.metrics import to_scalars
from trellis_train.rollout.sample_ids import SampleKey, real_keys

if TYPE_CHECKING:
    from torch import Tensor

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


def places_by_group(groups: Sequence[str]) -> list[list[int]]:
    """Places of the responses to each prompt, for prompts with two and more."""
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
    return StepResponses(
        groups=[SampleKey.parse(key).uid for key in keys],
        scores=[float(row.sum()) for row in data["rm_scores"].unbind()],
        tokens=list(data["responses"].unbind()),
        written=[int(row.sum()) for row in data["response_mask"].unbind()],
        infos=_read_infos(data, len(keys)),
    )


def _read_infos(data: Any, count: int) -> list[Mapping[str, float]]:
    if "extra_fields" not in data:
        return [{}] * count
    column = data["extra_fields"]
    return [_read_info(each) for each in (column.tolist() if hasattr(column, "tolist") else column)]


def _read_info(fields: Any) -> Mapping[str, float]:
    fields = getattr(fields, "data", fields)
    info = fields.get("reward_extra_info") if isinstance(fields, dict) else None
    return to_scalars(info or {})
