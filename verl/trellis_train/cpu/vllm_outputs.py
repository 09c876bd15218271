"""Return a response's tokens from vLLM's engine in one message where the caller only needs them at the end.

After each step the engine packs the new token of every response, with its log-probability, for the process
that hands responses out. For 256 responses of a small model a second thread spends 4 ms of a step of 27 ms on
that, which the thread that computes waits for, and nobody reads a response before its last token.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

#: Tokens of a response that leave together: all of them at once would be unpacked while everybody waits.
MOST_HELD = 16


def holding(update: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``update_from_output`` to hold back what is not needed yet."""

    @wraps(update)
    def update_and_hold(self: Any, *args: Any, **kwargs: Any) -> Any:
        answers = update(self, *args, **kwargs)
        held: dict[str, list[Any]] = self.__dict__.setdefault("trellis_held", {})
        for answer in answers.values():
            answer.outputs = take_ready(answer.outputs, held, self.requests)
        if len(held) > len(self.requests):  # some were called off
            for request_id in held.keys() - self.requests.keys():
                del held[request_id]
        return answers

    return update_and_hold


def take_ready(outputs: list[Any], held: dict[str, list[Any]], requests: Mapping[str, Any]) -> list[Any]:
    """Return what to send now of ``outputs`` and of those ``held`` by request; hold the others.

    Runs for every response in every step: a look-up and an append each.
    """
    ready = []
    for output in outputs:
        parts = held.get(output.request_id)
        if parts is None:
            if output.finish_reason is not None or not can_wait(requests.get(output.request_id)):
                ready.append(output)
                continue
            parts = held[output.request_id] = []
        parts.append(output)
        if output.finish_reason is not None:
            del held[output.request_id]
        elif len(parts) < MOST_HELD:
            continue
        ready.append(merge(parts))
        parts.clear()
    return ready


def can_wait(request: Any) -> bool:
    """Tell whether nothing reads the response, or ends it by its text, before its last token."""
    from vllm.sampling_params import RequestOutputKind

    params = None if request is None else request.sampling_params
    return params is not None and params.output_kind is RequestOutputKind.FINAL_ONLY and not params.stop


def merge(outputs: list[Any]) -> Any:
    """Merge ``outputs`` (of a request, in order) into one, as vLLM does with drafted tokens."""
    last = outputs[-1]
    last.new_token_ids = [token for output in outputs for token in output.new_token_ids]
    logprobs = [output.new_logprobs for output in outputs if output.new_logprobs is not None]
    if logprobs:
        parts = zip(*(part[:3] for part in logprobs), strict=True)
        last.new_logprobs = type(logprobs[0])(*(np.concatenate(part) for part in parts), None)
    first = outputs[0]  # it tells what is known of the prompt
    last.prefill_stats = first.prefill_stats
    last.new_prompt_logprobs_tensors = first.new_prompt_logprobs_tensors
    if last.routed_experts is not None:
        last.routed_experts = np.concatenate([output.routed_experts for output in outputs])
    events = [event for output in outputs for event in output.events or ()]
    last.events = events or None
    return last
