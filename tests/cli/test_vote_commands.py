"""`trellis votes`: what is asked of the platform, and how it is told."""

from typing import Any

import pytest
from trellis_cli import votes
from trellis_cli.client import ApiClient

RATE = {"model_a": "base", "model_b": "sft", "votes": 7, "wins_a": 1, "wins_b": 4, "ties": 2}


class Platform(ApiClient):
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.rate: dict[str, Any] = {**RATE, "win_rate": 0.2, "low": 0.036, "high": 0.624}

    def request(self, method: str, path: str, **options: Any) -> Any:
        self.asked.append((method, path, options.get("params") or options.get("json")))
        if path == "/votes/win-rates":
            return {"items": [self.rate]}
        return {"id": "ds_1", "name": "votes", "state": "ready", "row_count": 5}


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Platform:
    made = Platform()
    monkeypatch.setattr(votes, "connect", lambda: made)
    return made


def test_win_rates_are_told_with_their_intervals(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    votes.win_rates(model=["base", "sft"], blind_only=True)

    assert platform.asked == [("GET", "/votes/win-rates", {"model": ["base", "sft"], "blind_only": True})]
    assert "20.0% (3.6% to 62.4%)" in capsys.readouterr().out


def test_no_decision_is_no_rate(platform: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    platform.rate = {**RATE, "win_rate": None, "low": None, "high": None}

    votes.win_rates()

    assert "no decisive votes" in capsys.readouterr().out


def test_pairs_become_a_dataset(platform: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    votes.dataset("votes", blind_only=True)

    body = {"name": "votes", "models": [], "blind_only": True}
    assert platform.asked[0] == ("POST", "/votes/dataset", body)
    assert capsys.readouterr().out == "ds_1  votes  5 pairs\n"
