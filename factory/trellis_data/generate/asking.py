"""Questions to the model: many at once, none twice, none beyond the cost bound."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from trellis_contracts.generation import Generation
from trellis_contracts.ledger import BudgetSpent

from trellis_data.chat_client import ChatClient, Message, NoReply, Reply, open_ledger
from trellis_data.operator import OperatorProblem
from trellis_data.pipeline.problem import RunCancelled
from trellis_data.response_cache import PaidReplies

#: Why a question has no reply, where the bound was reached.
OVER_BUDGET = "over_budget"


@dataclass(frozen=True)
class Question:
    """What is sent, and the seed that the endpoint draws by."""

    messages: tuple[Message, ...]
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came of a question: a reply, or a code that says why there is none."""

    reply: Reply | None
    problem: str | None = None


@dataclass
class Tally:
    """What was asked so far, and what it took."""

    questions: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    problems: Counter[str] = field(default_factory=Counter)


class Asker:
    """The model that generates; its account and its replies lie in ``folder`` and outlast the process."""

    def __init__(
        self,
        settings: Generation,
        folder: Path,
        should_stop: Callable[[], bool],
        *,
        address: str | None = None,
    ) -> None:
        self._settings, self._should_stop = settings, should_stop
        endpoint = settings.endpoint.model_copy(update={"base_url": address} if address else {})
        self._ledger = open_ledger(folder / "account.json", endpoint, settings.max_cost)
        self._paid = PaidReplies(folder / "replies.sqlite")
        self._client = ChatClient("generator", endpoint.model, endpoint, self._ledger, settings.retries)
        self._pool = ThreadPoolExecutor(settings.concurrency)
        self.tally = Tally()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)
        self._client.__exit__()

    @property
    def spent(self) -> float:
        """Dollars that calls have cost, those of earlier runs in the folder included."""
        return self._ledger.spent

    @property
    def unsettled(self) -> float:
        """Dollars that calls of killed runs may have cost; the bound counts them."""
        return self._ledger.unsettled

    def ask(self, questions: Sequence[Question]) -> list[Outcome]:
        """Return an outcome for each question; raise ``OperatorProblem`` if the endpoint is unavailable."""
        if self._should_stop():
            raise RunCancelled("The generation was cancelled.")
        digests = [self._digest(question) for question in questions]
        known = self._paid.find(set(digests))
        found = {digest: Outcome(Reply(*json.loads(text))) for digest, text in known.items()}
        open_ = {
            digest: question
            for digest, question in zip(digests, questions, strict=True)
            if digest not in found
        }
        # What is set aside for calls under way is more than they take, so there may be room when they ended.
        while open_:
            outcomes = dict(zip(open_, self._pool.map(self._call, open_, open_.values()), strict=True))
            found.update(outcomes)
            refused = [digest for digest, each in outcomes.items() if each.problem == OVER_BUDGET]
            open_ = {digest: open_[digest] for digest in refused} if len(refused) < len(outcomes) else {}
        self.tally.calls += sum(
            found[digest].problem != OVER_BUDGET for digest in found.keys() - known.keys()
        )
        self._count([found[digest] for digest in digests])
        return [found[digest] for digest in digests]

    def _call(self, digest: bytes, question: Question) -> Outcome:
        sampling = self._settings.sampling
        try:
            reply = self._client.ask(
                question.messages,
                max_tokens=sampling.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=question.seed,
            )
        except BudgetSpent:
            return Outcome(None, OVER_BUDGET)
        except NoReply as error:
            return Outcome(None, error.code)
        self._paid.add(digest, json.dumps(reply))
        return Outcome(reply)

    def _count(self, outcomes: list[Outcome]) -> None:
        problems = Counter(each.problem for each in outcomes if each.problem is not None)
        if outcomes and problems["unreachable"] == len(outcomes):
            raise OperatorProblem(
                "generator_unreachable",
                f"The model '{self._settings.endpoint.model}' answered none of {len(outcomes)} calls; "
                "call again when it is back: what was answered before is kept.",
            )
        self.tally.questions += len(outcomes)
        self.tally.problems.update(problems)
        for reply in (each.reply for each in outcomes if each.reply is not None):
            self.tally.input_tokens += reply.input_tokens
            self.tally.output_tokens += reply.output_tokens

    def _digest(self, question: Question) -> bytes:
        asked = {
            "url": self._settings.endpoint.base_url,
            "model": self._settings.endpoint.model,
            "sampling": self._settings.sampling.model_dump(),
            "messages": question.messages,
            "seed": question.seed,
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()


def draw(*parts: object) -> int:
    """Derive a pseudo-random number from the parts, always the same for the same parts; used as a seed."""
    digest = hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % 2**31
