"""The JSON Schema of parameters: valid, alike in all four kinds, and in line with the checks of a request."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta
from trellis_contracts.parameter_schema import (
    DIALECT,
    describe_environment_kind,
    describe_recipe,
    describe_reward,
)
from trellis_contracts.recipe import Parameter
from trellis_data.catalogue import describe, operators
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.environments import environment_kinds
from trellis_recipes.recipe_parameters import check_value
from trellis_recipes.rewards import reward_kinds

#: By name: the schema, and the parameters it was made from (none of operators: these are pydantic models).
SCHEMAS: dict[str, tuple[dict[str, Any], list[Parameter]]] = {
    **{f"recipe {each.id}": (describe_recipe(each), each.parameters) for each in list_recipes()},
    **{
        f"environment {name}": (describe_environment_kind(each), each.parameters)
        for name, each in environment_kinds().items()
    },
    **{f"reward {name}": (describe_reward(each), [*each.options]) for name, each in reward_kinds().items()},
    **{f"operator {name}": (describe(each)["params_schema"], []) for name, each in operators().items()},
}
#: A parameter of each type with its schema, from which the dashboard's tests read.
EXAMPLES = Path(__file__).parents[2] / "frontend/src/jobs/launch/param.examples.json"
TERM = {"name": "exact", "weight": 1.0, "options": {}}


def list_values(parameter: Parameter) -> Iterator[Any]:
    """Values of every JSON type, and those at and beyond the parameter's bounds."""
    yield from (None, True, 0, 1, 0.5, 3.0, -1, "", "text", [], [1], [TERM], [{"name": 1}], {}, {"a": 1})
    yield from parameter.choices
    for bound in (parameter.minimum, parameter.maximum, parameter.exclusive_minimum):
        if bound is not None:
            yield from (bound, bound - 1, bound + 1)


def is_valid(schema: dict[str, Any]) -> Callable[[Any], bool]:
    return Draft202012Validator(schema).is_valid


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_kind_publishes_a_valid_schema_with_texts_in_both_languages(name: str) -> None:
    schema, _ = SCHEMAS[name]

    meta.validate(schema)
    assert schema["$schema"] == DIALECT
    assert schema["additionalProperties"] is False
    for each in schema["properties"].values():
        assert each["title"] == each["title_texts"]["en"]
        assert each["description"] == each["help_texts"]["en"]
        assert all(each["title_texts"].values())
        assert each["title_texts"].keys() == each["help_texts"].keys() == {"en", "zh"}


@pytest.mark.parametrize("name", [name for name in SCHEMAS if SCHEMAS[name][1]])
def test_a_value_fits_the_schema_exactly_if_the_check_of_a_request_accepts_it(name: str) -> None:
    schema, parameters = SCHEMAS[name]

    for parameter in parameters:
        fits = is_valid(schema["properties"][parameter.name])
        for value in list_values(parameter):
            if value is None and parameter.name in schema["required"]:
                continue  # where a required value is missing is said with all others
            problem = check_value(parameter, value)[1]
            assert fits(value) == (problem is None), (parameter.name, value, problem)


@pytest.mark.parametrize("name", [name for name in SCHEMAS if not SCHEMAS[name][0].get("required")])
def test_defaults_fit_their_own_schema(name: str) -> None:
    schema, _ = SCHEMAS[name]

    defaults = {key: each["default"] for key, each in schema["properties"].items() if "default" in each}
    assert is_valid(schema)(defaults)
    assert not is_valid(schema)({**defaults, "no_such_parameter": 1})


def test_what_must_be_given_is_required() -> None:
    assert SCHEMAS["reward regex"][0]["required"] == ["pattern"]
    assert SCHEMAS["environment linksearch_database"][0]["required"] == ["database", "queries"]


def test_values_that_name_things_of_the_platform_say_which() -> None:
    reward, environment = SCHEMAS["reward reward_model"][0], SCHEMAS["environment linksearch_database"][0]

    assert reward["properties"]["model"]["source"] == "models"
    assert environment["properties"]["database"]["source"] == "database"
    assert SCHEMAS["recipe linksearch"][0]["properties"]["environment"]["source"] == "environment"


def test_the_dashboards_examples_are_what_the_platform_publishes() -> None:
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    parameters = [Parameter.model_validate(each) for each in examples["parameters"]]
    recipe = list_recipes()[0].model_copy(update={"parameters": parameters})

    assert [each.model_dump(mode="json") for each in parameters] == examples["parameters"]
    assert describe_recipe(recipe) == examples["params_schema"]
