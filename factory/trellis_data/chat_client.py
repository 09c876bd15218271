"""Calls to an OpenAI-style chat endpoint: paced, repeated, and never beyond what they may cost together."""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from trellis_contracts.endpoints import ChatEndpoint
from trellis_contracts.ledger import Ledger

from trellis_data.operator import OperatorProblem

if TYPE_CHECKING:
    import openai

_MILLION = 1_000_000
#: What an endpoint's chat template may add to the texts of a call.
_TEMPLATE_TOKENS = 128
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
#: Answers that the same call may not get a moment later.
_PASSING = frozenset({408, 409, 429})


class Message(NamedTuple):
    """A turn of what is sent."""

    role: str
    content: str


class Reply(NamedTuple):
    """What an endpoint answered, and what that took."""

    text: str
    finish_reason: str | None
    input_tokens: int
    output_tokens: int
    cost: float


class NoReply(Exception):
    """A call got none; ``code`` says why: ``unreachable``, ``call_refused`` or ``no_completion``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ChatClient:
    """A connection; threads may share it, and processes the account in ``ledger``.

    ``who`` names the endpoint in messages and begins their codes, as in ``judge_refuses``. ``key`` is that of
    the endpoint where it was handed over; else it is looked for in the environment.
    """

    def __init__(
        self,
        who: str,
        name: str,
        endpoint: ChatEndpoint,
        ledger: Ledger,
        retries: int,
        *,
        key: str | None = None,
    ) -> None:
        self._who, self._name = who, name
        self._endpoint, self._ledger, self._retries = endpoint, ledger, retries
        self._client = self._connect(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, messages: Sequence[Message], *, max_tokens: int, **sampling: Any) -> Reply:
        """Send one request and return the reply.

        Raises ``BudgetSpent`` where it could cost more than is left, ``NoReply``, and
        ``OperatorProblem`` where no call can succeed.
        """
        # A token is a byte at least, in any language.
        size = sum(len(part.encode("utf-8", "replace")) for message in messages for part in message)
        most = self._price(size + _TEMPLATE_TOKENS, max_tokens)
        body = {
            "model": self._endpoint.model,
            "messages": [message._asdict() for message in messages],
            "max_tokens": max_tokens,
            **sampling,
        }
        for attempt in range(self._retries + 1):
            pause = _FIRST_PAUSE_S * 2**attempt
            try:
                return self._attempt(body, most)
            except _Passing as error:
                if attempt == self._retries:
                    raise NoReply("unreachable", str(error)) from None
                pause = error.pause_s or pause
            time.sleep(min(pause, _LONGEST_PAUSE_S))
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, body: dict[str, Any], most: float) -> Reply:
        """Send one request, reserving its own share of the budget: each may be charged, whatever happens."""
        import openai

        self._ledger.reserve(most)
        # Until something else is known: an endpoint that was not heard to the end has worked all the same.
        cost = most
        try:
            time.sleep(self._ledger.take_turn())
            completion = self._client.chat.completions.create(**body)
            reply = self._read(completion, most)
            cost = reply.cost
            return reply
        except openai.APIStatusError as error:
            cost = 0.0
            raise self._explain(error) from None
        except openai.APIConnectionError as error:
            if _never_arrived(error):
                cost = 0.0
            raise _Passing(f"{self._who} '{self._name}' cannot be reached: {error}") from None
        except (openai.APIError, ValueError):
            raise NoReply("no_completion", f"{self._who} '{self._name}' answers with no JSON") from None
        finally:
            self._ledger.settle(most, cost)

    def _explain(self, error: "openai.APIStatusError") -> Exception:
        status = error.status_code
        if status in (401, 403, 404):
            return OperatorProblem(
                f"{self._who}_refuses",
                f"{self._who} '{self._name}' rejected the call (HTTP {status}): check its key, "
                "model and URL.",
            )
        if status in _PASSING or status >= 500:
            return _Passing(
                f"{self._who} '{self._name}' answers with HTTP {status}",
                _seconds(error.response.headers.get("retry-after")),
            )
        return NoReply("call_refused", f"{self._who} '{self._name}' refuses a call (HTTP {status})")

    def _read(self, completion: Any, most: float) -> Reply:
        """Read the reply and its cost by the endpoint's own token count; without one, charge the maximum."""
        usage = getattr(completion, "usage", None)
        counts = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        asked, answered = (count or 0 for count in counts)
        cost = most if None in counts else self._price(asked, answered)
        try:
            choice = completion.choices[0]
            text, reason = choice.message.content or "", choice.finish_reason
        except (AttributeError, IndexError, TypeError):
            raise NoReply("no_completion", f"{self._who} '{self._name}' answers with no completion") from None
        return Reply(text, reason, asked, answered, cost)

    def _connect(self, key: str | None) -> "openai.OpenAI":
        import openai

        variable = self._endpoint.key_variable
        key = key or (os.environ.get(variable) if variable else None)
        if variable and not key:
            raise OperatorProblem(
                f"{self._who}_without_key",
                f"The {self._who} '{self._name}' has no key: {variable} is not set on this machine.",
            )
        return openai.OpenAI(
            base_url=self._endpoint.base_url,
            api_key=key or "none",  # endpoints without keys ignore it, but the client wants something to send
            max_retries=0,  # repeated here, where every attempt is paced and accounted for
            timeout=self._endpoint.timeout_s,
            # The settings name this address and no other, and the key is meant for it.
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )

    def _price(self, input_tokens: float, output_tokens: float) -> float:
        endpoint = self._endpoint
        return (input_tokens * endpoint.input_price + output_tokens * endpoint.output_price) / _MILLION


class _Passing(Exception):
    """An attempt failed for a reason that may pass."""

    def __init__(self, message: str, pause_s: float | None = None) -> None:
        super().__init__(message)
        self.pause_s = pause_s


def open_ledger(path: Path, endpoint: ChatEndpoint, max_cost: float) -> Ledger:
    """Open the cost ledger of an endpoint in a file; its folder is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return Ledger(path, bound=max_cost, requests_per_minute=endpoint.requests_per_minute)


def as_file_name(name: str) -> str:
    """Convert a name to a form that is safe as part of a file name."""
    return re.sub(r"[^0-9A-Za-z]", "_", name)


def _never_arrived(error: Exception) -> bool:
    """Return whether the connection could not even be opened."""
    import httpx2

    return isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def _seconds(header: str | None) -> float | None:
    try:
        return float(header) if header else None
    except ValueError:  # a date: the usual pause will do
        return None
