"""Old names of operators' parameters are accepted for one release, and mean what the new ones mean."""

from typing import Any

import pytest
from pydantic import ValidationError
from trellis_contracts.generation import SelfInstruct
from trellis_data.catalogue import find_operator, operators
from trellis_data.pipeline.document import load_pipeline
from trellis_data.pipeline.renamed_parameters import use_present_names
from trellis_data.pipeline.report import RunReport

RENAMED = [
    (operator.id, old, new)
    for operator in operators().values()
    for old, new in operator.Params.old_names.items()
]
#: Parameters that have to be given.
NEEDED: dict[str, dict[str, Any]] = {"decontaminate": {"benchmarks": ["bench"]}}
STORED = """\
name: stored
steps:
  - operator: repetition
    params: {again_5: 0.2, top_2: 0.3, least_words: 1}
  - operator: language
    params: {least_confidence: 1}
  - operator: no_such_operator
    params: {least_words: 1}
"""


def test_fifteen_parameters_have_an_old_name() -> None:
    assert len(RENAMED) == 15


@pytest.mark.parametrize(("operator", "old", "new"), RENAMED)
def test_an_old_name_sets_the_renamed_parameter_with_a_warning(operator: str, old: str, new: str) -> None:
    kind = find_operator(operator).Params
    needed = NEEDED.get(operator, {})

    with pytest.warns(DeprecationWarning, match=f"'{old}' of {kind.__name__} was renamed to '{new}'"):
        by_old = kind.model_validate({**needed, old: 1})

    assert by_old == kind.model_validate({**needed, new: 1})
    assert by_old != kind.model_validate(needed)
    assert old not in by_old.model_dump()


def test_both_names_with_different_values_are_refused() -> None:
    with pytest.raises(ValidationError, match="both are given with different values"):
        find_operator("repetition").Params.model_validate({"least_words": 3, "min_words": 4})


def test_a_stored_pipeline_gets_present_names() -> None:
    stored = load_pipeline(STORED)

    with pytest.warns(DeprecationWarning, match="was renamed to"):
        present = use_present_names(stored)

    assert [step.params for step in present.steps] == [
        {"dup_5_gram_frac": 0.2, "top_2_gram_frac": 0.3, "min_words": 1},
        {"min_confidence": 1},
        {"least_words": 1},
    ]
    assert [step.name for step in present.steps] == [step.name for step in stored.steps]


def test_a_step_with_both_names_stays_for_the_check_to_refuse() -> None:
    stored = load_pipeline(
        "name: both\nsteps: [{operator: html, params: {largest_share: 0.1, max_ratio: 0.2}}]"
    )

    assert use_present_names(stored).steps[0].params == {"largest_share": 0.1, "max_ratio": 0.2}


def test_the_old_name_of_the_rouge_limit_is_read_with_a_warning() -> None:
    with pytest.warns(
        DeprecationWarning, match="'most_similar' of SelfInstruct was renamed to 'max_rouge_l'"
    ):
        method = SelfInstruct.model_validate({"rows": 2, "most_similar": 0.5})

    assert method.max_rouge_l == 0.5


def test_the_report_of_a_run_before_the_renaming_is_read() -> None:
    stored: dict[str, Any] = {
        "pipeline": "p", "pipeline_hash": "0", "rows_in": 1, "rows_out": 1, "format": "text", "funnel": [],
        "steps": [], "outputs": {}, "dropped": {}, "settled": {"dedup": "settled/01-dedup"}, "seconds": 1,
        "peak_memory_bytes": 1,
    }  # fmt: skip

    with pytest.warns(DeprecationWarning, match="'settled' of RunReport was renamed to 'reduced'"):
        report = RunReport.model_validate(stored)

    assert report.reduced == {"dedup": "settled/01-dedup"}
