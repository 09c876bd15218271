"""Rows dropped by their length."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from tokenizers import Tokenizer, models, pre_tokenizers
from trellis_data.operator import OperatorProblem
from trellis_data.operators.length import LengthParams
from trellis_testing.operator_runs import chats, documents, run

CHAT = chats([("user", "one two"), ("assistant", "three")], [("user", "one"), ("assistant", "a b c d")])


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """One token a word; texts would be cut after two, were it asked."""
    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.enable_truncation(2)
    words.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_tokens_are_those_of_the_model_and_none_is_cut_off(tokenizer: Path) -> None:
    outcome = run("length", CHAT, tokenizer=tokenizer, unit="tokens", maximum=4)

    assert outcome.keep.tolist() == [True, False]
    assert outcome.reasons == {1: "too_long"}
    # Three tokens in the bin from 2 to 4, five in that from 4 to 8.
    assert outcome.findings["tokens"].counts[:5] == [0, 0, 1, 1, 0]


def test_characters_of_every_language_count_as_one() -> None:
    assert run("length", documents("中文", "ab", "abc"), unit="characters", maximum=2).keep.tolist() == [
        True,
        True,
        False,
    ]


def test_turns_of_a_conversation_are_counted() -> None:
    batch = chats([("user", "a")], [("user", "a"), ("assistant", "b")])

    assert run("length", batch, unit="turns", minimum=2).reasons == {0: "too_short"}


def test_one_text_out_of_bounds_is_enough_where_single_texts_are_measured() -> None:
    outcome = run("length", CHAT, unit="characters", scope="text", maximum=6, minimum=4)

    assert outcome.reasons == {0: "too_long", 1: "too_short"}


def test_without_a_tokenizer_the_pipeline_is_refused_before_it_runs(tmp_path: Path) -> None:
    from trellis_data.catalogue import find_operator
    from trellis_data.operator import Context

    kind = find_operator("length")
    for context, code in (
        (Context(), "tokenizer_missing"),
        (Context(tokenizer=tmp_path), "tokenizer_unreadable"),
    ):
        outlined = kind.outline(LengthParams(minimum=1), context)
        with pytest.raises(OperatorProblem) as caught:
            outlined.check(CHAT.table.schema, CHAT.layout)
        assert caught.value.code == code


@pytest.mark.parametrize(
    "params", [{}, {"minimum": 3, "maximum": 2}, {"unit": "turns", "scope": "text", "minimum": 1}]
)
def test_bounds_that_make_no_sense_are_refused(params: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LengthParams.model_validate(params)
