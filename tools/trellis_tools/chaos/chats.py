"""A steady small stream of chat requests to an endpoint, each with how it ended."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
from trellis_cli.client import ApiClient

#: Seconds for which a request may wait for its endpoint, and for the engine: settings of the platform.
WAIT_S, ANSWER_S = 20, 60
#: Within which every request ends: the two together, with a margin for a busy machine.
ENDS_WITHIN_S = WAIT_S + ANSWER_S + 10.0
#: Requests under way at a time: one is answered whole, one token by token.
_KINDS = (False, True)
_PAUSE_S = 1.0
#: Of the client. Who waits for so long has seen the platform break its word.
_GIVES_UP_S = 2 * ENDS_WITHIN_S
_ANSWERED, _NO_ANSWER, _CUT_OFF = "answered", "no answer", "cut off"
_BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "12+30="}], "max_tokens": 16}


@dataclass(frozen=True)
class Chat:
    """One request. Times are Unix seconds."""

    begun_at: float
    ended_at: float
    #: "answered", a status with the code of an error, "no answer", or "cut off" in the middle.
    outcome: str

    @property
    def is_answered(self) -> bool:
        """Whether the model's words came, to their end."""
        return self.outcome == _ANSWERED


class Chats:
    """Threads that ask a model again and again until they are told to stop."""

    def __init__(self, client: ApiClient, model: str) -> None:
        self._model = model
        self._http = httpx.Client(
            base_url=client.url, headers={"Authorization": client.token_header}, timeout=_GIVES_UP_S
        )
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._ended: list[Chat] = []
        self._threads = [
            threading.Thread(target=self._repeat, args=(is_stream,), name=f"chats-{is_stream}", daemon=True)
            for is_stream in _KINDS
        ]

    def start(self) -> None:
        """Begin to ask."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask no more, and wait for what was asked."""
        self._is_over.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_GIVES_UP_S)

    def list(self) -> list[Chat]:
        """List all requests that have ended."""
        with self._lock:
            return list(self._ended)

    def is_answered_since(self, moment: float) -> bool:
        """Return whether a request made after this moment was answered."""
        return any(chat.is_answered and chat.begun_at >= moment for chat in self.list())

    def ask(self, *, is_stream: bool) -> Chat:
        """Make one request."""
        begun_at = time.time()
        outcome = self._ask({**_BODY, "model": self._model, "stream": is_stream})
        return Chat(begun_at, time.time(), outcome)

    def _repeat(self, is_stream: bool) -> None:
        while not self._is_over.is_set():
            chat = self.ask(is_stream=is_stream)
            with self._lock:
                self._ended.append(chat)
            self._is_over.wait(_PAUSE_S)

    def _ask(self, body: dict[str, Any]) -> str:
        has_begun = False
        try:
            with self._http.stream("POST", "/v1/chat/completions", json=body) as answer:
                if answer.is_error:
                    return f"{answer.status_code} {_read_code(answer.read())}"
                has_begun = True
                return _read_end(answer.iter_lines()) if body["stream"] else _read_whole(answer.read())
        except httpx.HTTPError:
            return _CUT_OFF if has_begun else _NO_ANSWER


def _read_whole(content: bytes) -> str:
    try:
        message = json.loads(content)["choices"][0]["message"]
    except (ValueError, KeyError, IndexError):
        return _CUT_OFF
    return _ANSWERED if message["content"] is not None else _CUT_OFF


def _read_end(lines: Iterator[str]) -> str:
    """Return how a stream ended: with its end mark, with an error event, or without either."""
    for line in lines:
        if line == "data: [DONE]":
            return _ANSWERED
        if line.startswith('data: {"error"'):
            return f"200 {_read_code(line.removeprefix('data:').encode())}"
    return _CUT_OFF


def _read_code(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return "without a code"
