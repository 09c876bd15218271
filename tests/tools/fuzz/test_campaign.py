"""A campaign finds what fails, what is answered to strangers and what does not answer, and repeats itself."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from trellis_tools.fuzz import campaign as campaigning
from trellis_tools.fuzz.campaign import Campaign, Outcome

TOKEN = "Bearer secret"
Answer = Callable[[str, bool], int]


class Server:
    """Answers every request with the status that it is given for path and token."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, str, bool]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One packet an answer: a second would wait for the first one's acknowledgement, 40 ms.
            wbufsize = -1

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path, has_token = self.path, self.headers.get("Authorization") == TOKEN
                outer.asked.append((self.command, path, has_token))
                body = b'{"id": "job_aaaaaaaaaaaa"}'
                self.send_response(200 if path == "/api/v1/jobs" and has_token else answer(path, has_token))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


#: Enough of the API for its rules: strategies of all operations take seconds a campaign to build.
OPERATIONS = {
    ("GET", "/api/v1/jobs"),
    ("GET", "/api/v1/jobs/{job_id}"),
    ("POST", "/api/v1/auth/login"),
    ("GET", "/healthz"),
    ("DELETE", "/api/v1/models/{model_id}"),
}


@pytest.fixture(autouse=True)
def _few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(each for each in campaigning._read_schema() if (each.method.upper(), each.path) in OPERATIONS)
    assert len(few) == len(OPERATIONS)
    monkeypatch.setattr(campaigning, "_read_schema", lambda: few)


@pytest.fixture
def run() -> Iterator[Callable[..., tuple[Outcome, Server]]]:
    servers: list[Server] = []

    def campaign(answer: Answer, wanted: int = 30, seed: int = 3) -> tuple[Outcome, Server]:
        servers.append(server := Server(answer))
        campaign = Campaign(server.url, TOKEN, {"job": "job_bbbbbbbbbbbb"}, seed)
        campaign.run(wanted)
        return campaign.outcome, server

    yield campaign
    for server in servers:
        server.server.shutdown()
        server.server.server_close()


def guard(path: str, has_token: bool) -> int:
    is_open = not path.startswith(("/api/v1", "/v1")) or "/auth/log" in path
    return 404 if has_token or is_open else 401


def test_an_api_that_refuses_strangers_and_does_not_fail_passes(
    run: Callable[..., tuple[Outcome, Server]],
) -> None:
    outcome, server = run(guard)

    assert outcome.findings == []
    assert (outcome.sent, sum(outcome.statuses.values())) == (30, 30)
    assert 0 < outcome.without_token < 30
    assert {has_token for _, _, has_token in server.asked} == {True, False}


def test_failures_and_answers_to_strangers_are_found(run: Callable[..., tuple[Outcome, Server]]) -> None:
    failing, _ = run(lambda path, has_token: 500 if has_token else 401)
    open_to_all, _ = run(lambda path, has_token: 200)

    assert {each.rule for each in failing.findings} == {"no 5xx"}
    assert len(failing.findings) == failing.statuses[500]
    assert {each.rule for each in open_to_all.findings} == {"no answer without a token"}


def test_a_refused_cookie_and_a_malformed_text_are_no_answers() -> None:
    assert campaigning._is_refused(403, b"{}")
    assert campaigning._is_refused(422, b'{"details": [{"code": "string_nul"}]}')
    assert not campaigning._is_refused(422, b'{"details": [{"code": "missing"}]}')
    assert not campaigning._is_refused(404, b"{}")


def test_the_same_seed_sends_the_same_requests(run: Callable[..., tuple[Outcome, Server]]) -> None:
    first, again, other = run(guard)[1], run(guard)[1], run(guard, seed=4)[1]

    assert first.asked == again.asked
    assert first.asked != other.asked


def test_requests_name_what_earlier_answers_held(run: Callable[..., tuple[Outcome, Server]]) -> None:
    _, server = run(lambda path, has_token: 200 if has_token else 401, wanted=150)

    paths = " ".join(path for _, path, _ in server.asked)
    assert "job_bbbbbbbbbbbb" in paths
    assert "job_aaaaaaaaaaaa" in paths
