"""A person's own Python file as a term of a mixture: its score, and the further figures that it names."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from trellis_contracts.rewards import RewardFileSource, RewardResources
from trellis_train.rewards.mixture import Mixture, Scored
from trellis_train.rewards.resources import ScoringPlace
from trellis_train.rewards.sample import Sample

MOODS = """
PARTS = ["tone", "brevity"]

def score(prompt, response, answer, row):
    if response == "alone":
        return 0.5
    if response == "raise":
        raise ValueError("no mood")
    if response == "infinite":
        return {"score": 1.0, "tone": float("inf"), "brevity": 1.0}
    figures = {"score": 0.5, "tone": 0.25, "brevity": 1 / len(response), "more": 7}
    if response == "toneless":
        del figures["tone"]
    return figures
"""


def score_all(code: str, folder: Path, *responses: str) -> list[Scored]:
    path = folder / "mine.py"
    path.write_text(code)
    source = RewardFileSource(name="mine", path=str(path), sha256=hashlib.sha256(code.encode()).hexdigest())
    place = ScoringPlace(RewardResources(files={"rwf_mine": source}))
    options = {"file": "rwf_mine", "timeout_s": 5.0, "memory_mb": 256}

    async def go() -> list[Scored]:
        mixture = Mixture.parse([{"name": "python", "options": options, "weight": 2.0}], place)
        try:
            return [await mixture.score(Sample(response=response)) for response in responses]
        finally:
            await mixture.close()

    return asyncio.run(go())


def test_the_figures_that_a_file_names_stand_beside_its_score(tmp_path: Path) -> None:
    (scored,) = score_all(MOODS, tmp_path, "good")

    assert scored.score == 1.0
    assert scored.parts == {"python": 0.5, "python_tone": 0.25, "python_brevity": 0.25}
    assert scored.errors == {}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ("alone", "returned a number, but PARTS lists tone, brevity"),
        ("toneless", 'a dict without "tone"'),
        ("infinite", '"tone" is inf, which is not a finite number'),
        ("raise", "no mood"),
    ],
)
def test_a_figure_that_is_missing_is_an_error_of_that_response(
    tmp_path: Path, response: str, message: str
) -> None:
    failed, fine = score_all(MOODS, tmp_path, response, "good")

    assert message in failed.errors["python"]
    assert failed.parts == {"python": 0.0, "python_tone": 0.0, "python_brevity": 0.0}
    assert list(failed.as_verl_result()) == list(fine.as_verl_result())
    assert fine.score == 1.0


def test_figures_without_a_name_are_left_out(tmp_path: Path) -> None:
    code = 'def score(prompt, response, answer, row):\n    return {"score": 1, "tone": 0.5}'

    (scored,) = score_all(code, tmp_path, "good")

    assert scored.parts == {"python": 1.0}


def test_names_that_cannot_be_used_end_the_use_of_the_file(tmp_path: Path) -> None:
    (scored,) = score_all(f'{MOODS}\nPARTS = ["Tone"]', tmp_path, "good")

    assert scored.is_unusable
    assert "'Tone' cannot name a figure" in scored.errors["python"]
