"""A judge behind an OpenAI-style chat endpoint: paced, repeated, bounded in cost, read strictly."""

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.grades import BadReply, ask_for_grade, parse_grade
from trellis_contracts.ledger import BudgetSpent, Ledger

from trellis_data.chat_client import ChatClient, Message, NoReply, as_file_name, open_ledger
from trellis_data.response_cache import PaidReplies
from trellis_data.scoring.scorer import Pair, Verdict

DEFAULT_TEMPLATE = (
    "Judge the response to a request by whether it is correct, complete, clear and harmless. {lowest} "
    "is useless, "
    "{highest} could not be better.\n\n<request>\n{prompt}\n</request>\n\n<response>\n{answer}\n</response>"
)
#: Bounds what a call may cost.
_MOST_REPLY_TOKENS = 256
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
        """Build the judge, which stores its costs and its grades in ``folder``."""
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

    @property
    def key_variable(self) -> str | None:
        """The variable that holds its key, where it asks."""
        return self.endpoint.key_variable

    def score(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """Ask for what is not known, several at once."""
        questions = [self._question(pair) for pair in pairs]
        digests = [self._digest(question) for question in questions]
        replies = PaidReplies(self._file("grades", "sqlite"))
        known = {digest: Verdict(float(score)) for digest, score in replies.find(set(digests)).items()}
        open_ = {digest: text for digest, text in zip(digests, questions, strict=True) if digest not in known}
        if open_:
            known.update(self._ask(open_, replies))
        return [known[digest] for digest in digests]

    @property
    def spent(self) -> float:
        """Dollars that calls have cost so far."""
        return self._ledger().spent

    def _ask(self, questions: dict[bytes, str], replies: PaidReplies) -> dict[bytes, Verdict]:
        """Ask in batches, and stop when the endpoint refuses."""
        found: dict[bytes, Verdict] = {}
        client = ChatClient("judge", self.name, self.endpoint, self._ledger(), self.retries)

        def grade(digest: bytes) -> Verdict:
            verdict = self._grade(client, questions[digest])
            if verdict.score is not None:
                replies.add(digest, repr(verdict.score))
            return verdict

        with client, ThreadPoolExecutor(self.concurrency) as pool:
            digests = list(questions)
            for start in range(0, len(digests), 4 * self.concurrency):
                stretch = digests[start : start + 4 * self.concurrency]
                found.update(zip(stretch, pool.map(grade, stretch), strict=True))
        return found

    def _grade(self, client: ChatClient, question: str) -> Verdict:
        try:
            reply = client.ask([Message("user", question)], max_tokens=_MOST_REPLY_TOKENS, temperature=0.0)
            grade = parse_grade(reply.text, lowest=self.lowest, highest=self.highest)
        except BudgetSpent:
            return Verdict(None, "over_budget")
        except NoReply as error:
            return Verdict(None, "unreachable" if error.code == "unreachable" else "no_grade")
        except BadReply:
            return Verdict(None, "no_grade")
        return Verdict((grade - self.lowest) / (self.highest - self.lowest))

    def _ledger(self) -> Ledger:
        return open_ledger(self._file("judge", "json"), self.endpoint, self.max_cost)

    def _file(self, what: str, suffix: str) -> Path:
        return self.folder / f"{what}-{as_file_name(self.name)}.{suffix}"

    def _question(self, pair: Pair) -> str:
        values = {**pair._asdict(), "lowest": f"{self.lowest:g}", "highest": f"{self.highest:g}"}
        question = _PLACE.sub(lambda place: values[place.group(1)], self.template)
        return ask_for_grade(question, lowest=self.lowest, highest=self.highest)

    def _digest(self, question: str) -> bytes:
        asked = f"{self.endpoint.base_url}\0{self.endpoint.model}\0{question}"
        return hashlib.sha256(asked.encode("utf-8", "replace")).digest()
