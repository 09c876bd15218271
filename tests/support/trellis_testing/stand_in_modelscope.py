"""A server that speaks what is used of ModelScope's HTTP API: a repository's files, and pushes."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REPOSITORY = "team/tiny"
#: Of the repository as a dataset, which its files are listed under.
DATASET_NUMBER = 7


class StandInModelScope:
    """Serves ``team/tiny`` on one branch, as a model and as a dataset."""

    def __init__(self, files: dict[str, bytes] | None) -> None:
        #: None: there is no repository yet.
        self.files = files
        self.branch = "master"
        self.required_token: str | None = None
        #: A download ends after so many bytes, once.
        self.breaks_after: int | None = None
        #: What a download gives in place of a file.
        self.forged: dict[str, bytes] = {}
        #: Files that are listed without a SHA-256.
        self.unhashed: set[str] = set()
        #: What the listing answers, where it is not the files.
        self.answers: bytes | None = None
        self.encodings: list[str | None] = []
        self.ranges: list[str | None] = []
        self.downloaded: list[str] = []
        self.created: list[dict[str, Any]] = []
        self.messages: list[str] = []
        #: Content of large files by their SHA-256, committed or not.
        self.large: dict[str, bytes] = {}
        self.stored: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

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

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        kind = "datasets" if parts.path.startswith("/api/v1/datasets/") else "models"
        base = f"/api/v1/{kind}/{REPOSITORY}"
        listed = (
            f"/api/v1/datasets/{DATASET_NUMBER}/repo/tree" if kind == "datasets" else f"{base}/repo/files"
        )
        if not self._may(request):
            send(request, 401, {"Code": 401, "Message": "who are you"})
        elif (
            self.files is None
            or not parts.path.startswith((base, listed))
            or asked.get("Revision", self.branch) != self.branch
        ):
            # Some of its errors are a 200 with a code.
            send(request, 404, {"Code": 404, "Message": "not found"})
        elif parts.path == listed:
            size = int(asked.get("PageSize", 10**6))
            begins = (int(asked.get("PageNumber", 1)) - 1) * size
            files = self._list()[begins : begins + size]
            listing = json.dumps({"Code": 200, "Data": {"Files": files}}).encode()
            send_bytes(request, 200, listing if self.answers is None else self.answers)
        elif parts.path == f"{base}/repo":
            self._download(request, asked["FilePath"])
        else:
            send(request, 200, {"Code": 200, "Data": {"Name": "tiny", "Id": DATASET_NUMBER}})

    def _list(self) -> list[dict[str, Any]]:
        folder = {"Path": "sub", "Type": "tree", "Size": 0}
        return [folder] + [
            {
                "Path": name,
                "Type": "blob",
                "Size": len(data),
                "Sha256": "" if name in self.unhashed else hashlib.sha256(data).hexdigest(),
            }
            for name, data in (self.files or {}).items()
        ]

    def _download(self, request: BaseHTTPRequestHandler, name: str) -> None:
        self.downloaded.append(name)
        data = self.forged.get(name, (self.files or {})[name])
        wanted = request.headers.get("Range")
        self.ranges.append(wanted)
        self.encodings.append(request.headers.get("Accept-Encoding"))
        begins = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        request.send_response(206 if wanted else 200)
        request.send_header("Content-Length", str(len(data) - begins))
        request.end_headers()
        cut, self.breaks_after = self.breaks_after, None
        request.wfile.write(data[begins:cut])
        if cut is not None:
            request.close_connection = True

    def take(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        if not self._may(request):
            send(request, 403, {"Code": 403, "Message": "no"})
        elif request.path == "/api/v1/models":
            self.created.append(body)
            self.files = {}
            send(request, 200, {"Code": 200, "Data": {}})
        elif request.path.endswith("/info/lfs/objects/batch"):
            missing = [each for each in body["objects"] if each["oid"] not in self.large]
            objects = [
                {"oid": each["oid"], "actions": {"upload": {"href": f"{self.url}/store/{each['oid']}"}}}
                for each in missing
            ]
            send(request, 200, {"Code": 200, "Data": {"objects": objects}})
        else:
            self._commit(body)
            send(request, 200, {"Code": 200, "Success": True, "Data": {"CommitId": "c1"}})

    def _commit(self, body: dict[str, Any]) -> None:
        assert self.files is not None
        self.messages.append(body["commit_message"])
        for action in body["actions"]:
            is_large = action["type"] == "lfs"
            data = self.large[action["sha256"]] if is_large else base64.b64decode(action["content"])
            assert len(data) == action["size"]
            self.files[action["path"]] = data

    def store(self, request: BaseHTTPRequestHandler) -> None:
        data = request.rfile.read(int(request.headers["Content-Length"]))
        sha256 = request.path.rpartition("/")[2]
        assert hashlib.sha256(data).hexdigest() == sha256
        self.large[sha256] = data
        self.stored.append(sha256)
        send(request, 200, {})

    def _may(self, request: BaseHTTPRequestHandler) -> bool:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return self.required_token is None or token == self.required_token


def send(request: BaseHTTPRequestHandler, status: int, body: dict[str, Any]) -> None:
    send_bytes(request, status, json.dumps(body).encode())


def send_bytes(request: BaseHTTPRequestHandler, status: int, data: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)
