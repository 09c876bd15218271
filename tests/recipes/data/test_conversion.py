"""Single rows: what each format's columns are read as, and how a bad one is named."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_contracts.rows import CONVERSIONS, FORMAT_ROLES
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.data.conversion import NoConversion, Place, choose_conversion
from trellis_recipes.data.reading import BadRow

QUESTION = {"role": "user", "content": "1+1?"}
RIGHT = {"role": "assistant", "content": "2"}
WRONG = {"role": "assistant", "content": "3"}
PAIR = {"prompt": [QUESTION], "chosen": [RIGHT], "rejected": [WRONG]}
EVERY_CONVERSION = [(source, form) for form, sources in CONVERSIONS.items() for source in sources]


def convert(row: Any, source: DataFormat, form: DataFormat, **columns: str) -> list[dict[str, Any]]:
    return choose_conversion(source, form, columns)(row, Place(0, "train"))


def as_rl(row: Any, source: DataFormat = DataFormat.PROMPT_ANSWER) -> tuple[list[dict[str, str]], str]:
    (made,) = convert(row, source, DataFormat.VERL_RL)
    return made["prompt"], made["reward_model"]["ground_truth"]


def as_pair(row: Any, **columns: str) -> dict[str, Any]:
    (made,) = convert(row, DataFormat.PREFERENCE, DataFormat.PREFERENCE, **columns)
    return made


@pytest.mark.parametrize("recipe", list_recipes(), ids=lambda recipe: recipe.id)
def test_a_recipe_takes_the_formats_that_can_be_brought_into_its_form(recipe: Any) -> None:
    # Rows of tool retrieval name their tool beside prompt and answer, which other formats have no place for.
    is_own_form_alone = recipe.id == "agent_retrieval"
    sources = {recipe.row_format} if is_own_form_alone else set(CONVERSIONS[recipe.row_format])
    # Of prompts a job samples what it trains on: no row is converted.
    sampled = set() if recipe.sampled_from is None else {recipe.sampled_from}
    assert set(recipe.data_formats) == sources | sampled


def test_every_form_can_be_read_as_it_is() -> None:
    assert all(form in sources for form, sources in CONVERSIONS.items())
    assert set(FORMAT_ROLES) == set(DataFormat)


def test_a_way_that_is_not_there_is_refused() -> None:
    with pytest.raises(NoConversion, match="'text' format can't be converted to 'messages'"):
        choose_conversion(DataFormat.TEXT, DataFormat.MESSAGES, {})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "2"}, "has no prompt"),
        ({"question": "1+1?"}, "has no answer"),
        ({"question": 3, "answer": "2"}, "'question' must be text"),
        ({"question": "1+1?", "answer": True}, "'answer' must be text"),
        ({"question": "1+1?", "answer": float("nan")}, "'answer' is not a finite number"),
        ({"question": "1+1?", "answer": "2", "system": 1}, "'system' must be text"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(row: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRow, match=message):
        as_rl(row)


def test_a_named_column_is_not_replaced_by_a_usual_one() -> None:
    row = {"question": "1+1?", "ask": None, "answer": "2"}

    with pytest.raises(BadRow, match=r"'ask' is missing or null \(it is the prompt\)"):
        convert(row, DataFormat.PROMPT_ANSWER, DataFormat.MESSAGES, prompt="ask")


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (None, "has no messages"),
        ("text", "must be a list"),
        ([], "must be a list"),
        (["hello"], "message 1 .* not an object"),
        ([{"role": "robot", "content": "x"}], "message 1 .* role 'robot'"),
        ([{"role": ["user"], "content": "x"}], "message 1 .* role"),
        ([{"role": "user", "content": None}], "message 1 .* no text"),
        ([QUESTION], "no assistant turn"),
    ],
)
def test_what_is_wrong_with_a_conversation_is_said(messages: object, message: str) -> None:
    with pytest.raises(BadRow, match=message):
        convert({"messages": messages}, DataFormat.MESSAGES, DataFormat.MESSAGES)


def test_a_conversation_without_a_prompt_cannot_be_sampled_from() -> None:
    with pytest.raises(BadRow, match="starts with the assistant"):
        as_rl({"messages": [RIGHT]}, DataFormat.MESSAGES)


def test_an_instruction_and_its_input_are_one_prompt() -> None:
    row = {"instruction": "Add.", "input": "1 and 1", "output": 2, "system": "Be brief."}

    prompt, truth = as_rl(row)

    assert prompt == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add.\n\n1 and 1"},
    ]
    assert truth == "2"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "1+1?", "chosen": "2", "rejected": "3"},
        {"question": "1+1?", "chosen": [RIGHT], "rejected": "3"},
        {"prompt": [QUESTION], "chosen": [RIGHT], "rejected": [WRONG]},
        {"prompt": "1+1?", "chosen": [QUESTION, RIGHT], "rejected": [QUESTION, WRONG]},
        {"chosen": [QUESTION, RIGHT], "rejected": [QUESTION, WRONG]},
    ],
    ids=["texts", "mixed", "messages", "prompt-twice", "implicit"],
)
def test_a_pair_is_read_in_every_shape(row: dict[str, Any]) -> None:
    assert as_pair(row) == PAIR


def test_an_implicit_prompt_is_all_that_both_sides_share() -> None:
    before = [QUESTION, RIGHT, {"role": "user", "content": "and +1?"}]

    made = as_pair({"chosen": [*before, WRONG], "rejected": [*before, RIGHT]})

    assert made == {"prompt": before, "chosen": [WRONG], "rejected": [RIGHT]}
    tie = as_pair({"chosen": [QUESTION, RIGHT], "rejected": [QUESTION, RIGHT]})
    assert tie == {"prompt": [QUESTION], "chosen": [RIGHT], "rejected": [RIGHT]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "1+1?", "chosen": "2"}, "has no rejected"),
        ({"prompt": "1+1?", "chosen": "2", "rejected": " "}, "'rejected' is empty"),
        ({"chosen": "2", "rejected": "3"}, "'chosen' is text, so that a column must be the prompt"),
        ({"chosen": [RIGHT], "rejected": [WRONG]}, "do not answer the same prompt"),
        (
            {"chosen": [QUESTION, RIGHT], "rejected": [{"role": "user", "content": "2+2?"}, WRONG]},
            "do not answer the same prompt",
        ),
        ({"prompt": "2+2?", "chosen": [QUESTION, RIGHT], "rejected": "3"}, "'chosen' goes on with .* 'user'"),
        ({"prompt": [QUESTION], "chosen": [QUESTION], "rejected": "3"}, "'chosen' has nothing"),
    ],
)
def test_what_is_wrong_with_a_pair_is_said(row: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRow, match=message):
        as_pair(row)


@pytest.mark.parametrize(
    ("label", "expected"),
    [(True, True), (False, False), (1, True), (0, False), (1.0, True), ("True", True), ("0", False)],
)
def test_labels_are_read_as_people_write_them(label: object, expected: bool) -> None:
    row = {"prompt": "1+1?", "completion": "2", "label": label}

    (made,) = convert(row, DataFormat.UNPAIRED_PREFERENCE, DataFormat.UNPAIRED_PREFERENCE)

    assert made == {"prompt": [QUESTION], "completion": [RIGHT], "label": expected}
    assert made["label"] is expected


@pytest.mark.parametrize("label", [2, -1, 0.5, "good", "", [True], float("nan")])
def test_other_labels_are_refused(label: object) -> None:
    row = {"prompt": "1+1?", "completion": "2", "label": label}

    with pytest.raises(BadRow, match="'label' must be true or false"):
        convert(row, DataFormat.UNPAIRED_PREFERENCE, DataFormat.UNPAIRED_PREFERENCE)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(str.strip)
#: Anything that a Parquet file may hold.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "robot"]), "content": st.text()}
    ),
    max_size=4,
)
NAMES = sorted({name for roles in FORMAT_ROLES.values() for role in roles for name in role.usual_columns})


@given(
    row=st.dictionaries(st.sampled_from(NAMES), VALUES | MESSAGES, max_size=6),
    columns=st.dictionaries(st.sampled_from(["prompt", "answer", "chosen"]), st.sampled_from(NAMES)),
    way=st.sampled_from(EVERY_CONVERSION),
)
@example(row={"messages": [{"role": []}]}, columns={}, way=(DataFormat.MESSAGES, DataFormat.MESSAGES))
def test_a_row_is_converted_or_refused_and_nothing_else(
    row: dict[str, Any], columns: dict[str, str], way: tuple[DataFormat, DataFormat]
) -> None:
    source, form = way
    try:
        made = convert(row, source, form, **columns)
    except BadRow:
        return
    assert made


@given(question=TEXTS, answer=TEXTS)
def test_the_two_ways_to_a_reference_answer_agree(question: str, answer: str) -> None:
    row = {"question": question, "answer": answer}
    (conversation,) = convert(row, DataFormat.PROMPT_ANSWER, DataFormat.MESSAGES)

    assert as_rl(row) == as_rl(conversation, DataFormat.MESSAGES)


@given(prompt=TEXTS, chosen=TEXTS, rejected=TEXTS)
def test_a_prepared_pair_is_a_pair_again_in_every_shape(prompt: str, chosen: str, rejected: str) -> None:
    made = as_pair({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    whole = {side: [*made["prompt"], *made[side]] for side in ("chosen", "rejected")}

    assert as_pair(made) == as_pair(whole) == as_pair({**whole, "prompt": prompt}) == made
    good, bad = convert(made, DataFormat.PREFERENCE, DataFormat.UNPAIRED_PREFERENCE)
    assert (good["completion"], bad["completion"]) == (made["chosen"], made["rejected"])
    for row in (good, bad):
        assert convert(row, DataFormat.UNPAIRED_PREFERENCE, DataFormat.UNPAIRED_PREFERENCE) == [row]
    (conversation,) = convert(made, DataFormat.PREFERENCE, DataFormat.MESSAGES)
    assert conversation["messages"] == whole["chosen"]


@given(text=TEXTS)
def test_a_document_stays_as_it_is(text: str) -> None:
    assert convert({"text": text}, DataFormat.TEXT, DataFormat.TEXT) == [{"text": text}]
