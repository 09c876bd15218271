"""Pipelines as documents, and what is found in them before any row is read."""

import pyarrow as pa
import pytest
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.pipeline.check import check, stated_layout
from trellis_data.pipeline.document import dump_pipeline, load_pipeline, pipeline_hash
from trellis_data.pipeline.problem import PipelineProblem

pytestmark = pytest.mark.usefixtures("small_operators")
TEXT = Layout(DataFormat.TEXT, {"text": "text"})
SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})
DOCUMENT = """\
name: 清洗
seed: 3
steps:
  - operator: test_drop_short
    params: {shortest: 8}
  - operator: test_shout
    name: capitals
"""


def test_a_document_is_read_and_written_back() -> None:
    read = load_pipeline(DOCUMENT)

    assert [step.name for step in read.steps] == ["test_drop_short", "capitals"]
    assert load_pipeline(dump_pipeline(read)) == read
    assert "清洗" in dump_pipeline(read)


def test_the_hash_is_that_of_what_decides_on_rows() -> None:
    one = load_pipeline(DOCUMENT)
    renamed = load_pipeline(DOCUMENT.replace("清洗", "other"))
    other = load_pipeline(DOCUMENT.replace("8", "9"))

    assert pipeline_hash(one) == pipeline_hash(renamed) != pipeline_hash(other)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("name: x\nsteps: [", "pipeline_unreadable", "line 2"),
        ("name: x\nname: y\nsteps: []", "pipeline_unreadable", "line 2: 'name' is given twice"),
        ("name: &a x\nsteps: [*a]", "pipeline_unreadable", "aliases are not allowed"),
        ("name: !!python/object/apply:os.system [ls]\n", "pipeline_unreadable", "line 1"),
        ("just text", "pipeline_unreadable", "name and steps"),
        ("? [a]\n: b", "pipeline_unreadable", "line 1: a key has to be a plain text"),
        ("name: x\nsteps: " + "[" * 3000 + "]" * 3000, "pipeline_unreadable", "Nested too deeply"),
        ("name: " + "9" * 5000, "pipeline_unreadable", "line 1: '999"),
        ("name: x\nseed: 2001-99-99", "pipeline_unreadable", "line 2: '2001-99-99' is no timestamp"),
        ("name: !!int x", "pipeline_unreadable", "line 1: 'x' is no int"),
        ("name: !!bool x", "pipeline_unreadable", "line 1: 'x' is no bool"),
        ("name: x\nsteps:\n  - operator: a\n    parms: {}\n", "pipeline_invalid", "line 4: steps.0.parms"),
        ("name: x\nsteps: []\n", "pipeline_invalid", "line 2: steps"),
        ("x" * 1_000_001, "pipeline_too_large", "characters"),
    ],
)
def test_a_document_that_is_none_names_the_line(text: str, code: str, said: str) -> None:
    with pytest.raises(PipelineProblem) as caught:
        load_pipeline(text)

    assert (caught.value.code, said in caught.value.message) == (code, True), caught.value.message


def test_everything_wrong_is_found_at_once_with_its_place() -> None:
    asked = Pipeline.model_validate(
        {
            "name": "p",
            "steps": [
                {"operator": "test_shuot"},
                {"operator": "test_drop_short", "params": {"shortest": -1, "longest": 3}},
                {"operator": "test_shout", "params": {"column": "length"}},
            ],
        }
    )

    found = check(asked, SCHEMA, TEXT)

    assert [(each.step, each.field, each.code) for each in found] == [
        ("test_shuot", "steps.0.operator", "operator_unknown"),
        ("test_drop_short", "steps.1.params.shortest", "param_invalid"),
        ("test_drop_short", "steps.1.params.longest", "param_unknown"),
        ("test_shout", "steps.2", "column_missing"),
    ]
    assert "test_shout" in found[0].message


def test_a_column_that_a_step_adds_is_there_for_the_next() -> None:
    uses = {"operator": "test_shout", "params": {"column": "length"}}
    asked = Pipeline.model_validate({"name": "p", "steps": [{"operator": "test_length"}, uses]})

    assert check(asked, SCHEMA, TEXT) == []


def test_columns_of_roles_have_to_be_there() -> None:
    asked = Pipeline.model_validate({"name": "p", "steps": [{"operator": "test_length"}]})

    found = check(asked, SCHEMA, Layout(DataFormat.TEXT, {"text": "body"}))

    assert [(each.field, each.code) for each in found] == [("columns.text", "column_missing")]


def test_a_stated_format_finds_its_usual_columns() -> None:
    asked = Pipeline.model_validate(
        {"name": "p", "format": "prompt-answer", "columns": {"answer": "reply"}, "steps": [{"operator": "x"}]}
    )

    layout = stated_layout(asked, pa.schema({"question": pa.string(), "reply": pa.string()}))

    assert layout == Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "reply"})
