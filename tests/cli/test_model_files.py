"""`trellis models download` and `card`: what is fetched, what is not fetched again, and where it goes."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from trellis_cli import model_files
from trellis_cli.client import ApiClient
from trellis_cli.downloading import fetch_all
from trellis_cli.errors import Problem, Refusal

ADDRESS = "/models/mdl_1"


class Server:
    """Files behind the API, with ranges as it answers them; breaks off after so many bytes where told."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.asked = files, list[tuple[str, str | None]]()
        self.breaks_after: int | None = None

    def handle(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1")
        if path == f"{ADDRESS}/files":
            items = [{"name": name, "size_bytes": len(content)} for name, content in self.files.items()]
            return httpx.Response(200, json={"items": items, "size_bytes": 1})
        if path == f"{ADDRESS}/card":
            return httpx.Response(200, text="---\n---\n")
        if path == f"{ADDRESS}/card/check":
            return httpx.Response(409, json={"error": "card_outdated", "message": "It is 2."})
        if path == "/models":
            return httpx.Response(200, json={"items": [{"id": "mdl_1", "name": "tiny"}], "next_cursor": None})
        name = path.removeprefix(f"{ADDRESS}/files/")
        content, tag = self.files[name], f'"{hash(self.files[name])}"'
        wanted = request.headers.get("range")
        self.asked.append((name, wanted))
        if wanted and request.headers.get("if-range") == tag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            return httpx.Response(206, content=content[start:], headers={"etag": tag})
        if self.breaks_after is not None:
            return httpx.Response(200, stream=Broken(content[: self.breaks_after]), headers={"etag": tag})
        return httpx.Response(200, content=content, headers={"etag": tag})


class Broken(httpx.SyncByteStream):
    """A body whose connection ends too early."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.ReadError("the connection was lost")


@pytest.fixture
def server() -> Server:
    return Server({"config.json": b"{}", "sub/model.safetensors": bytes(1000) + b"end"})


@pytest.fixture
def client(server: Server) -> ApiClient:
    made = ApiClient("http://platform.test", "token")
    made._http = httpx.Client(base_url="http://platform.test", transport=httpx.MockTransport(server.handle))
    return made


def fetch(client: ApiClient, folder: Path) -> list[Path]:
    return fetch_all(client, ADDRESS, folder, tell=lambda *_: None)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def test_all_files_arrive_in_their_places(client: ApiClient, server: Server, tmp_path: Path) -> None:
    assert len(fetch(client, tmp_path / "out")) == 2

    assert contents(tmp_path / "out") == server.files


def test_a_download_that_broke_off_goes_on_where_it_stopped(
    client: ApiClient, server: Server, tmp_path: Path
) -> None:
    server.breaks_after = 2
    with pytest.raises(Problem):
        fetch(client, tmp_path)  # the small file is whole after two bytes, and its end is lost
    server.breaks_after = None
    server.asked.clear()

    fetch(client, tmp_path)

    assert contents(tmp_path) == server.files
    assert server.asked[0][1] is not None, "it was fetched from its beginning"


def test_the_rest_of_a_large_file_is_asked_for(client: ApiClient, server: Server, tmp_path: Path) -> None:
    server.files = {"weights": bytes(1000) + b"end"}
    server.breaks_after = 600
    with pytest.raises(Problem):
        fetch(client, tmp_path)
    server.breaks_after = None

    fetch(client, tmp_path)

    assert server.asked == [("weights", None), ("weights", "bytes=600-")]
    assert contents(tmp_path) == server.files


def test_what_changed_meanwhile_is_fetched_anew(client: ApiClient, server: Server, tmp_path: Path) -> None:
    server.files = {"weights": b"a" * 1000}
    server.breaks_after = 600
    with pytest.raises(Problem):
        fetch(client, tmp_path)
    server.files, server.breaks_after = {"weights": b"b" * 1000}, None

    fetch(client, tmp_path)

    assert contents(tmp_path) == server.files


def test_files_of_the_same_size_of_something_else_are_replaced(
    client: ApiClient, server: Server, tmp_path: Path
) -> None:
    fetch(client, tmp_path)
    server.files = {"config.json": b"[]", "sub/model.safetensors": bytes(1000) + b"END"}

    fetch(client, tmp_path)

    assert contents(tmp_path) == server.files


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "a\\b", ""])
def test_no_name_leads_out_of_the_folder(
    client: ApiClient, server: Server, tmp_path: Path, name: str
) -> None:
    server.files = {name: b"x"}

    with pytest.raises(Problem, match="outside"):
        fetch(client, tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


def test_a_model_gets_its_card(client: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "connect", lambda: client)

    model_files.download("tiny", tmp_path / "out")

    assert (tmp_path / "out" / "README.md").read_text() == "---\n---\n"


def test_a_card_that_is_not_right_is_refused(
    client: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "connect", lambda: client)
    (tmp_path / "card.md").write_text("old")

    with pytest.raises(Refusal, match="It is 2") as refused:
        model_files.card("tiny", tmp_path / "card.md")

    assert refused.value.exit_code == 4


def test_job_and_step_name_a_checkpoint_unless_a_model_is_called_so(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "find_job", lambda _client, name: name)
    monkeypatch.setattr(model_files, "find_model", lambda _client, name: name)

    assert model_files.find_address(client, "job_a:7") == "/jobs/job_a/checkpoints/7"
    monkeypatch.setattr(client, "pages", lambda *_, **__: iter([{"name": "ft:tiny:a:7"}]))
    assert model_files.find_address(client, "ft:tiny:a:7") == "/models/ft:tiny:a:7"
