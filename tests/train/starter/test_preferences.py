"""The preferences that the preference recipes are shown on."""

import json
from pathlib import Path

from trellis_data.samples.addition import HEDGE
from trellis_data.samples.preferences import make_pairs, unpair, write_preferences


def answer_of(prompt: str) -> int:
    return sum(int(character) for character in prompt if character.isdigit())


def is_far_off(wrong: int, right: int) -> bool:
    return wrong >= 0 and abs(wrong - right) >= 5


def test_the_right_sum_is_chosen_and_a_wrong_or_hedged_one_rejected() -> None:
    for pair in (pair for pairs in make_pairs(0) for pair in pairs):
        right = str(answer_of(pair.prompt))

        assert pair.chosen == right
        assert pair.rejected != right
        assert pair.rejected == HEDGE + right or is_far_off(int(pair.rejected), int(right))


def test_no_held_out_prompt_is_trained_on() -> None:
    train, validation = make_pairs(3)

    assert {pair.prompt for pair in train}.isdisjoint({pair.prompt for pair in validation})
    assert (len(train), len(validation)) == (960, 240)


def test_a_seed_always_gives_the_same_pairs_and_another_one_others() -> None:
    assert make_pairs(1) == make_pairs(1)
    assert make_pairs(1) != make_pairs(2)


def test_unpaired_answers_are_marked() -> None:
    (pair, *_), _ = make_pairs(0)

    assert unpair([pair]) == [
        {"prompt": pair.prompt, "completion": pair.chosen, "label": True},
        {"prompt": pair.prompt, "completion": pair.rejected, "label": False},
    ]


def test_they_are_written_as_json_lines(tmp_path: Path) -> None:
    paths = write_preferences(tmp_path, 0)

    rows = {
        name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in paths.items()
    }
    assert {name: len(each) for name, each in rows.items()} == {
        "preference_train": 960,
        "preference_validation": 240,
        "unpaired_train": 1920,
        "unpaired_validation": 480,
    }
