"""Exact duplicates, and what may differ between them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_data.dedup.exact import ExactDuplicates, ExactParams
from trellis_data.layout import Layout
from trellis_data.operator import Context
from trellis_testing.global_operators import run_global

ROWS = [
    "Hello, world",
    "hello,  WORLD\n",
    "Ｈello, world",
    "hello world",
    "Hello, world",
    "",
    None,
    "你好。",
    "你好",
]


def dedupe(values: list[str | None], folder: Path, **params: Any) -> Any:
    table = pa.table({"text": pa.array(values, pa.string())})
    return run_global(ExactDuplicates(ExactParams(**params), Context()), table, folder)


@pytest.mark.parametrize(
    ("ignore", "dropped"),
    [("nothing", [4]), ("spaces_and_case", [1, 2, 4]), ("marks", [1, 2, 3, 4, 8])],
)
def test_what_does_not_count_is_a_choice(ignore: str, dropped: list[int], tmp_path: Path) -> None:
    ran = dedupe(ROWS, tmp_path, ignore=ignore)

    assert [at for at, stays in enumerate(ran.keep) if not stays] == dropped
    assert ran.reasons == dict.fromkeys(dropped, "exact_duplicate")


@given(st.lists(st.text(alphabet="ab \u4e00\U00020000", max_size=3), max_size=40))
@settings(max_examples=40, deadline=None)
def test_the_first_of_equal_texts_stays(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    if not values:
        return
    ran = dedupe(list(values), tmp_path_factory.mktemp("exact"), ignore="nothing")

    expected = [not text or text not in values[:at] for at, text in enumerate(values)]
    assert ran.keep.tolist() == expected


@pytest.mark.parametrize("ignore", ["nothing", "spaces_and_case", "marks"])
def test_the_same_words_in_other_places_are_another_row(ignore: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "question": ["a\nb", "a", None, "x", "x"],
            "answer": ["c", "b\nc", "x", None, ""],
        }
    )
    layout = Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "answer"})

    ran = run_global(ExactDuplicates(ExactParams(ignore=ignore), Context()), table, tmp_path, layout=layout)

    # An empty text says as much as none.
    assert ran.keep.tolist() == [True, True, True, True, False]
