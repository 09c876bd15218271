"""An LLM judge behind an OpenAI-style chat endpoint: paced, repeated, bounded in cost, read strictly."""

import asyncio
import hashlib
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import httpx2
import openai
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.grades import BadReply, ask_for_grade, parse_grade
from trellis_contracts.ledger import BudgetSpent, Ledger

from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

#: Bounds what a call may cost, and the time that a judge which rambles takes.
MAX_REPLY_TOKENS = 1024
_MAX_CACHED = 20_000
_MAX_CONCURRENT = 64
_MILLION = 1_000_000
#: What an endpoint's chat template may add to the text of a call.
_TEMPLATE_TOKENS = 128
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
#: Answers that every call would get, and those that this one may not get a moment later.
_REFUSED = frozenset({401, 403, 404})
_PASSING = frozenset({408, 409, 429})
#: Answers in the place of one that did not come in time.
_TIMED_OUT = frozenset({408, 504})
#: The connection was not even made.
_NEVER_ARRIVED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
LEDGER_FILE = "judge-{name}.json"


class JudgeScorer:
    """The judge's grade, scaled to 0 to 1. Equal questions are asked once."""

    def __init__(
        self,
        name: str,
        endpoint: JudgeEndpoint,
        *,
        key: str | None,
        folder: Path | None,
        template: str,
        lowest: int,
        highest: int,
        max_cost: float,
        retries: int,
    ) -> None:
        if endpoint.key_variable is not None and not key:
            raise RewardUnusable(
                f"The judge '{name}' has no API key: set {endpoint.key_variable} for the workers."
            )
        self._name, self._endpoint, self._key = name, endpoint, key
        self._template, self._lowest, self._highest = template, lowest, highest
        self._retries = retries
        file_name = LEDGER_FILE.format(name=re.sub(r"\W", "_", name))
        self._ledger = Ledger(
            folder / file_name if folder else None,
            bound=max_cost,
            requests_per_minute=endpoint.requests_per_minute,
        )
        self._grades: OrderedDict[str, asyncio.Future[float]] = OrderedDict()
        self._client: openai.AsyncOpenAI | None = None
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    @property
    def cost(self) -> float:
        """Dollars that calls have cost so far."""
        return self._ledger.spent

    async def score(self, sample: Sample) -> float:
        """Ask, unless the same was asked before."""
        question = self._ask_for(sample)
        digest = hashlib.sha256(question.encode("utf-8", "replace")).hexdigest()
        known = self._grades.get(digest)
        if known is None:
            known = asyncio.ensure_future(self._grade(question))
            self._grades[digest] = known
            if len(self._grades) > _MAX_CACHED:
                self._grades.popitem(last=False)
        try:
            return await asyncio.shield(known)
        except Exception:
            if self._grades.get(digest) is known:  # a failure is not remembered
                del self._grades[digest]
            raise

    async def load(self) -> None:
        """Do nothing: calls cost money, so the first one is for the first response."""

    async def close(self) -> None:
        """End the calls that nobody waits for any more, and the connections."""
        unfinished = [call for call in self._grades.values() if not call.done()]
        for call in unfinished:
            call.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _ask_for(self, sample: Sample) -> str:
        question = self._template.format(
            prompt=sample.prompt,
            response=sample.response,
            answer=sample.answer,
            lowest=self._lowest,
            highest=self._highest,
        )
        return ask_for_grade(question, lowest=self._lowest, highest=self._highest)

    async def _grade(self, question: str) -> float:
        async with self._slots:
            reply = await self._call(question)
        grade = parse_grade(_text_of(reply), lowest=self._lowest, highest=self._highest)
        return (grade - self._lowest) / (self._highest - self._lowest)

    async def _call(self, question: str) -> Any:
        """Send the question with retries and return the reply."""
        for attempt in range(self._retries + 1):
            try:
                return await self._attempt(question)
            except openai.APIError as error:
                if attempt == self._retries or not _may_pass(error):
                    raise
                pause_s = _wanted_pause_s(error) or _FIRST_PAUSE_S * 2**attempt
            await asyncio.sleep(min(pause_s, _LONGEST_PAUSE_S))
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, question: str) -> Any:
        """Make one request with its own share of the limit: each may cost money, whatever becomes of it."""
        # A token is a byte at least, in any language.
        most = self._price(len(question.encode("utf-8", "replace")) + _TEMPLATE_TOKENS, MAX_REPLY_TOKENS)
        try:
            self._ledger.reserve(most)
        except BudgetSpent as error:
            message = f"The judge '{self._name}' has reached its cost limit: {error}."
            raise RewardUnusable(message) from None
        cost = 0.0
        try:
            await asyncio.sleep(self._ledger.take_turn())
            # Until more is known: an endpoint that was not heard to the end has worked all the same.
            cost = most
            reply = await self._connect().chat.completions.create(
                model=self._endpoint.model,
                messages=[{"role": "user", "content": question}],
                temperature=0.0,
                max_tokens=MAX_REPLY_TOKENS,
            )
            cost = self._cost_of(reply, most)
            return reply
        except openai.APIStatusError as error:
            if error.status_code not in _TIMED_OUT:
                cost = 0.0  # it has refused to work
            if error.status_code in _REFUSED:
                raise RewardUnusable(
                    f"The judge '{self._name}' rejected the request (HTTP {error.status_code}): check its "
                    "API key, model and URL."
                ) from None
            raise
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, _NEVER_ARRIVED):
                cost = 0.0
            raise
        finally:
            self._ledger.settle(most, cost)

    def _connect(self) -> openai.AsyncOpenAI:
        if self._client is None:
            self._client = openai.AsyncOpenAI(
                base_url=self._endpoint.base_url,
                # Endpoints without keys ignore what is sent, but the client wants something to send.
                api_key=self._key or "none",
                max_retries=0,  # repeated here, where every attempt is paced and accounted for
                timeout=self._endpoint.timeout_s,
                # The settings name this address and no other, and the key is meant for it.
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
            )
        return self._client

    def _price(self, input_tokens: float, output_tokens: float) -> float:
        endpoint = self._endpoint
        return (input_tokens * endpoint.input_price + output_tokens * endpoint.output_price) / _MILLION

    def _cost_of(self, reply: Any, most: float) -> float:
        """Compute the cost by the endpoint's own count; without a count, assume the most possible."""
        usage = getattr(reply, "usage", None)
        if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return most
        return self._price(usage.prompt_tokens, usage.completion_tokens)


def _text_of(reply: Any) -> str:
    try:
        return str(reply.choices[0].message.content or "")
    except (AttributeError, IndexError, TypeError) as error:
        raise BadReply("the judge's response is not a chat completion") from error


def _may_pass(error: openai.APIError) -> bool:
    """Tell whether the same call may succeed a moment later."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code in _PASSING or error.status_code >= 500
    return isinstance(error, openai.APIConnectionError)


def _wanted_pause_s(error: openai.APIError) -> float | None:
    """Read how long the endpoint asks clients to wait; None where it does not say."""
    header = error.response.headers.get("retry-after") if isinstance(error, openai.APIStatusError) else None
    try:
        return float(header) if header else None
    except ValueError:  # a date: the usual pause will do
        return None
