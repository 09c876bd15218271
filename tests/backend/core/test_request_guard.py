"""Texts that UTF-8 cannot write, and bodies that are too large or too slow, get an answer of their own."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from trellis_api.core.errors import install_error_handlers
from trellis_api.core.request_guard import RequestGuard, stream_body
from trellis_api.core.settings import REPOSITORY_ROOT, Settings
from trellis_api.main import API_PREFIX

HALF = r"\ud800"
JSON = {"content-type": "application/json"}


def list_operations() -> Iterator[tuple[str, str, bool]]:
    """Method and path of every operation, and whether it takes JSON."""
    schema = json.loads((REPOSITORY_ROOT / "frontend" / "openapi.json").read_text())
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if method != "head":  # its answer has no body
                content = operation.get("requestBody", {}).get("content", {})
                yield method, path, "application/json" in content


def test_half_a_character_is_refused_by_every_endpoint(client: TestClient) -> None:
    for method, path, takes_json in list_operations():
        filled = path.replace("{", "x").replace("}", "")

        in_query = client.request(method, f"{filled}?some=%ED%A0%80")

        status = 400 if path.startswith("/v1/") else 422  # OpenAI's API knows no 422
        assert (in_query.status_code, _field(in_query)) == (status, "query.some"), path
        if "{" in path:
            in_path = client.request(method, path.partition("{")[0] + "%ED%A0%80")
            assert (in_path.status_code, _field(in_path)) == (status, "path"), path
        if takes_json:
            body = '{"some": [{"name": "a ' + HALF + '"}]}'
            in_body = client.request(method, filled, content=body, headers=JSON)
            assert (in_body.status_code, _field(in_body)) == (status, "some.0.name"), path


def _field(response: httpx2.Response) -> str:
    if "details" not in response.json():  # the form of /v1
        return str(response.json()["error"]["param"])
    details = response.json()["details"]
    assert details[0]["code"] == "string_unicode"
    return str(details[0]["field"])


@pytest.mark.parametrize(
    "url",
    [
        f"s3://{HALF}/x",
        f"s3://[{HALF}",
        "s3://[x/y",
        "s3://[::1",
        r"s3://a\u2100b/x",
        "s3:///x",
        "s3://a b/x",
    ],
)
def test_an_address_with_a_host_that_is_none_is_malformed(client: TestClient, url: str) -> None:
    body = f'{{"source": {{"kind": "s3", "url": "{url}"}}}}'

    response = client.post(f"{API_PREFIX}/datasets/imports", content=body, headers=JSON)

    assert response.status_code == 422, response.text
    assert "url" in response.json()["details"][0]["field"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"name": "\xff"}', "body"),
        (b'{"\\ud800": 1}', "body"),
        (b'{"a": {"\\udfff": 1}}', "a"),
        (b'"\\ud800"', "body"),
    ],
)
def test_the_field_is_named(client: TestClient, body: bytes, field: str) -> None:
    response = client.post(f"{API_PREFIX}/datasets/imports", content=body, headers=JSON)

    assert (response.status_code, _field(response)) == (422, field)


def test_pairs_of_surrogates_are_ordinary_characters(client: TestClient) -> None:
    body = r'{"name": "\ud83c\udf31", "source": {"kind": "s3", "url": "s3://bucket/\ud83c\udf31"}}'

    response = client.post(f"{API_PREFIX}/datasets/imports", content=body, headers=JSON)

    assert response.status_code == 201, response.text
    assert response.json()["name"] == "🌱"


def test_a_long_key_over_many_items_costs_no_more_than_its_body() -> None:
    body = b'{"' + b"k" * 100_000 + b'": [' + b"0," * 1000 + rb'0], "x": "\ud83c\udf31"}'

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    app = make_app(limit_bytes=10**6)
    tracemalloc.start()
    status, _ = asyncio.run(call(app, "json", receive))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert status == 422, "an emoji is no number"
    assert peak_bytes < 20 * len(body), "places were written out for every item"


def make_app(*, patience_s: float = 9.0, limit_bytes: int = 10_000) -> RequestGuard:
    """Two routes, one that reads JSON and one that reads a stream."""
    app = FastAPI()
    install_error_handlers(app)

    @app.post("/json")
    def read_json(body: dict[str, int]) -> dict[str, int]:
        return body

    @app.post("/stream")
    async def read_stream(request: Request) -> int:
        return sum([len(chunk) async for chunk in stream_body(request)])

    return RequestGuard(
        app,
        Settings(max_request_bytes=limit_bytes, max_batch_bytes=limit_bytes),
        patience_s=patience_s,
    )


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_a_body_without_end_is_refused(kind: str, encoding: str) -> None:
    pieces = iter(range(100))

    async def receive() -> dict[str, Any]:
        next(pieces)
        return {"type": "http.request", "body": b" " * 1000, "more_body": True}

    status, answer = asyncio.run(call(make_app(), "json", receive, kind=kind, encoding=encoding))

    assert (status, answer["error"]) == (413, "too_large")
    assert next(pieces) == 11, "the limit is ten pieces"


def test_a_route_that_reads_the_stream_has_a_limit_of_its_own() -> None:
    pieces = iter([True] * 99 + [False])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b" " * 1000, "more_body": next(pieces)}

    assert asyncio.run(call(make_app(), "stream", receive)) == (200, 100_000)


def test_a_body_that_only_says_that_it_is_packed_is_looked_at() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b'{"' + HALF.encode() + b'": 1}', "more_body": False}

    status, answer = asyncio.run(call(make_app(), "json", receive, encoding="gzip"))

    assert (status, answer["details"][0]["code"]) == (422, "string_unicode")


@pytest.mark.parametrize("path", ["json", "stream"])
@pytest.mark.parametrize("pause_s", [0.02, 9.0], ids=["trickles", "stops"])
def test_a_body_that_does_not_come_is_not_waited_for(path: str, pause_s: float) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"{"
        for _ in range(100):
            await asyncio.sleep(pause_s)
            yield b" "

    messages = pieces()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": await anext(messages), "more_body": True}

    status, answer = asyncio.run(call(make_app(patience_s=0.2), path, receive))

    assert (status, answer["error"]) == (408, "body_too_slow")


async def call(
    app: RequestGuard, path: str, receive: Any, *, kind: str | None = None, encoding: str = "identity"
) -> Any:
    """Status and body of an answer, through plain ASGI."""
    kind = kind or ("application/json" if path == "json" else "application/octet-stream")
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    said = {"content-type": kind, "content-encoding": encoding, "transfer-encoding": "chunked"}
    headers = [(name.encode(), value.encode()) for name, value in said.items()]
    scope = {
        "type": "http", "method": "POST", "path": f"/{path}", "raw_path": f"/{path}".encode(),
        "query_string": b"", "headers": headers, "http_version": "1.1",
        "scheme": "http", "server": ("test", 80), "client": ("test", 1), "root_path": "",
    }  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))
