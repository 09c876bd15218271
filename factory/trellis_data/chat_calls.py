"""What a call to an OpenAI-style chat endpoint may cost, has cost, and what a failed one means.

Shared by the client for threads (``trellis_data.chat_client``) and the rewards, which await their calls.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trellis_contracts.endpoints import ChatEndpoint

if TYPE_CHECKING:
    import openai

_MILLION = 1_000_000
#: What an endpoint's chat template may add to the texts of a call.
_TEMPLATE_TOKENS = 128
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
#: Answers that every call would get, and those that the same call may not get a moment later.
_REFUSED = frozenset({401, 403, 404})
_PASSING = frozenset({408, 409, 429})
#: Answers in the place of one that did not come in time: the endpoint has worked all the same.
_TIMED_OUT = frozenset({408, 504})


@dataclass(frozen=True)
class Failure:
    """What a failed call means."""

    #: The HTTP status; None where there was no answer.
    status: int | None
    #: Every call would be answered like this: the key, the model or the address is wrong.
    is_refused: bool
    #: The same call may succeed a moment later.
    may_pass: bool
    #: The endpoint did not work on it. One that was not heard to the end has worked, and may charge.
    is_free: bool
    #: How long the endpoint asks clients to wait, in seconds.
    pause_s: float | None = None


def explain(error: "openai.APIError") -> Failure:
    """Explain what an error of the client means."""
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        return Failure(
            status,
            is_refused=status in _REFUSED,
            may_pass=status in _PASSING or status >= 500,
            is_free=status not in _TIMED_OUT,
            pause_s=_seconds(error.response.headers.get("retry-after")),
        )
    never_arrived = httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout
    is_free = isinstance(error.__cause__, never_arrived)
    return Failure(None, False, may_pass=isinstance(error, openai.APIConnectionError), is_free=is_free)


def pause_after(attempt: int, wanted_s: float | None) -> float:
    """Return the seconds before the next attempt: as the endpoint asks, else twice as long each time."""
    return min(wanted_s or _FIRST_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S)


def price(endpoint: ChatEndpoint, input_tokens: float, output_tokens: float) -> float:
    """Compute the dollars for so many tokens."""
    return (input_tokens * endpoint.input_price + output_tokens * endpoint.output_price) / _MILLION


def highest_cost(endpoint: ChatEndpoint, texts: Iterable[str], max_tokens: int) -> float:
    """Compute the most that a call with these texts can cost: a token is a byte at least, in any language."""
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return price(endpoint, size + _TEMPLATE_TOKENS, max_tokens)


def count_tokens(completion: Any) -> tuple[int | None, int | None]:
    """Read the endpoint's own counts of input and output tokens; None where it does not say."""
    usage = getattr(completion, "usage", None)
    return getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)


def cost_of(endpoint: ChatEndpoint, completion: Any, most: float) -> float:
    """Compute the cost by the endpoint's own counts; without them, assume the most possible."""
    asked, answered = count_tokens(completion)
    return most if asked is None or answered is None else price(endpoint, asked, answered)


def _seconds(header: str | None) -> float | None:
    try:
        wanted = float(header or "nan")
    except ValueError:  # a date: the usual pause will do
        return None
    return wanted if math.isfinite(wanted) and wanted > 0 else None
