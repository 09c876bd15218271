"""A stand-in of W&B's API: as much as the real package asks of it to log a run and to go on with it."""

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ENTITY = "team"


@dataclass
class WandbRun:
    """What the server has of a run."""

    #: As the package gave it: groupName, displayName, config, tags ...
    asked: dict[str, Any] = field(default_factory=dict)
    #: Lines of the history.
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class WandbServer:
    """The server's address, its runs by id, and the keys that requests came with."""

    url: str = ""
    runs: dict[str, WandbRun] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)

    def answer(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Answer a GraphQL request."""
        if "upsertBucket" in query:
            run = self.runs.setdefault(variables["name"], WandbRun())
            run.asked |= {name: value for name, value in variables.items() if value is not None}
            return {"upsertBucket": {"bucket": self._bucket(variables["name"], run), "inserted": True}}
        if "createRunFiles" in query:
            return {"createRunFiles": {"runID": "a", "uploadHeaders": [], "files": []}}
        run_found = self.runs.get(str(variables.get("name")))
        if "bucket(" in query and run_found is not None:
            return {"model": {**_project(run_found), "bucket": self._bucket(variables["name"], run_found)}}
        return {"model": None}

    def take(self, run_id: str, files: dict[str, Any]) -> None:
        """Store the lines of a run's files."""
        lines = files.get("wandb-history.jsonl", {}).get("content", [])
        self.runs[run_id].history += [json.loads(line) for line in lines]

    def _bucket(self, name: str, run: WandbRun) -> dict[str, Any]:
        tail = [json.dumps(line) for line in run.history[-1:]]
        return {
            "id": name, "name": name, "displayName": run.asked.get("displayName"), "description": "",
            "config": run.asked.get("config", "{}"), "sweepName": None, "tags": run.asked.get("tags", []),
            "historyLineCount": len(run.history), "logLineCount": 0, "eventsLineCount": 0, "notes": None,
            "historyTail": json.dumps(tail), "eventsTail": "[]", "wandbConfig": '{"t": 1}',
            "summaryMetrics": json.dumps(run.history[-1] if run.history else {}), "project": _project(run),
        }  # fmt: skip


def _project(run: WandbRun) -> dict[str, Any]:
    entity = {"id": "e", "name": run.asked.get("entity", ENTITY)}
    return {"id": "p", "name": run.asked.get("project"), "entity": entity}


@contextmanager
def serve_wandb() -> Iterator[WandbServer]:
    """Run a W&B server on its own port."""
    state = WandbServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Content-Encoding") == "gzip":
                raw = gzip.decompress(raw)
            scheme, _, secret = self.headers.get("Authorization", "").partition(" ")
            if scheme == "Basic":
                state.keys.add(base64.b64decode(secret).decode().partition(":")[2])
            parts = self.path.strip("/").split("/")
            if parts == ["graphql"]:
                body = json.loads(raw)
                self._reply({"data": state.answer(body["query"], body.get("variables") or {})})
            elif parts[0] == "files":
                state.take(parts[3], json.loads(raw).get("files", {}))
                self._reply({"exitcode": None, "limits": {}})
            else:
                self._reply({})  # the package's own figures

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def _reply(self, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
