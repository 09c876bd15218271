"""Properties of parameter validation and of the text handed to Hydra."""

import re
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.recipe import Parameter, Text
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.hydra_text import NotExpressible, text
from trellis_recipes.recipe_parameters import check_value, resolve_parameters

JSON_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(
    JSON_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
PARAMETERS = [parameter for recipe in list_recipes() for parameter in recipe.parameters]
#: Texts of several lines among them.
PRINTABLE = st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\r\t")).filter(
    lambda value: "${" not in value
)
PARSER = OverridesParser.create()


def parameter_of(type_: Any, **limits: Any) -> Parameter:
    words = Text(en="x", zh="x")
    return Parameter(name="k", type=type_, default=None, title=words, help=words, **limits)


@settings(deadline=None)
@given(parameter=st.sampled_from(PARAMETERS), value=JSON)
def test_a_value_is_either_accepted_within_its_limits_or_explained(parameter: Parameter, value: Any) -> None:
    accepted, problem = check_value(parameter, value)

    if problem is not None:
        assert parameter.name in problem
    elif accepted is not None and not isinstance(accepted, bool | str):
        assert parameter.minimum is None or accepted >= parameter.minimum
        assert parameter.maximum is None or accepted <= parameter.maximum
        assert parameter.exclusive_minimum is None or accepted > parameter.exclusive_minimum


@given(value=st.integers(), low=st.integers(-100, 100))
def test_integers_keep_their_value(value: int, low: int) -> None:
    accepted, problem = check_value(parameter_of("int", minimum=low), value)

    assert (problem is None) == (value >= low)
    assert accepted == value


@given(value=st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: not value.is_integer()))
def test_a_fraction_is_not_an_integer(value: float) -> None:
    assert check_value(parameter_of("int"), value)[1] is not None


@given(value=st.booleans())
def test_a_boolean_is_not_a_number(value: bool) -> None:
    assert check_value(parameter_of("int"), value)[1] is not None
    assert check_value(parameter_of("float"), value)[1] is not None


@pytest.mark.parametrize(
    "parameter",
    [parameter for parameter in PARAMETERS if re.search("(If|Leave) empty", parameter.help.en)],
    ids=lambda parameter: parameter.name,
)
def test_what_may_be_left_empty_as_its_help_says_takes_nothing(parameter: Parameter) -> None:
    accepted, problem = check_value(
        parameter, "" if parameter.type == "str" and parameter.default == "" else None
    )

    assert not accepted
    assert problem is None


def test_an_unknown_parameter_is_named_with_the_nearest_one() -> None:
    _, (issue,) = resolve_parameters(get_recipe("grpo"), None, {"group_sise": 4})

    assert (issue.code, issue.field, issue.suggestion) == (
        "unknown_parameter",
        "params.group_sise",
        "group_size",
    )


@settings(deadline=None)  # the first example reads the engine's files
@given(
    params=st.dictionaries(
        st.sampled_from([parameter.name for parameter in PARAMETERS]) | st.text(), JSON, max_size=4
    )
)
def test_composing_never_raises_for_a_persons_mistakes(params: dict[str, Any]) -> None:
    request = ComposeRequest(
        recipe="grpo",
        params=params,
        overrides=params,
        platform="cpu",
        gpus=1,
        model_path="/m",
        train_path="/t/train.parquet",
        checkpoint_dir="/c",
        seed=0,
    )

    composition = compose(request)

    assert composition.errors or composition.config


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name.lower() not in {"null", "true", "false", "nan", "inf"}
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PRINTABLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(value=VALUES)
def test_hydra_reads_a_value_as_it_was_meant(value: Any) -> None:
    override = PARSER.parse_override(f"key={text(value)}")

    assert _plain(override.value()) == value


@given(
    value=st.text().filter(
        lambda value: "${" in value or any(ord(c) < 32 and c not in "\n\r\t" for c in value)
    )
)
def test_what_hydra_would_change_is_refused(value: str) -> None:
    try:
        text(value)
    except NotExpressible:
        return
    raise AssertionError(f"{value!r} was written")


def _plain(value: Any) -> Any:
    """Hydra's quoted strings as plain ones."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.text if hasattr(value, "text") else value


def test_qlora_where_the_trainer_has_none_says_what_works() -> None:
    for recipe in (get_recipe("sft"), get_recipe("grpo")):
        _, (issue,) = resolve_parameters(recipe, None, {"quantize_base": True})

        assert (issue.code, issue.field) == ("qlora_unsupported", "params.quantize_base")
        assert "lora_rank" in issue.message
        able = [other.id for other in list_recipes() if other.parameter("quantize_base")]
        assert all(name in issue.message for name in able)
