"""Requests drawn from the OpenAPI schema: none may fail inside the API, or be answered without a token.

Some name things that exist: identifiers that earlier answers held, by their prefix. The same seed draws the
same requests on the same answers.
"""

import operator
import random
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case
from schemathesis.schemas import APIOperation
from trellis_api.main import API_PREFIX
from trellis_api.openapi import build_schema
from trellis_contracts.endpoints import OPENAI_PREFIX

#: Of one operation, before the next one is drawn.
EXAMPLES = 10
#: How often a request has no token, or names what exists.
_WITHOUT_TOKEN, _KNOWN = 0.2, 0.6
_KEPT_IDS = 50
_TIMEOUT_S = 30.0
_SHOWN_CHARS = 500
#: Of requests without a token, or with a cookie that is drawn.
_REFUSED = (401, 403)
#: Details of a 422 that anybody gets: a text that is not UTF-8 is refused before the token is looked at.
_MALFORMED = (b"string_nul", b"string_unicode")
#: Are answered to anybody.
_OPEN = {f"{API_PREFIX}/auth/login", f"{API_PREFIX}/auth/logout"}
#: An id: the prefix of its kind, and random letters.
_ID = re.compile(r"\b([a-z]{2,5})_[a-z2-7]{12}\b")
#: Path parameters whose name is not that of the prefix's kind.
_KINDS = {
    "job_id": "job", "dataset_id": "ds", "model_id": "mdl", "task_id": "dtk", "upload_id": "up",
    "pipeline_id": "pip", "file_id": "rwf", "dry_run_id": "dry", "evaluation_id": "ev", "report_id": "rep",
    "workflow_id": "wfl", "environment_id": "env", "call_id": "ecl", "endpoint_id": "ep",
    "job_pipeline_id": "jpl", "sweep_id": "swp", "transfer_id": "trf", "vote_id": "vot", "view_id": "vew",
    "shared_id": "shc", "fine_tuning_job_id": "ftjob", "model": "mdl", "dataset": "ds", "job": "job",
}  # fmt: skip

AnyCase = Case[Any]
AnyOperation = APIOperation[Any, Any, Any, Any]


@schemathesis.serializer("application/offset+octet-stream")
def _as_piece(_context: Any, value: Any) -> bytes:
    """Send a piece of an upload as it is."""
    return value if isinstance(value, bytes) else str(value).encode()


@dataclass(frozen=True)
class Finding:
    """A request that was answered as none may be."""

    rule: str
    request: str
    answer: str


@dataclass
class Outcome:
    """All that a campaign has to tell."""

    seed: int
    sent: int = 0
    without_token: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0


class Campaign:
    """One platform, one seed."""

    def __init__(self, url: str, token_header: str, known: Mapping[str, str], seed: int) -> None:
        """Prepare a campaign; ``known`` are ids of things that exist, by their prefix."""
        self._url, self._token_header, self._seed = url, token_header, seed
        self._known = {prefix: deque([each], maxlen=_KEPT_IDS) for prefix, each in known.items()}
        self._draw = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._session = requests.Session()
        self.outcome = Outcome(seed)
        self._is_over = False

    def run(self, wanted: int) -> None:
        """Send so many requests, to all operations in turn."""
        began = time.monotonic()
        for number, operation in enumerate(self._list_operations()):
            left = wanted - self.outcome.sent
            if left <= 0:
                break
            self._call(operation, number, min(EXAMPLES, left))
        self._check_token()
        self.outcome.seconds = time.monotonic() - began

    def _list_operations(self) -> Iterator[AnyOperation]:
        """Yield the operations in random order, again and again."""
        found = list(_read_schema())
        while True:
            self._draw.shuffle(found)
            yield from found

    def _call(self, operation: AnyOperation, number: int, examples: int) -> None:
        left = examples

        @seed(self._seed * 1_000_003 + number)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def send(case: AnyCase) -> None:
            nonlocal left
            # Hypothesis may try some more, e.g. the smallest ones again.
            if left > 0:
                left -= 1
                self._send(case)

        send()

    def _send(self, case: AnyCase) -> None:
        has_token = self._draw.random() >= _WITHOUT_TOKEN
        if self._draw.random() < _KNOWN:
            self._name_known(case)
        headers = {"Authorization": self._token_header} if has_token else {}
        if has_token:
            # A drawn session's cookie would have it refused as another site's.
            case.cookies = {}
        self.outcome.sent += 1
        self.outcome.without_token += not has_token
        try:
            answer = case.call(base_url=self._url, session=self._session, headers=headers, timeout=_TIMEOUT_S)
        except requests.Timeout:
            self._note("answers", case, f"nothing within {_TIMEOUT_S:.0f} s")
            return
        except (requests.RequestException, ValueError) as error:
            # What no client can send, such as a header with a line break, is not sent.
            self._check_alive(case, error)
            return
        self.outcome.statuses[answer.status_code] += 1
        text = answer.content[:_SHOWN_CHARS].decode("utf-8", "replace")
        told = f"{answer.status_code} {text}"
        if answer.status_code >= 500:
            self._note("no 5xx", case, told)
        if not has_token and self._is_guarded(case) and not _is_refused(answer.status_code, answer.content):
            self._note("no answer without a token", case, told)
        # Nobody is logged in by a cookie of an earlier answer.
        self._session.cookies.clear()
        if answer.status_code < 300:
            self._keep_ids(answer.content)

    def _is_guarded(self, case: AnyCase) -> bool:
        path = case.operation.path
        return path.startswith((API_PREFIX, OPENAI_PREFIX)) and path not in _OPEN

    def _name_known(self, case: AnyCase) -> None:
        """Let a request name things that exist, in its path, query and body."""
        body = case.body if isinstance(case.body, dict) else {}
        # What a person asks of a model there would have to load it first.
        fields = body if not case.operation.path.startswith(OPENAI_PREFIX) else {}
        for values in (case.path_parameters or {}, case.query or {}, fields):
            for name in values:
                pool = self._known.get(_KINDS.get(name, ""))
                if pool:
                    values[name] = self._draw.choice(pool)

    def _keep_ids(self, content: bytes) -> None:
        for match in _ID.finditer(content[:100_000].decode("utf-8", "replace")):
            pool = self._known.setdefault(match.group(1), deque(maxlen=_KEPT_IDS))
            if match.group(0) not in pool:
                pool.append(match.group(0))

    def _check_alive(self, case: AnyCase, error: Exception) -> None:
        try:
            status = self._session.get(f"{self._url}/healthz", timeout=_TIMEOUT_S).status_code
        except requests.RequestException as problem:
            self._note("answers", case, f"{error}; then: {problem}")
            return
        if status != 200:
            self._note("answers", case, f"{error}; then: {status}")

    def _check_token(self) -> None:
        """Check that the token is good to the end: without it, everything would be refused."""
        headers = {"Authorization": self._token_header}
        answer = self._session.get(f"{self._url}{API_PREFIX}/jobs", headers=headers, timeout=_TIMEOUT_S)
        if answer.status_code != 200:
            found = Finding("the token is good to the end", "GET /jobs", str(answer.status_code))
            self.outcome.findings.append(found)

    def _note(self, rule: str, case: AnyCase, answer: str) -> None:
        path, query = case.formatted_path, dict(case.query or {})
        asked = f"{case.method} {path} {query} {case.body!r}"[:_SHOWN_CHARS]
        self.outcome.findings.append(Finding(rule, asked, answer))


@cache
def _read_schema() -> tuple[AnyOperation, ...]:
    schema = schemathesis.openapi.from_dict(build_schema())
    every = map(operator.methodcaller("ok"), schema.get_all_operations())
    # The event stream of a job has no end.
    return tuple(each for each in every if not each.path.endswith("/events"))


def _is_refused(status: int, content: bytes) -> bool:
    """Return whether a stranger was told nothing."""
    return status in _REFUSED or (status == 422 and any(code in content for code in _MALFORMED))
