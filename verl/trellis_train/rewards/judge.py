"""An LLM judge behind an OpenAI-style chat endpoint: paced, repeated, bounded in cost, read strictly."""

import asyncio
import hashlib
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import openai
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.grades import BadReply, ask_for_grade, parse_grade
from trellis_contracts.ledger import BudgetSpent, Ledger
from trellis_data.chat_calls import cost_of, explain, highest_cost, pause_after

from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

#: Bounds what a call may cost, and the time that a judge which rambles takes.
MAX_REPLY_TOKENS = 1024
_MAX_CACHED = 20_000
_MAX_CONCURRENT = 64
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
                failure = explain(error)
                if attempt == self._retries or not failure.may_pass:
                    raise
                pause_s = pause_after(attempt, failure.pause_s)
            await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, question: str) -> Any:
        """Make one request with its own share of the limit: each may cost money, whatever becomes of it."""
        most = highest_cost(self._endpoint, [question], MAX_REPLY_TOKENS)
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
            cost = cost_of(self._endpoint, reply, most)
            return reply
        except openai.APIError as error:
            failure = explain(error)
            if failure.is_free:
                cost = 0.0
            if failure.is_refused:
                raise RewardUnusable(
                    f"The judge '{self._name}' rejected the request (HTTP {failure.status}): check its "
                    "API key, model and URL."
                ) from None
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


def _text_of(reply: Any) -> str:
    try:
        return str(reply.choices[0].message.content or "")
    except (AttributeError, IndexError, TypeError) as error:
        raise BadReply("the judge's response is not a chat completion") from error
