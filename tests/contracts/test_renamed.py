"""Old names of fields hold for one release: they are read with a warning, and repeated in answers."""

import warnings
from typing import Any

import pytest
from pydantic import ValidationError
from trellis_contracts.recipe import Recipe
from trellis_recipes.catalogue import get_recipe

SFT = get_recipe("sft")


def fields_of(*, without: str = "") -> dict[str, Any]:
    """The recipe's fields under their present names."""
    own = SFT.model_dump(mode="json", include=set(Recipe.model_fields))
    return {name: value for name, value in own.items() if name != without}


@pytest.mark.parametrize(("old", "new"), Recipe.old_names.items())
def test_an_old_name_is_read_with_a_warning(old: str, new: str) -> None:
    given = fields_of(without=new) | {old: fields_of()[new]}

    with pytest.warns(DeprecationWarning, match=f"'{old}' of Recipe was renamed to '{new}'"):
        read = Recipe.model_validate(given)

    assert read == SFT


def test_an_answer_with_both_names_is_read_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = SFT.model_dump(mode="json")
        read = Recipe.model_validate(answer)

    assert read == SFT
    assert answer["knobs"] == answer["parameters"]
    assert answer["trains_on"] == answer["row_format"]


def test_both_names_with_different_values_are_refused() -> None:
    with pytest.raises(ValidationError, match="'trains_on' was renamed to 'row_format'"):
        Recipe.model_validate(fields_of() | {"trains_on": "text"})


def test_the_schema_of_answers_marks_old_names_as_deprecated_and_optional() -> None:
    schema = Recipe.model_json_schema(mode="serialization")

    for old, new in Recipe.old_names.items():
        assert schema["properties"][old]["deprecated"] is True
        assert old not in schema["required"]
        assert new in schema["required"]
