"""What rewards load before they score, once, and what they leave open when they are done."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.rewards import RewardFileSource, RewardResources
from trellis_testing.chat_endpoint import running_chat_endpoint
from trellis_train.rewards.judge import JudgeScorer
from trellis_train.rewards.mixture import Mixture
from trellis_train.rewards.resources import ScoringPlace
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable
from trellis_train.sandbox import session

BROKEN = "import no_such_module"

SCORING = "def score(prompt, response, answer, row):\n    return float(response)"


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for every isolated process that is started."""
    started: list[str] = []

    class Counted(session._Process):
        def __init__(self, code: bytes, *arguments: Any) -> None:
            started.append(code.decode())
            super().__init__(code, *arguments)

    monkeypatch.setattr(session, "_Process", Counted)
    return started


def mixture_of(code: str, folder: Path, *, timeout_s: float = 5.0) -> Mixture:
    path = folder / "mine.py"
    path.write_text(code)
    source = RewardFileSource(name="mine", path=str(path), sha256=hashlib.sha256(code.encode()).hexdigest())
    options = {"file": "rwf_mine", "timeout_s": timeout_s, "memory_mb": 256}
    place = ScoringPlace(RewardResources(files={"rwf_mine": source}), folder=folder)
    return Mixture.parse([{"name": "python", "options": options}], place)


def test_a_file_that_does_not_load_is_tried_once_and_ends_the_use_of_the_reward(
    starts: list[str], tmp_path: Path
) -> None:
    mixture = mixture_of(BROKEN, tmp_path)

    async def score() -> list[Any]:
        try:
            return await asyncio.gather(*(mixture.score(Sample(response="1")) for _ in range(12)))
        finally:
            await mixture.close()

    scored = asyncio.run(score())

    assert starts == [BROKEN]
    assert all(each.is_unusable for each in scored)
    assert {each.errors["python"] for each in scored} == {
        "The reward file 'mine' cannot be used: the code could not be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module' (line 1)."
    }


def test_a_file_that_is_slow_to_load_gets_a_second_try(starts: list[str], tmp_path: Path) -> None:
    mixture = mixture_of("import time\ntime.sleep(60)", tmp_path, timeout_s=0.5)

    with pytest.raises(RewardUnusable, match="loading the code took too long"):
        asyncio.run(mixture.load())
    assert len(starts) == 2


def test_loading_names_the_reward_that_cannot_be_used(tmp_path: Path) -> None:
    mixture = mixture_of(BROKEN, tmp_path)

    with pytest.raises(RewardUnusable, match=r"^python: The reward file 'mine' .*no_such_module"):
        asyncio.run(mixture.load())


def test_what_was_loaded_beforehand_scores_without_loading_again(starts: list[str], tmp_path: Path) -> None:
    mixture = mixture_of(SCORING, tmp_path)

    async def go() -> float:
        await mixture.load()
        await mixture.load()
        scored = await mixture.score(Sample(response="0.5"))
        await mixture.close()
        return scored.score

    assert asyncio.run(go()) == 0.5
    assert len(starts) == 1


def test_a_judge_closes_its_connections(tmp_path: Path) -> None:
    with running_chat_endpoint() as endpoint:
        described = JudgeEndpoint(base_url=endpoint.url, model="m", requests_per_minute=60_000)
        judge = JudgeScorer(
            "strict", described, key=None, folder=tmp_path, template="{response}",
            lowest=0, highest=10, max_cost=1.0, retries=0,
        )  # fmt: skip

        async def go() -> Any:
            await judge.score(Sample(response="four"))
            client = judge._connect()
            assert not client.is_closed()
            await judge.close()
            return client

        assert asyncio.run(go()).is_closed()


def test_a_judge_that_is_closed_ends_the_calls_that_wait(tmp_path: Path) -> None:
    with running_chat_endpoint() as endpoint:
        endpoint.delay_s = 3.0
        described = JudgeEndpoint(base_url=endpoint.url, model="m", requests_per_minute=60_000)
        judge = JudgeScorer(
            "strict", described, key=None, folder=tmp_path, template="{response}",
            lowest=0, highest=10, max_cost=1.0, retries=0,
        )  # fmt: skip

        async def go() -> Any:
            waiting = asyncio.ensure_future(judge.score(Sample(response="four")))
            await asyncio.sleep(0.2)
            await judge.close()
            return (await asyncio.gather(waiting, return_exceptions=True))[0]

        assert isinstance(asyncio.run(go()), asyncio.CancelledError)
