"""`trellis registry`: what is asked of the platform, and how it is told."""

from typing import Any

import pytest
from trellis_cli import registry
from trellis_cli.client import ApiClient

FOUND = {
    "name": "bot",
    "aliases": {"production": 3},
    "versions": [
        {
            "number": 3,
            "model": "mdl_1",
            "model_name": "tiny",
            "exists": False,
            "aliases": ["production"],
            "note": "n",
            "created_at": "2026-01-01T00:00:00Z",
        }
    ],
}


class Platform(ApiClient):
    """Notes what it is asked, and answers with one named model."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    def request(self, method: str, path: str, **options: Any) -> Any:
        self.asked.append((method, path, options.get("json")))
        return FOUND


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Platform:
    made = Platform()
    monkeypatch.setattr(registry, "connect", lambda: made)
    monkeypatch.setattr(registry, "find_model", lambda _client, _name: "mdl_1")
    return made


def test_a_promotion_names_its_condition(platform: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    registry.promote("bot", "production", 3, note="why", unless_worse="gsm8k")

    assert platform.asked == [
        (
            "PUT",
            "/registry/bot/aliases/production",
            {"version": 3, "note": "why", "gate": {"benchmark": "gsm8k"}},
        )
    ]
    assert capsys.readouterr().out == "bot:production is version 3\n"


def test_a_version_is_added_by_the_models_name(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.add("bot", "tiny")

    assert platform.asked == [("POST", "/registry", {"name": "bot", "model": "mdl_1", "note": ""})]
    assert capsys.readouterr().out == "bot:3\n"


def test_versions_whose_model_was_deleted_say_so(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.show("bot")

    said = capsys.readouterr().out
    assert "tiny  (deleted)" in said
    assert "production" in said


def test_the_history_tells_what_a_gate_found() -> None:
    gate = {"benchmark": "gsm8k", "value": 0.5, "against": 0.25}

    assert registry.describe_gate(gate) == "gsm8k 0.5 against 0.25"
    assert registry.describe_gate(None) == ""
