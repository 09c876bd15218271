"""A judge behind an OpenAI-style chat endpoint: paced, repeated, bounded in cost, read strictly."""

import hashlib
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator
from trellis_contracts.grades import BadReply, ask_for_grade, parse_grade
from trellis_contracts.ledger import BudgetSpent, Ledger
from trellis_contracts.rewards import JudgeEndpoint

from trellis_data.operator import OperatorProblem
from trellis_data.scoring.grade_store import GradeStore
from trellis_data.scoring.scorer import Pair, Verdict

if TYPE_CHECKING:
    import openai

DEFAULT_TEMPLATE = (
    "Judge the response to a request by whether it is correct, complete, clear and harmless. {lowest} "
    "is useless, "
    "{highest} could not be better.\n\n<request>\n{prompt}\n</request>\n\n<response>\n{answer}\n</response>"
)
#: Bounds what a call may cost.
_MOST_REPLY_TOKENS = 256
_MILLION = 1_000_000
_PLACE = re.compile(r"\{(prompt|answer|lowest|highest)\}")


class JudgeSettings(JudgeEndpoint):
    """A judge as a file describes it: the endpoint, what it may cost and what it is asked."""

    #: US dollars that all calls of a run may cost together.
    max_cost: float = Field(gt=0)
    #: Holds ``{prompt}`` and ``{answer}``; ``{lowest}`` and ``{highest}`` if it likes.
    template: str = DEFAULT_TEMPLATE
    lowest: float = 0.0
    highest: float = 10.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        missing = [place for place in ("{prompt}", "{answer}") if place not in self.template]
        if missing:
            raise ValueError(f"the template lacks {' and '.join(missing)}")
        if self.lowest >= self.highest:
            raise ValueError("'lowest' must be below 'highest'")
        return self

    def build(self, name: str, folder: Path) -> "EndpointJudge":
        """The judge; its account and its grades lie in ``folder``."""
        endpoint = JudgeEndpoint(**{key: getattr(self, key) for key in JudgeEndpoint.model_fields})
        return EndpointJudge(
            name, endpoint, folder, self.max_cost, self.template, lowest=self.lowest, highest=self.highest
        )


@dataclass(frozen=True)
class EndpointJudge:
    """Grades answers; equal questions are asked once, also by a run that goes on after it was killed."""

    name: str
    endpoint: JudgeEndpoint
    #: Where the account and the grades are kept, shared by all processes of a run.
    folder: Path
    #: US dollars that all calls together may cost.
    max_cost: float
    template: str = DEFAULT_TEMPLATE
    lowest: float = 0
    highest: float = 10
    retries: int = 3
    concurrency: int = 16

    def score(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """Ask for what is not known, several at once."""
        questions = [self._question(pair) for pair in pairs]
        digests = [self._digest(question) for question in questions]
        store = GradeStore(self._file("grades", "sqlite"))
        known = {digest: Verdict(score) for digest, score in store.find(set(digests)).items()}
        open_ = {digest: text for digest, text in zip(digests, questions, strict=True) if digest not in known}
        if open_:
            known.update(self._ask(open_, store))
        return [known[digest] for digest in digests]

    @property
    def spent(self) -> float:
        """Dollars that calls have cost so far."""
        return self._ledger().spent

    def _ask(self, questions: dict[bytes, str], store: GradeStore) -> dict[bytes, Verdict]:
        """Stretch by stretch: where the endpoint refuses, what follows is not asked."""
        found: dict[bytes, Verdict] = {}
        client = self._connect()
        with client, ThreadPoolExecutor(self.concurrency) as pool:
            digests = list(questions)
            for start in range(0, len(digests), 4 * self.concurrency):
                stretch = digests[start : start + 4 * self.concurrency]
                verdicts = pool.map(lambda digest: self._grade(client, questions[digest]), stretch)
                for digest, verdict in zip(stretch, verdicts, strict=True):
                    found[digest] = verdict
                    if verdict.score is not None:
                        store.add(digest, verdict.score)
        return found

    def _grade(self, client: "openai.OpenAI", question: str) -> Verdict:
        import openai

        ledger = self._ledger()
        # A token is a byte at least, in any language.
        most = self._price(len(question.encode("utf-8", "replace")), _MOST_REPLY_TOKENS)
        try:
            ledger.reserve(most)
        except BudgetSpent:
            return Verdict(None, "over_budget")
        cost = 0.0
        try:
            reply = self._call(client, question)
            cost = self._cost_of(reply, most)
            text = reply.choices[0].message.content or ""
            grade = parse_grade(text, lowest=self.lowest, highest=self.highest)
        except (BadReply, AttributeError, IndexError, TypeError):
            return Verdict(None, "no_grade")
        except (openai.APIConnectionError, openai.APIStatusError):
            return Verdict(None, "unreachable")
        finally:
            ledger.settle(most, cost)
        return Verdict((grade - self.lowest) / (self.highest - self.lowest))

    def _call(self, client: "openai.OpenAI", question: str) -> Any:
        import openai

        try:
            return client.chat.completions.create(
                model=self.endpoint.model,
                messages=[{"role": "user", "content": question}],
                temperature=0.0,
                max_tokens=_MOST_REPLY_TOKENS,
            )
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise OperatorProblem(
                "judge_refuses",
                f"The judge '{self.name}' refuses its calls (HTTP {error.status_code}): check its key, "
                "model and "
                "address.",
            ) from None

    def _connect(self) -> "openai.OpenAI":
        import openai

        variable = self.endpoint.key_variable
        key = os.environ.get(variable) if variable else None
        if variable and not key:
            raise OperatorProblem(
                "judge_without_key",
                f"The judge '{self.name}' has no key: {variable} is not set on this machine.",
            )
        # Every attempt of a call waits for its turn, repeated ones included.
        http = openai.DefaultHttpxClient(event_hooks={"request": [self._wait_for_turn]})
        return openai.OpenAI(
            base_url=self.endpoint.base_url,
            api_key=key or "none",  # endpoints without keys ignore it, but the client wants something to send
            max_retries=self.retries,
            timeout=self.endpoint.timeout_s,
            http_client=http,
        )

    def _wait_for_turn(self, _request: object) -> None:
        time.sleep(self._ledger().take_turn())

    def _ledger(self) -> Ledger:
        self.folder.mkdir(parents=True, exist_ok=True)
        return Ledger(
            self._file("judge", "json"),
            bound=self.max_cost,
            requests_per_minute=self.endpoint.requests_per_minute,
        )

    def _file(self, what: str, suffix: str) -> Path:
        return self.folder / f"{what}-{re.sub(r'[^0-9A-Za-z]', '_', self.name)}.{suffix}"

    def _question(self, pair: Pair) -> str:
        values = {**pair._asdict(), "lowest": f"{self.lowest:g}", "highest": f"{self.highest:g}"}
        question = _PLACE.sub(lambda place: values[place.group(1)], self.template)
        return ask_for_grade(question, lowest=self.lowest, highest=self.highest)

    def _digest(self, question: str) -> bytes:
        asked = f"{self.endpoint.base_url}\0{self.endpoint.model}\0{question}"
        return hashlib.sha256(asked.encode("utf-8", "replace")).digest()

    def _price(self, input_tokens: float, output_tokens: float) -> float:
        endpoint = self.endpoint
        return (input_tokens * endpoint.input_price + output_tokens * endpoint.output_price) / _MILLION

    def _cost_of(self, reply: Any, most: float) -> float:
        """By the endpoint's own count; one that does not count costs the most that it may."""
        usage = getattr(reply, "usage", None)
        if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return most
        return self._price(usage.prompt_tokens, usage.completion_tokens)
