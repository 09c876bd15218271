"""Calls to an OpenAI-style chat endpoint: paced, repeated, and never beyond what they may cost together."""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from trellis_contracts.endpoints import ChatEndpoint
from trellis_contracts.ledger import Ledger

from trellis_data.chat_calls import Failure, cost_of, count_tokens, explain, highest_cost, pause_after
from trellis_data.operator import OperatorProblem

if TYPE_CHECKING:
    import openai


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
        most = highest_cost(self._endpoint, (part for message in messages for part in message), max_tokens)
        body = {
            "model": self._endpoint.model,
            "messages": [message._asdict() for message in messages],
            "max_tokens": max_tokens,
            **sampling,
        }
        for attempt in range(self._retries + 1):
            try:
                return self._attempt(body, most)
            except _Passing as error:
                if attempt == self._retries:
                    raise NoReply("unreachable", str(error)) from None
                pause_s = pause_after(attempt, error.pause_s)
            time.sleep(pause_s)
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
        except (openai.APIStatusError, openai.APIConnectionError) as error:
            failure = explain(error)
            if failure.is_free:
                cost = 0.0
            raise self._as_problem(failure, error) from None
        except (openai.APIError, ValueError):
            raise NoReply("no_completion", f"{self._who} '{self._name}' answers with no JSON") from None
        finally:
            self._ledger.settle(most, cost)

    def _as_problem(self, failure: Failure, error: Exception) -> Exception:
        named = f"{self._who} '{self._name}'"
        if failure.status is None:
            return _Passing(f"{named} cannot be reached: {error}")
        if failure.is_refused:
            return OperatorProblem(
                f"{self._who}_refuses",
                f"{named} rejected the call (HTTP {failure.status}): check its key, model and URL.",
            )
        if failure.may_pass:
            return _Passing(f"{named} answers with HTTP {failure.status}", failure.pause_s)
        return NoReply("call_refused", f"{named} refuses a call (HTTP {failure.status})")

    def _read(self, completion: Any, most: float) -> Reply:
        """Read the reply and its cost by the endpoint's own token count; without one, charge the maximum."""
        asked, answered = (count or 0 for count in count_tokens(completion))
        cost = cost_of(self._endpoint, completion, most)
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
