"""Which mixtures are accepted, and what is said about those that are not."""

import json
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from trellis_contracts.rewards import RewardTerm
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.recipe_parameters import check_value
from trellis_recipes.reward_probes import NotProbed, plan_probes
from trellis_recipes.rewards import check_mixture, reward_kinds

#: Regular expressions that Python's own module refuses by errors other than its own.
HUGE, DEEP = "a{99999999999999}", "(" * 3000 + ")" * 3000


def codes_of(rewards: object) -> set[tuple[str, str]]:
    return {(issue.code, issue.field) for issue in check_mixture(rewards)[1]}


def test_defaults_are_filled_in() -> None:
    terms, issues = check_mixture([{"name": "length"}])

    assert issues == []
    assert terms[0].weight == 1.0
    assert terms[0].options == {"free_length": 1000, "unit": "characters"}


@pytest.mark.parametrize("kind", reward_kinds().values(), ids=lambda kind: kind.name)
def test_every_default_is_a_value_that_its_option_accepts(kind: Any) -> None:
    for option in kind.options:
        assert check_value(option, option.default)[1] is None
        assert option.is_required == (option.default is None)


@pytest.mark.parametrize(
    ("rewards", "issue"),
    [
        (None, ("invalid_rewards", "params.rewards")),
        ([], ("invalid_rewards", "params.rewards")),
        ("math", ("invalid_rewards", "params.rewards")),
        ([{"name": "exact"}] * 9, ("invalid_rewards", "params.rewards")),
        ([{"weight": 1}], ("invalid_rewards", "params.rewards.0.name")),
        ([{"name": "maths"}], ("unknown_reward", "params.rewards.0.name")),
        ([{"name": "exact"}, {"name": "exact"}], ("reward_twice", "params.rewards")),
        ([{"name": "exact", "weight": float("inf")}], ("invalid_weight", "params.rewards.0.weight")),
        ([{"name": "exact", "weight": 0}], ("weightless_rewards", "params.rewards")),
        ([{"name": "exact", "options": {"x": 1}}], ("unknown_option", "params.rewards.0.options.x")),
        ([{"name": "regex"}], ("option_missing", "params.rewards.0.options.pattern")),
        *(
            (
                [{"name": "regex", "options": {"pattern": pattern}}],
                ("invalid_value", "params.rewards.0.options.pattern"),
            )
            for pattern in ("(", HUGE, DEEP)
        ),
        *(
            (
                [{"name": "json_schema", "options": {"schema": schema}}],
                ("invalid_value", "params.rewards.0.options.schema"),
            )
            for schema in (json.dumps({"pattern": HUGE}), '{"not": ' * 400 + "{}" + "}" * 400)
        ),
        (
            [{"name": "length", "options": {"free_length": 0}}],
            ("invalid_value", "params.rewards.0.options.free_length"),
        ),
        (
            [{"name": "json_schema", "options": {"schema": "{"}}],
            ("invalid_value", "params.rewards.0.options.schema"),
        ),
        (
            [{"name": "json_schema", "options": {"schema": json.dumps({"type": "nosuch"})}}],
            ("invalid_value", "params.rewards.0.options.schema"),
        ),
        (
            [{"name": "judge", "options": {"endpoint": "a", "template": "{prompt}"}}],
            ("invalid_value", "params.rewards.0.options.template"),
        ),
        (
            [{"name": "judge", "options": {"endpoint": "a", "template": "{response.__class__}"}}],
            ("invalid_value", "params.rewards.0.options.template"),
        ),
        (
            [{"name": "judge", "options": {"endpoint": "a", "lowest": 5, "highest": 5}}],
            ("invalid_value", "params.rewards.0.options.highest"),
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(rewards: object, issue: tuple[str, str]) -> None:
    assert issue in codes_of(rewards)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    (issue,) = check_mixture([{"name": "json_shema"}])[1]

    assert issue.suggestion == "json_schema"


def composed(rewards: list[dict[str, Any]], *, platform: str = "cpu") -> Any:
    return compose(
        ComposeRequest(
            recipe="grpo", params={"rewards": rewards}, platform=platform, gpus=1, model_path="m",
            train_path="/t/train.parquet", checkpoint_dir="/c", seed=0,
        )
    )  # fmt: skip


#: What every kind is given that has no default for it; texts of several lines, as people write them.
GIVEN: dict[str, dict[str, Any]] = {
    "regex": {"pattern": r"= (\d+)"},
    "json_schema": {"schema": json.dumps({"type": "object", "required": ["it's"]}, indent=2)},
    "reward_model": {"model": "mdl_x"},
    "judge": {"endpoint": "strict"},
    "python": {"file": "rwf_x"},
}


@pytest.mark.parametrize("kind", reward_kinds().values(), ids=lambda kind: kind.name)
def test_every_reward_reaches_the_engine_as_it_was_given(kind: Any) -> None:
    given = GIVEN.get(kind.name, {})
    defaults = {option.name: option.default for option in kind.options}

    job = composed([{"name": kind.name, "options": given}])

    assert job.errors == []
    (line,) = (line for line in job.engine_overrides if "reward_kwargs" in line)
    (term,) = OverridesParser.create().parse_override(line).value()["rewards"]
    assert term["options"] == {**defaults, **given}


def test_a_recipe_takes_a_mixture_and_refuses_a_wrong_one() -> None:
    good = composed([{"name": "math"}, {"name": "repetition", "weight": 0.2}])
    bad = composed([{"name": "maths"}])

    kwargs = good.config["reward"]["custom_reward_function"]["reward_kwargs"]
    assert good.errors == []
    assert [(term["name"], term["weight"]) for term in kwargs["rewards"]] == [
        ("math", 1.0),
        ("repetition", 0.2),
    ]
    assert kwargs["rewards"][1]["options"] == {"ngram": 4}
    assert {issue.code for issue in bad.errors} == {"unknown_reward"}


def test_a_reward_model_is_loaded_by_one_worker_on_gpus_too() -> None:
    with_model = composed([{"name": "reward_model", "options": {"model": "mdl_x"}}], platform="cuda")
    beside_another = composed(
        [{"name": "math"}, {"name": "reward_model", "options": {"model": "mdl_x"}}], platform="cuda"
    )
    without = composed([{"name": "math"}], platform="cuda")

    assert [job.errors for job in (with_model, beside_another, without)] == [[], [], []]
    assert with_model.config["reward"]["num_workers"] == 1
    assert beside_another.config["reward"]["num_workers"] == 1
    assert without.config["reward"]["num_workers"] > 1


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["python"], NotProbed.UNBOUNDED),
        (["reward_model"], NotProbed.UNBOUNDED),
        (["math", "python"], NotProbed.UNBOUNDED),
        (["code"], NotProbed.NOTHING_TO_EARN),
        (["math", "code"], None),
    ],
)
def test_a_mixture_says_why_tricks_are_not_scored(names: list[str], reason: NotProbed | None) -> None:
    assert plan_probes([RewardTerm(name=name) for name in names]).reason == reason
