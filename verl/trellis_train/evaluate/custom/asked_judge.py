"""A judge that is asked from many threads: no question twice, none beyond the cost bound."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from trellis_contracts.attempt import SPEC_FILE
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.grades import BadReply
from trellis_contracts.ledger import BudgetSpent, Ledger
from trellis_contracts.spec import JobSpec
from trellis_data.chat_client import ChatClient, Message, NoReply, as_file_name, open_ledger
from trellis_data.operator import OperatorProblem
from trellis_data.response_cache import PaidReplies

from trellis_train.evaluate.benchmark import BenchmarkUnusable
from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE
from trellis_train.rewards.resources import read_keys

#: Bounds what a call may cost; the reason is a sentence or two.
MAX_REPLY_TOKENS = 1024
RETRIES = 3
Read = TypeVar("Read")


class NotJudged(Exception):
    """A question has no answer; the message says why."""


class AskedJudge:
    """The endpoint, its account and the replies that were paid for, which outlast the attempt."""

    def __init__(self, name: str, endpoint: JudgeEndpoint, *, label: str, max_cost: float) -> None:
        attempt = os.environ.get(ATTEMPT_DIR_VARIABLE)
        folder = _locate_evaluation(Path(attempt)) if attempt else None
        key = read_keys(Path(attempt)).get(name) if attempt else None
        self._name, self._endpoint = name, endpoint
        self._replies = None
        if folder is None:
            self._ledger = Ledger(None, bound=max_cost, requests_per_minute=endpoint.requests_per_minute)
        else:
            file_name = f"judge-{as_file_name(label)}"
            self._ledger = open_ledger(folder / f"{file_name}.json", endpoint, max_cost)
            self._replies = PaidReplies(folder / f"{file_name}-replies.sqlite")
        try:
            self._client = ChatClient("judge", name, endpoint, self._ledger, RETRIES, key=key)
        except OperatorProblem as problem:
            raise BenchmarkUnusable(str(problem)) from problem
        self._refusal: str | None = None
        self._turns = _Turns()

    @property
    def spent(self) -> float:
        """Dollars that calls have cost, those of earlier attempts included."""
        return self._ledger.spent

    def ask(self, question: str, read: Callable[[str], Read]) -> Read:
        """Return ``read`` applied to the judge's reply; ``NotJudged`` without a reply that it accepts."""
        digest = self._digest(question)
        known = self._replies.find([digest]).get(digest) if self._replies else None
        if known is not None:
            return read(known)
        if self._refusal is not None:
            raise NotJudged(self._refusal)
        text = self._call(question)
        try:
            found = read(text)
        except BadReply as error:
            raise NotJudged(str(error)) from None
        if self._replies:
            self._replies.add(digest, text)
        return found

    def close(self) -> None:
        """End the connections."""
        self._client.__exit__()

    def _call(self, question: str) -> str:
        try:
            try:
                with self._turns.beside_others():
                    return self._send(question)
            except BudgetSpent:
                # What is set aside for calls under way is more than they take: when they have ended there
                # may be room for this one.
                with self._turns.alone():
                    return self._send(question)
        except BudgetSpent as error:
            raise NotJudged(
                f"the judge '{self._name}' has reached its cost limit: {error}; raise max_cost or lower the "
                "number of problems (limit)"
            ) from None
        except NoReply as error:
            raise NotJudged(str(error)) from None
        except OperatorProblem as problem:
            # Every other call would be refused as well.
            self._refusal = str(problem)
            raise NotJudged(self._refusal) from None

    def _send(self, question: str) -> str:
        message = Message("user", question)
        return self._client.ask([message], max_tokens=MAX_REPLY_TOKENS, temperature=0.0).text

    def _digest(self, question: str) -> bytes:
        asked = f"{self._endpoint.base_url}\0{self._endpoint.model}\0{question}"
        return hashlib.sha256(asked.encode("utf-8", "replace")).digest()


def _locate_evaluation(attempt: Path) -> Path:
    """Return the evaluation's folder, shared by its attempts; for other runs the attempt's own."""
    path = attempt / SPEC_FILE
    if not path.exists():
        return attempt
    task = JobSpec.model_validate_json(path.read_bytes()).evaluation
    return attempt if task is None else Path(task.output_dir)


class _Turns:
    """Lets callers in side by side, or one alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._is_taken = False

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        """Wait while somebody is, or wants to be, alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until all others have left."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)
            self._is_taken = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()
