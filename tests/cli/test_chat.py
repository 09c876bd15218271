"""`trellis chat` and `trellis endpoints`: what is served, and what is said as it comes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from trellis_cli import chat, endpoints
from trellis_cli.client import ApiClient
from trellis_cli.endpoints import path_of, wait_until_ready
from trellis_cli.errors import Problem

READY = {"id": "ep_1", "name": "tiny", "state": "ready", "failure": None, "preempted_by": None}


class Platform(ApiClient):
    """A client of a platform with one model and one job."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.states = ["starting", "ready"]
        self.failure: dict[str, Any] | None = None
        self.said = [
            '{"choices": [{"delta": {"content": "4"}}]}',
            '{"choices": [{"delta": {"content": "2"}}]}',
            "[DONE]",
        ]

    def pages(self, path: str, **_: Any) -> Iterator[Any]:
        yield {"id": "mdl_1", "name": "tiny"} if path == "/models" else {"id": "job_1", "name": "night"}

    def get(self, _path: str, **_: Any) -> Any:
        return {**READY, "state": self.states.pop(0), "failure": self.failure}

    def post(self, path: str, body: Any = None) -> Any:
        self.asked.append((path, body))
        return READY

    @contextmanager
    def events(self, address: str, body: Any) -> Iterator[Iterator[str]]:
        self.asked.append((address, {**body, "messages": list(body["messages"])}))
        yield iter(self.said)


def test_models_and_checkpoints_are_named_alike() -> None:
    assert path_of(Platform(), "tiny") == "/models/mdl_1"
    assert path_of(Platform(), "mdl_9") == "/models/mdl_9"
    assert path_of(Platform(), "night:200") == "/jobs/job_1/checkpoints/200"
    with pytest.raises(Problem, match="no model named 'other'"):
        path_of(Platform(), "other")


def test_options_are_changed_without_a_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    class Changing(Platform):
        def request(self, method: str, path: str, **options: Any) -> Any:
            asked.append((method, path, options["json"]))
            return {**READY, "preemptible": False, "idle_timeout_s": 600.0}

    monkeypatch.setattr(endpoints, "connect", Changing)

    endpoints.edit("ep_1", preemptible=False)

    assert asked == [("PATCH", "/endpoints/ep_1", {"preemptible": False})]
    assert capsys.readouterr().out == "ep_1  tiny  kept loaded, stops after 600 s idle\n"
    with pytest.raises(Problem, match="nothing to change"):
        endpoints.edit("ep_1")


def test_the_list_tells_what_each_engine_is_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over the last minute; blank where nothing was measured, as for adapters in another's engine."""
    load = {"generated_tokens_per_s": 41.53, "waiting": 3, "first_token_mean_s": 0.312}
    listed = {**READY, "state_since": None, "last_used_at": None, "max_model_len": 2048}

    class Listing(Platform):
        def pages(self, path: str, **_: Any) -> Iterator[Any]:
            assert path == "/endpoints"
            yield {**listed, "load": load}
            yield {**listed, "id": "ep_2", "load": {**load, "waiting": 0, "first_token_mean_s": None}}
            yield {**listed, "id": "ep_3", "load": None}

    monkeypatch.setattr(endpoints, "connect", Listing)

    endpoints.list_endpoints()

    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == [
        *("id", "name", "state", "for", "used", "tokens/s", "waiting", "first", "token", "context", "reason")
    ]
    assert [row.split() for row in rows] == [
        ["ep_1", "tiny", "ready", "41.5", "3", "0.31", "s", "2048"],
        ["ep_2", "tiny", "ready", "41.5", "0", "2048"],
        ["ep_3", "tiny", "ready", "2048"],
    ]


def test_a_start_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis_cli.endpoints._POLL_S", 0)
    platform = Platform()
    platform.states, platform.failure = (
        ["failed"],
        {"reason": "no config.json", "hint": {"en": "look", "zh": ""}},
    )

    with pytest.raises(Problem, match=r"tiny is failed: no config\.json"):
        wait_until_ready(platform, {**READY, "state": "starting"})


@pytest.mark.parametrize(("successor", "said"), [
    ({"id": "job_1", "name": None}, "it made room for job job_1"),
    ({"id": "ep_2", "name": "third"}, "it made room for endpoint third"),
])  # fmt: skip
def test_one_that_makes_room_meanwhile_says_for_what(successor: dict[str, Any], said: str) -> None:
    platform = Platform()
    stopped = {**READY, "state": "stopped", "preempted_by": successor}

    with pytest.raises(Problem, match=f"tiny is stopped: {said}"):
        wait_until_ready(platform, stopped)


def test_a_conversation_goes_on_with_what_was_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    platform, lines = Platform(), iter(["6*7=", "and again?", ""])
    monkeypatch.setattr(chat, "connect", lambda: platform)
    monkeypatch.setattr("builtins.input", lambda _prompt: next(lines))

    chat.chat("tiny", system="Be short.", temperature=0.0)

    assert capsys.readouterr().out == "42\n42\n"
    (_, first), (address, second) = platform.asked[1:]
    assert (address, second["temperature"], second["stream"]) == ("/v1/chat/completions", 0.0, True)
    assert [turn["role"] for turn in first["messages"]] == ["system", "user"]
    assert [turn["content"] for turn in second["messages"]] == ["Be short.", "6*7=", "42", "and again?"]


def test_an_error_in_the_middle_of_an_answer_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = Platform()
    platform.said = ['{"error": {"message": "The engine ended."}}']
    monkeypatch.setattr(chat, "connect", lambda: platform)

    with pytest.raises(Problem, match="The engine ended"):
        chat.chat("tiny", prompt="1+1=")
