"""An LLM judge behind an OpenAI-style chat endpoint: paced, repeated, bounded in cost, read strictly."""

import asyncio
import hashlib
import re
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openai
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.grades import BadReply, ask_for_grade, parse_grade
from trellis_contracts.ledger import BudgetSpent, Ledger

from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

if TYPE_CHECKING:
    import httpx2

#: Bounds what a call may cost, and the time that a judge which rambles takes.
MAX_REPLY_TOKENS = 1024
_MAX_CACHED = 20_000
_MAX_CONCURRENT = 64
_MILLION = 1_000_000
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
                f"The judge '{name}' has no key: {endpoint.key_variable} is not set where jobs are launched."
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
        """A call costs money: the first one is that of the first response."""

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
            # A token is a byte at least, in any language.
            size = len(question.encode("utf-8", "replace"))
            most = self._price(size, MAX_REPLY_TOKENS)
            try:
                self._ledger.reserve(most)
            except BudgetSpent as error:
                message = f"The judge '{self._name}' has reached its cost bound: {error}."
                raise RewardUnusable(message) from None
            cost = 0.0
            try:
                reply = await self._call(question)
                cost = self._cost_of(reply, most)
            finally:
                self._ledger.settle(most, cost)
        grade = parse_grade(_text_of(reply), lowest=self._lowest, highest=self._highest)
        return (grade - self._lowest) / (self._highest - self._lowest)

    async def _call(self, question: str) -> Any:
        try:
            return await self._connect().chat.completions.create(
                model=self._endpoint.model,
                messages=[{"role": "user", "content": question}],
                temperature=0.0,
                max_tokens=MAX_REPLY_TOKENS,
            )
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise RewardUnusable(
                f"The judge '{self._name}' refuses its calls (HTTP {error.status_code}): check its key, "
                "model and address."
            ) from None

    def _connect(self) -> openai.AsyncOpenAI:
        if self._client is None:
            # Every attempt of a call waits for its turn, repeated ones included.
            http = openai.DefaultAsyncHttpxClient(event_hooks={"request": [self._wait_for_turn]})
            self._client = openai.AsyncOpenAI(
                base_url=self._endpoint.base_url,
                # Endpoints without keys ignore what is sent, but the client wants something to send.
                api_key=self._key or "none",
                max_retries=self._retries,
                timeout=self._endpoint.timeout_s,
                http_client=http,
            )
        return self._client

    async def _wait_for_turn(self, _request: "httpx2.Request") -> None:
        await asyncio.sleep(self._ledger.take_turn())

    def _price(self, input_tokens: float, output_tokens: float) -> float:
        endpoint = self._endpoint
        return (input_tokens * endpoint.input_price + output_tokens * endpoint.output_price) / _MILLION

    def _cost_of(self, reply: Any, most: float) -> float:
        """By the endpoint's own count; one that does not count costs the most that it may."""
        usage = getattr(reply, "usage", None)
        if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return most
        return self._price(usage.prompt_tokens, usage.completion_tokens)


def _text_of(reply: Any) -> str:
    try:
        return str(reply.choices[0].message.content or "")
    except (AttributeError, IndexError, TypeError) as error:
        raise BadReply("the judge's answer is no chat completion") from error
