"""Answers are compressed where the client takes that: files of the dashboard beforehand, JSON on its way."""

import gzip
import os
import zlib
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.testclient import TestClient
from trellis_api.core.content_encoding import JsonCompression, choose_encoding
from trellis_api.core.frontend import mount_frontend

SCRIPT = "console.log('a page')\n" * 100
ROWS = [{"step": step, "loss": step / 7} for step in range(200)]


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("br, gzip", "br"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0.1, gzip;q=0.8", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("GZIP ; Q=1.0", "gzip"),
        ("*", "br"),
        ("*;q=0.5, br;q=0", "gzip"),
        ("identity", None),
        ("gzip;q=0, br;q=0", None),
        ("gzip;q=much", None),
        ("", None),
    ],
)
def test_the_most_welcome_encoding_is_chosen(accepted: str, chosen: str | None) -> None:
    assert choose_encoding(accepted, ("br", "gzip")) == chosen


@pytest.fixture
def dashboard(tmp_path: Path) -> Path:
    """A build: a script in three forms (the Brotli one is only taken for such here), and the pages."""
    (tmp_path / "assets").mkdir()
    script = tmp_path / "assets" / "page-abc.js"
    script.write_text(SCRIPT)
    script.with_name("page-abc.js.br").write_bytes(b"brotli")
    script.with_name("page-abc.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    (tmp_path / "index.html").write_text("<p>dashboard</p>")
    (tmp_path / "api.html").write_text("<p>reference</p>")
    return tmp_path


@pytest.fixture
def client(dashboard: Path) -> TestClient:
    app = FastAPI()
    app.add_middleware(JsonCompression)
    app.add_api_route("/api/rows", lambda: JSONResponse(ROWS))
    app.add_api_route("/api/small", lambda: JSONResponse({"a": 1}))
    app.add_api_route("/api/file", lambda: JSONResponse(ROWS, headers={"Content-Disposition": "attachment"}))
    events = lambda: StreamingResponse(iter(["data: 1\n\n"] * 500), media_type="text/event-stream")  # noqa: E731
    app.add_api_route("/api/events", events)
    mount_frontend(app, dashboard, docs_path="/api/docs")
    client = TestClient(app)
    client.headers["Accept-Encoding"] = "gzip, br"
    return client


def read_raw(client: TestClient, path: str, **headers: str) -> tuple[bytes, dict[str, str]]:
    with client.stream("GET", path, headers=headers) as answer:
        return b"".join(answer.iter_raw()), dict(answer.headers)


def test_a_script_comes_in_the_smallest_form_that_the_browser_takes(client: TestClient) -> None:
    brotli, of_brotli = read_raw(client, "/assets/page-abc.js")
    packed, of_gzip = read_raw(client, "/assets/page-abc.js", **{"Accept-Encoding": "gzip"})
    plain, of_plain = read_raw(client, "/assets/page-abc.js", **{"Accept-Encoding": "identity"})

    assert (brotli, of_brotli["content-encoding"]) == (b"brotli", "br")
    assert (gzip.decompress(packed).decode(), of_gzip["content-encoding"]) == (SCRIPT, "gzip")
    assert plain.decode() == SCRIPT
    assert "content-encoding" not in of_plain
    answers = (of_brotli, of_gzip, of_plain)
    assert {each["vary"] for each in answers} == {"Accept-Encoding"}
    assert {each["content-type"].partition(";")[0] for each in answers} == {"text/javascript"}
    assert {each["cache-control"] for each in answers} == {"public, max-age=31536000, immutable"}
    assert len({each["etag"] for each in answers}) == 3


def test_a_form_that_the_browser_has_is_not_sent_again(client: TestClient) -> None:
    _, headers = read_raw(client, "/assets/page-abc.js")

    known = client.get("/assets/page-abc.js", headers={"If-None-Match": headers["etag"]})
    other = client.get(
        "/assets/page-abc.js", headers={"If-None-Match": headers["etag"], "Accept-Encoding": "gzip"}
    )

    assert (known.status_code, known.headers["vary"], known.headers["etag"]) == (
        304,
        "Accept-Encoding",
        headers["etag"],
    )
    assert other.status_code == 200


def test_forms_of_an_older_build_are_left_out(client: TestClient, dashboard: Path) -> None:
    for form in dashboard.glob("assets/*.js.*"):
        os.utime(form, (1, 1))

    content, headers = read_raw(client, "/assets/page-abc.js")

    assert content.decode() == SCRIPT
    assert "content-encoding" not in headers


@pytest.mark.parametrize("suffix", ["br", "gz"])
def test_a_form_is_no_file_of_its_own(client: TestClient, suffix: str) -> None:
    assert client.get(f"/assets/page-abc.js.{suffix}").status_code == 404


def test_pages_are_asked_for_again_each_time(client: TestClient) -> None:
    for path, text in (("/", "dashboard"), ("/jobs/job_1", "dashboard"), ("/api/docs", "reference")):
        answer = client.get(path)
        assert text in answer.text
        assert answer.headers["cache-control"] == "no-cache"
        assert client.get(path, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_json_is_compressed_for_those_who_take_it(client: TestClient) -> None:
    packed, headers = read_raw(client, "/api/rows")
    plain, of_plain = read_raw(client, "/api/rows", **{"Accept-Encoding": "gzip;q=0"})

    assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(headers["content-length"]) == len(packed) < len(plain) / 3
    assert zlib.decompress(packed, 31) == plain
    assert "content-encoding" not in of_plain
    assert of_plain["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/api/small", "/api/file", "/api/events"])
def test_small_answers_downloads_and_streams_pass_as_they_are(client: TestClient, path: str) -> None:
    _, headers = read_raw(client, path)

    assert "content-encoding" not in headers
