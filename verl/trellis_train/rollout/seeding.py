"""A seed for every sampling request, so that the same job with the same seed samples the same.

verl under ``full_determinism`` gives one seed to all requests: the responses of a
group would be copies of each other. Here it comes from the run's seed and the
request's place: step, prompt, session of the group, and turn.
"""

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any
from uuid import uuid4

from trellis_train.platform.activation import is_cpu_platform

#: Greedy decoding for requests that share batches with sampled ones. A request of temperature 0 has no
#: seed, and as soon as one in a batch has none, vLLM's CPU sampler leaves the seeds of all unused.
LIKELIEST = {"temperature": 1.0, "top_k": 1}


def derive_seed(*parts: int | str | bool) -> int:
    """Derive a seed below 2^31 from all ``parts``, the same on every machine."""
    digest = blake2b(repr(parts).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFF_FFFF


def is_seeded(rollout: Any) -> bool:
    """Tell whether requests get seeds: always on a CPU; on GPUs, where it slows sampling, on request."""
    return is_cpu_platform() or bool(rollout.full_determinism)


def seed_session(
    params: dict[str, Any], *, seed: int, trajectory: dict[str, Any], row: dict[str, Any]
) -> dict[str, Any]:
    """Add to ``params`` the seed of one session (``row["session_id"]``) of one prompt.

    A training prompt is known by its uid, which tells its place in the step; a
    validation prompt, whose uid is random, by its row.
    """
    prompt = f"{row.get('index')} {row['raw_prompt']}" if trajectory["validate"] else row["uid"]
    if params.get("temperature") == 0 and not trajectory["validate"]:
        params = {**params, **LIKELIEST}
    return {**params, "seed": derive_seed(seed, int(trajectory["step"]), prompt, row["session_id"])}


def seed_turns(client: Any) -> None:
    """Make ``client.generate`` draw anew in each turn of a session: the prompt grows with every turn."""
    generate: Callable[..., Awaitable[Any]] = client.generate

    async def generate_seeded(
        request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **more: Any
    ) -> Any:
        if "seed" in sampling_params:
            turn_seed = derive_seed(sampling_params["seed"], len(prompt_ids))
            sampling_params = {**sampling_params, "seed": turn_seed}
        return await generate(request_id, prompt_ids=prompt_ids, sampling_params=sampling_params, **more)

    client.generate = generate_seeded
    # Under full determinism verl's V1 loops give every request the same id.
    client._vllm_request_id = lambda request_id: uuid4().hex  # noqa: ARG005
