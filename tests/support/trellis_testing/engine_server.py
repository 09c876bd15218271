"""A small server that speaks vLLM's part of the protocol: answers, streams, refuses, dies in the middle."""

import json
import struct
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


class EngineServer:
    """Answers on loopback whoever has its key, and remembers what it was asked."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.request_ids: list[str | None] = []
        #: What a request is refused with: status and error.
        self.refusal: tuple[int, dict[str, Any]] | None = None
        #: Pieces of a stream; after ``dies_after`` of them the connection breaks.
        self.pieces = ["Hel", "lo", "!"]
        self.dies_after: int | None = None
        #: The call of a function that ``/v1/responses`` makes in place of a text: its name and arguments.
        self.call: dict[str, str] | None = None
        #: Of the prompt that every chat becomes at ``/tokenize``.
        self.vocabulary = {1: "<|im_start|>", 2: "user\n", 3: "1+1=", 4: "<|im_end|>", 5: "\n"}
        self.tokens = [1, 2, 3, 4, 5]
        #: Said in the place of the last piece, or of the whole, as vLLM says that its engine has died.
        self.last_words: str | None = None
        #: Set to let go on what waits: a whole answer, or a stream behind its first piece.
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        #: Set when a client's connection was found closed.
        self.was_left = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))

    @property
    def port(self) -> int:
        return self._server.server_port

    @contextmanager
    def running(self) -> Iterator["EngineServer"]:
        """Answer while the context lasts."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.may_go_on.set()
            self._server.shutdown()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that have disconnected."""


def _list_deltas(engine: EngineServer) -> list[dict[str, Any]]:
    if engine.call is None:
        return [{"type": "response.output_text.delta", "delta": piece} for piece in engine.pieces]
    arguments, kind = engine.call["arguments"], "response.function_call_arguments"
    of_it = {"item_id": "fc_1", "output_index": 0}
    return [
        {"type": f"{kind}.delta", "delta": arguments, **of_it},
        {"type": f"{kind}.done", "arguments": arguments, "name": engine.call["name"], **of_it},
    ]


def _handler_of(engine: EngineServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.headers["authorization"] != f"Bearer {engine.key}":
                self._send(401, {"error": {"message": "no key", "type": "x", "param": None, "code": 401}})
                return
            engine.bodies.append(body)
            engine.request_ids.append(self.headers["x-request-id"])
            engine.paths.append(self.path)
            if engine.refusal is not None:
                status, error = engine.refusal
                self._send(status, {"error": error})
            elif self.path.endswith("/responses"):
                self._respond(body)
            elif self.path.endswith("/embeddings"):
                self._embed(body)
            elif self.path == "/tokenize":
                self._send(200, {"count": len(engine.tokens), "max_model_len": 64, "tokens": engine.tokens})
            elif self.path == "/detokenize":
                self._send(200, {"prompt": "".join(engine.vocabulary[token] for token in body["tokens"])})
            elif body.get("stream"):
                self._stream(body)
            else:
                engine.may_go_on.wait(30)
                if engine.last_words is not None:
                    self._send(500, {"error": {"message": engine.last_words, "param": None, "code": 500}})
                    return
                text = "".join(engine.pieces)
                choice = {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
                self._send(200, {"model": body["model"], "choices": [choice], "usage": USAGE})

        def do_GET(self) -> None:
            """Describe the tokenizer as vLLM does for Transformers, including the added tokens."""
            engine.paths.append(self.path)
            added = {str(token): text for token, text in engine.vocabulary.items() if text.startswith("<|")}
            self._send(200, {"tokenizer_class": "X", "added_tokens_decoder": added})

        def _respond(self, body: dict[str, Any]) -> None:
            """Answer ``/v1/responses`` as vLLM does: the stream's events have names, and no ``[DONE]``."""
            text = "".join(engine.pieces)
            part = {"type": "output_text", "text": text, "annotations": []}
            message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
            output: dict[str, Any] = {**message, "content": [part]}
            if engine.call is not None:
                call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "namespace": None}
                output = {**call, "status": "completed", **engine.call}
            response = {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "model": body["model"],
                "status": "completed",
                "output": [output],
                "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
            }
            if not body.get("stream"):
                self._send(200, response)
                return
            events: list[dict[str, Any]] = [
                {"type": "response.created", "response": {**response, "output": [], "usage": None}},
                *_list_deltas(engine),
                {"type": "response.completed", "response": response},
            ]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for event in events:
                # Without spaces, as vLLM writes it.
                data = json.dumps(event, separators=(",", ":"))
                self._write(f"event: {event['type']}\ndata: {data}\n\n")
            self.wfile.write(b"0\r\n\r\n")

        def _embed(self, body: dict[str, Any]) -> None:
            """Return a vector for each input: its number, twice."""
            inputs = body["input"]
            is_one = isinstance(inputs, str) or isinstance(inputs[0], int)
            count = 1 if is_one else len(inputs)
            vectors: list[Any] = [[float(number), float(number)] for number in range(count)]
            if body.get("encoding_format") == "base64":
                vectors = [b64encode(struct.pack("<2f", *vector)).decode() for vector in vectors]
            data = [
                {"object": "embedding", "index": number, "embedding": vector}
                for number, vector in enumerate(vectors)
            ]
            usage = {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}
            self._send(200, {"object": "list", "model": body["model"], "data": data, "usage": usage})

        def _send(self, status: int, content: dict[str, Any]) -> None:
            sent = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def _stream(self, body: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            try:
                for number, piece in enumerate(engine.pieces):
                    if number == engine.dies_after:
                        self.close_connection = True
                        self.connection.close()
                        return
                    self._chunk(
                        {"model": body["model"], "choices": [{"index": 0, "delta": {"content": piece}}]}
                    )
                    self._wait_for_the_rest()
                if engine.last_words is not None:
                    self._write(f"data: {json.dumps({'error': {'message': engine.last_words}})}\n\n")
                if body.get("stream_options", {}).get("include_usage"):
                    self._chunk({"model": body["model"], "choices": [], "usage": USAGE})
                self._write("data: [DONE]\n\n")
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                engine.was_left.set()

        def _wait_for_the_rest(self) -> None:
            while not engine.may_go_on.wait(0.1):
                self._write(": still here\n\n")

        def _chunk(self, event: dict[str, Any]) -> None:
            self._write(f"data: {json.dumps(event, separators=(',', ':'))}\n\n")

        def _write(self, text: str) -> None:
            data = text.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    return Handler
