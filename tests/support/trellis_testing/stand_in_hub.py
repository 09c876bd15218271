"""A hub that speaks what the hub client needs of its API: one repository, at one commit."""

import hashlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class StandInHub:
    """Serves one repository, ``team/tiny`` unless told otherwise, at one commit that is also called main."""

    def __init__(
        self,
        files: dict[str, bytes],
        *,
        repository: str = "team/tiny",
        kind: Literal["models", "datasets"] = "models",
        commit: str = COMMIT,
    ) -> None:
        self.files = files
        self.required_token: str | None = None
        self.is_gated = False
        self.is_broken = False
        self.downloaded: list[str] = []
        self.before_download: Callable[[], None] = lambda: None
        self._repository, self._commit = repository, commit
        self._api = f"/api/{kind}/{repository}"
        self._files = f"/{repository}/" if kind == "models" else f"/{kind}/{repository}/"
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self, has_body=True)

            def do_HEAD(self) -> None:
                hub.answer(self, has_body=False)

            def log_message(self, *_arguments: Any) -> None:
                """Tests are quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, *, has_body: bool) -> None:
        path = unquote(urlsplit(request.path).path)
        if self.is_broken:
            return self._send(request, 500, b"", {}, has_body)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.is_gated:
            return self._refuse(request, 403, "GatedRepo", has_body)
        if self.required_token and token != self.required_token:
            return self._refuse(request, 401, "RepoNotFound", has_body)
        if not path.startswith((self._api, self._files)):
            return self._refuse(request, 404, "RepoNotFound", has_body)
        revision, _, name = path.removeprefix(f"{self._files}resolve/").partition("/")
        if path.startswith("/api/"):
            revision = path.split("/")[6] if "/revision/" in path or "/tree/" in path else "main"
        if revision not in {"main", self._commit}:
            return self._refuse(request, 404, "RevisionNotFound", has_body)
        if path.startswith("/api/"):
            return self._describe(request, is_tree="/tree/" in path, has_body=has_body)
        return self._serve_file(request, name, has_body)

    def _describe(self, request: BaseHTTPRequestHandler, *, is_tree: bool, has_body: bool) -> None:
        tree = [
            {"type": "file", "path": name, "size": len(data), "oid": self._etag(data)}
            for name, data in self.files.items()
        ]
        siblings = [{"rfilename": name, "size": len(data)} for name, data in self.files.items()]
        facts = {"id": self._repository, "sha": self._commit, "private": False, "tags": []}
        body = json.dumps(tree if is_tree else {**facts, "siblings": siblings}).encode()
        self._send(request, 200, body, {"Content-Type": "application/json"}, has_body)

    def _serve_file(self, request: BaseHTTPRequestHandler, name: str, has_body: bool) -> None:
        if name not in self.files:
            return self._refuse(request, 404, "EntryNotFound", has_body)
        data = self.files[name]
        if has_body:
            self.before_download()
            self.downloaded.append(name)
        headers = {"ETag": f'"{self._etag(data)}"', "X-Repo-Commit": self._commit}
        return self._send(request, 200, data, headers, has_body)

    def _refuse(self, request: BaseHTTPRequestHandler, status: int, code: str, has_body: bool) -> None:
        self._send(request, status, b"", {"X-Error-Code": code, "X-Error-Message": code}, has_body)

    @staticmethod
    def _send(
        request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str], has_body: bool
    ) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        if has_body:
            request.wfile.write(body)

    @staticmethod
    def _etag(data: bytes) -> str:
        return hashlib.sha1(data, usedforsecurity=False).hexdigest()
