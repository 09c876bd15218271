"""The names that a person's reward file gives its further figures, read without running it."""

import ast

import pytest
from trellis_recipes.reward_parts import MAX_PARTS, BadParts, find_parts


def parts_of(code: str) -> tuple[str, ...]:
    return find_parts(ast.parse(code))


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("", ()),
        ("PARTS = []", ()),
        ('PARTS = ["brevity", "tone"]', ("brevity", "tone")),
        ('PARTS = ("a_2",)', ("a_2",)),
        ('PARTS: list[str] = ["tone"]', ("tone",)),
        ('PARTS = ["old"]\nPARTS = ["new"]', ("new",)),
        ('def score(*_):\n    PARTS = ["inside"]', ()),
    ],
)
def test_names_are_those_that_the_file_assigns_last(code: str, parts: tuple[str, ...]) -> None:
    assert parts_of(code) == parts


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ('\nPARTS = [name for name in "ab"]', "Line 2: PARTS must be a list of names"),
        ('PARTS = "tone"', "must be a list of names"),
        ("PARTS = [1]", "must be a list of names"),
        ('PARTS = ["Tone"]', "'Tone' cannot name a figure"),
        ('PARTS = [""]', "'' cannot name a figure"),
        ('PARTS = ["score"]', "'score' cannot name a figure"),
        (f'PARTS = ["{"a" * 33}"]', "cannot name a figure"),
        ('PARTS = ["tone", "tone"]', "has a name twice"),
        (f"PARTS = {[f'part_{number}' for number in range(MAX_PARTS + 1)]}", f"has {MAX_PARTS + 1} names"),
    ],
)
def test_names_that_cannot_be_used_are_refused(code: str, message: str) -> None:
    with pytest.raises(BadParts, match=message):
        parts_of(code)
