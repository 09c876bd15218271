"""A hub that speaks what the hub client needs of its API: one repository, at one commit.

It takes pushes, too: files are kept when they are committed, large ones after they were sent on their own.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from trellis_testing.card_rules import find_card_problems

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
        #: Where downloads are led to, and where large files are to be sent; here for none.
        self.redirects_to: str | None = None
        self.stores_at: str | None = None
        self.downloaded: list[str] = []
        self.before_download: Callable[[], None] = lambda: None
        #: Called with the name of a file that is about to be sent.
        self.before_file: Callable[[str], None] = lambda _name: None
        #: Called with the number of bytes when a large file arrives.
        self.before_upload: Callable[[int], None] = lambda _size: None
        #: Content of large files by their SHA-256, committed or not.
        self.large: dict[str, bytes] = {}
        #: Names of files in the order in which commits brought them; messages of commits.
        self.committed: list[str] = []
        self.messages: list[str] = []
        self.created: list[dict[str, Any]] = []
        self.branches = {"main"}
        self._repository, self._commit = repository, commit
        self._api = f"/api/{kind}/{repository}"
        self._files = f"/{repository}/" if kind == "models" else f"/{kind}/{repository}/"
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self, has_body=True)

            def do_HEAD(self) -> None:
                hub.answer(self, has_body=False)

            def do_POST(self) -> None:
                hub.take(self)

            def do_PUT(self) -> None:
                hub.store(self)

            def log_message(self, *_arguments: Any) -> None:
                """Keep tests quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

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

    def take(self, request: BaseHTTPRequestHandler) -> None:
        """Handle a step of a push: create a repository or branch, announce files, or commit."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(request.path).path)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.is_broken:
            return self._send(request, 500, b"", {}, has_body=True)
        if self.required_token and token != self.required_token:
            return self._refuse(request, 401, "Unauthorized", has_body=True)
        if path == "/api/validate-yaml":
            errors = [{"message": said} for said in find_card_problems(json.loads(body)["content"])]
            answer = {"errors": errors, "warnings": []}
            return self._send(request, 400 if errors else 200, json.dumps(answer).encode(), {}, has_body=True)
        steps = {
            "/api/repos/create": lambda: self._create(json.loads(body)),
            f"/{self._repository}.git/info/lfs/objects/batch": lambda: self._announce(json.loads(body)),
        }
        for prefix, step in (
            ("branch", lambda name: self.branches.add(name) or {}),
            ("preupload", lambda name: self._sort(name, json.loads(body))),
            ("commit", lambda name: self._commit_files(name, body)),
        ):
            if path.startswith(f"{self._api}/{prefix}/"):
                name = path.removeprefix(f"{self._api}/{prefix}/")
                steps[path] = lambda step=step, name=name: step(name)  # type: ignore[misc]
        done = steps[path]() if path in steps else None
        if done is None:
            return self._refuse(request, 404, "RepoNotFound", has_body=True)
        return self._send(request, 200, json.dumps(done).encode(), {}, has_body=True)

    def store(self, request: BaseHTTPRequestHandler) -> None:
        """Store a large file that is uploaded."""
        data = request.rfile.read(int(request.headers["Content-Length"]))
        self.before_upload(len(data))
        self.large[hashlib.sha256(data).hexdigest()] = data
        self._send(request, 200, b"", {}, has_body=True)

    def _create(self, wanted: dict[str, Any]) -> dict[str, Any] | None:
        if f"{wanted['organization']}/{wanted['name']}" != self._repository:
            return None
        self.created.append(wanted)
        return {"url": f"{self.url}/{self._repository}"}

    def _sort(self, branch: str, wanted: dict[str, Any]) -> dict[str, Any] | None:
        if branch not in self.branches:
            return None
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith((".safetensors", ".gguf")) else "regular",
                "shouldIgnore": False,
            }
            for file in wanted["files"]
        ]
        return {"files": files}

    def _announce(self, wanted: dict[str, Any]) -> dict[str, Any]:
        objects = []
        for each in wanted["objects"]:
            href = f"{self.stores_at or self.url}/store/{each['oid']}"
            known = {} if each["oid"] in self.large else {"upload": {"href": href}}
            objects.append({**each, **({"actions": known} if known else {})})
        return {"transfer": "basic", "objects": objects}

    def _commit_files(self, branch: str, body: bytes) -> dict[str, Any] | None:
        if branch not in self.branches:
            return None
        for line in map(json.loads, body.decode().splitlines()):
            value = line["value"]
            if line["key"] == "header":
                self.messages.append(value["summary"])
            elif line["key"] == "file":
                self.files[value["path"]] = base64.b64decode(value["content"])
                self.committed.append(value["path"])
            elif line["key"] == "lfsFile":
                self.files[value["path"]] = self.large[value["oid"]]
                self.committed.append(value["path"])
        return {
            "commitUrl": f"{self.url}/{self._repository}/commit/{self._commit}",
            "commitOid": self._commit,
        }

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
            self.before_file(name)
            self.downloaded.append(name)
        headers = {"ETag": f'"{self._etag(data)}"', "X-Repo-Commit": self._commit}
        if self.redirects_to:
            more = {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(len(data))}
            headers |= {**more, "Location": f"{self.redirects_to}/{name}"}
            return self._send(request, 302, b"", headers, has_body)
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
