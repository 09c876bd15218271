"""`trellis models push`, `trellis models gguf`, `trellis transfers`: what is asked, followed and told."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from trellis_cli import transfers
from trellis_cli.client import ApiClient
from trellis_cli.errors import Problem

CONTENT = b"GGUF and more"
FILE = {"file": "bot.q8_0.gguf", "size_bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}


class Platform(ApiClient):
    """Notes what it is asked; a transfer runs once, and ends as the test says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.ranges: list[str | None] = []
        self.content = CONTENT
        self.end: dict[str, Any] = {"state": "succeeded", "result": FILE, "has_file": True}

    def request(self, method: str, path: str, **options: Any) -> Any:
        self.asked.append((method, path, options.get("json")))
        transfer = {
            "id": "trf_1",
            "kind": "gguf" if "gguf" in str(self.asked[0]) else "push",
            "model_name": "bot",
            "state": "running",
            "request": self.asked[0][2] or {},
            "progress": {"done_bytes": 1, "total_bytes": 2, "file": "a"},
            "result": None,
            "reason": None,
            "has_file": False,
        }
        return transfer | (self.end if method == "GET" else {})

    @contextlib.contextmanager
    def open(self, path: str, **options: Any) -> Iterator[httpx.Response]:
        wanted = options["headers"].get("Range")
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        yield httpx.Response(206 if wanted else 200, content=self.content[start:])


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Platform:
    made = Platform()
    monkeypatch.setattr(transfers, "connect", lambda: made)
    monkeypatch.setattr(transfers, "find_model", lambda _client, _name: "mdl_1")
    monkeypatch.setattr(transfers, "_POLL_S", 0.0)
    return made


def test_a_push_names_no_token_and_is_followed(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    platform.end = {"state": "succeeded", "result": {"url": "https://hub/team/bot", "commit": "c"}}

    transfers.push("bot", "team/bot")

    body = {"repo_id": "team/bot", "private": True, "message": ""}
    assert platform.asked == [("POST", "/models/mdl_1/push", body), ("GET", "/transfers/trf_1", None)]
    assert capsys.readouterr().out == "trf_1  succeeded  https://hub/team/bot\n"


def test_a_card_of_ones_own_is_sent_with_the_push(platform: Platform, tmp_path: Path) -> None:
    platform.end = {"state": "succeeded", "result": {"url": "https://hub/team/bot", "commit": "c"}}
    (tmp_path / "README.md").write_text("# Mine")

    transfers.push("bot", "team/bot", card=tmp_path / "README.md")

    assert platform.asked[0][2]["card"] == "# Mine"
    with pytest.raises(Problem, match="cannot be read"):
        transfers.push("bot", "team/bot", card=tmp_path / "none.md")


def test_a_push_that_failed_says_why_and_how_to_go_on(platform: Platform) -> None:
    platform.end = {"state": "failed", "reason": "The hub cannot be reached."}

    with pytest.raises(Problem, match="trf_1 failed: The hub cannot be reached") as caught:
        transfers.push("bot", "team/bot")

    assert caught.value.hint == "trellis transfers resume trf_1"


def test_an_export_is_downloaded_and_a_broken_download_goes_on(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / ".bot.q8_0.gguf.trf_1.unfinished").write_bytes(CONTENT[:4])

    transfers.gguf("bot", output=tmp_path, kind="q8_0")

    assert platform.asked[0] == ("POST", "/models/mdl_1/gguf", {"type": "q8_0"})
    assert platform.ranges == ["bytes=4-"]
    assert (tmp_path / "bot.q8_0.gguf").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["bot.q8_0.gguf"]


def test_a_file_that_is_another_one_is_not_kept(platform: Platform, tmp_path: Path) -> None:
    platform.content = b"GGUF and less"

    with pytest.raises(Problem, match="has the wrong SHA-256"):
        transfers.gguf("bot", output=tmp_path)

    assert list(tmp_path.iterdir()) == []
