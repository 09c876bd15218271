"""From verl's settings in a script to a recipe, parameters and overrides, and what was left out and why."""

import re
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString
from hydra.errors import HydraException
from pydantic import Field
from trellis_contracts.recipe import Engine, Parameter, Recipe, Strict

from trellis_recipes.catalogue import list_recipes
from trellis_recipes.compose import compose
from trellis_recipes.issues import Issue
from trellis_recipes.overrides import check_overrides
from trellis_recipes.recipe_parameters import check_value
from trellis_recipes.request import ComposeRequest
from trellis_recipes.schema import EngineSchema, load_schema
from trellis_recipes.script_import.command import PROGRAMS, Command, find_command
from trellis_recipes.script_import.words import Unreadable

#: Settings that the platform keeps elsewhere in a job, and under what name.
_ELSEWHERE = {
    "actor_rollout_ref.model.path": "model",
    "model.path": "model",
    "model.partial_pretrain": "model",
    "data.train_files": "dataset",
    "data.val_files": "validation_dataset",
    "trainer.experiment_name": "name",
    "trainer.n_gpus_per_node": "resources.gpus",
    "trainer.nnodes": "resources.gpus",
}
#: Settings of the run that a parameter stands for in other terms: -1 is never, for verl.
_RUN_PARAMETERS = {
    "trainer.total_epochs": "epochs",
    "trainer.total_training_steps": "total_steps",
    "trainer.save_freq": "save_every",
    "trainer.test_freq": "validate_every",
    "trainer.val_before_train": "validate_before",
    "trainer.max_actor_ckpt_to_keep": "keep_checkpoints",
    "trainer.max_ckpt_to_keep": "keep_checkpoints",
}
#: What Hydra takes in quotes only and a script often has without: a folder below the home folder, a name.
_PLAIN_TEXT = re.compile(r"[\w~/.:@ \-]+")
_MAX_ARGUMENTS = 2000
#: What defines an algorithm of verl's, the weightiest first.
_DEFINING = (
    "algorithm.adv_estimator",
    "actor_rollout_ref.actor.policy_loss.loss_mode",
    "reward.reward_manager.name",
    "algorithm.norm_adv_by_std_in_grpo",
    "actor_rollout_ref.actor.loss_agg_mode",
)


class BadScript(ValueError):
    """The text is no script that starts verl; the message says what is missing."""


class LeftOut(Strict):
    """A setting of the script that the job does not get."""

    setting: str
    value: str
    code: str
    reason: str


class ImportedScript(Strict):
    """A job as far as a script describes it."""

    program: str = Field(description="The module of verl's that the script starts.")
    recipe: str
    name: str | None = Field(description="The experiment's name; null where the script gives none.")
    gpus: int = Field(description="GPUs of all nodes together.")
    model: str | None = Field(description="The model as the script names it: a folder, or a name on the hub.")
    dataset: str | None = Field(description="The training files as the script names them.")
    validation_dataset: str | None
    params: dict[str, Any]
    overrides: dict[str, Any]
    left_out: list[LeftOut]
    problems: list[Issue] = Field(description="What the composed configuration would be refused for.")


def import_script(script: str, *, platform: str) -> ImportedScript:
    """Read a script that starts verl's PPO or SFT trainer; raises ``BadScript``. Nothing of it is run."""
    command = _require_command(script)
    engine = PROGRAMS[command.program]
    settings, left_out = _read_settings(command)
    kept = {name: settings[key] for key, name in _ELSEWHERE.items() if key in settings}
    gpus = _count_gpus(settings)
    plain = {key: value for key, value in settings.items() if key not in _ELSEWHERE}
    schema = load_schema(engine)
    accepted, issues = check_overrides(schema, plain)
    if moved := _moved_keys(issues, plain):
        plain = {moved.get(key, key): value for key, value in plain.items()}
        accepted, issues = check_overrides(schema, plain)
    left_out += [_left_out(issue, plain) for issue in issues]
    recipe = _choose_recipe(engine, accepted, schema)
    params, overrides = _split(recipe, accepted)
    return ImportedScript(
        program=command.program,
        recipe=recipe.id,
        name=_text(kept.get("name")),
        gpus=gpus,
        model=_text(kept.get("model")),
        dataset=_text(kept.get("dataset")),
        validation_dataset=_text(kept.get("validation_dataset")),
        params=params,
        overrides=overrides,
        left_out=left_out,
        problems=_find_problems(recipe, params, overrides, platform=platform, gpus=gpus),
    )


def _require_command(script: str) -> Command:
    try:
        command = find_command(script)
    except Unreadable as error:
        raise BadScript(f"The script cannot be read: {error}") from None
    if command is None:
        raise BadScript(
            "No line of the script launches verl. Expected a line like 'python3 -m "
            "verl.trainer.main_ppo key=value ...'."
        )
    if command.program not in PROGRAMS:
        raise BadScript(
            f"The script starts '{command.program}', which the platform does not run. "
            f"It runs {', '.join(sorted(PROGRAMS))}."
        )
    if len(command.arguments) > _MAX_ARGUMENTS:
        raise BadScript(f"The command has {len(command.arguments)} arguments; {_MAX_ARGUMENTS} are read.")
    return command


def _read_settings(command: Command) -> tuple[dict[str, Any], list[LeftOut]]:
    """Read the settings by key (the last value of each) and the arguments that are not settings."""
    parser = OverridesParser.create()
    settings: dict[str, Any] = {}
    left_out = [_not_known(written, reason) for written, reason in command.unknown]
    for argument in command.arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("-") or not equals:
            left_out.append(_option(argument))
            continue
        try:
            parsed = parser.parse_override(argument)
        except HydraException:
            if _PLAIN_TEXT.fullmatch(value):
                settings[name.lstrip("+")] = value
                continue
            reason = "the value cannot be read as one of Hydra's"
            left_out.append(LeftOut(setting=name.lstrip("+~"), value=value, code="unreadable", reason=reason))
            continue
        if parsed.is_delete() or parsed.is_sweep_override() or parsed.package is not None:
            reason = "a job sets keys to values; it deletes none and tries no variants"
            left_out.append(LeftOut(setting=name.lstrip("+~"), value=value, code="unreadable", reason=reason))
            continue
        settings[parsed.key_or_group] = _plain(parsed.value())
    if command.others:
        reason = "only the first command of the script that starts verl is read"
        left_out.append(
            LeftOut(setting=f"{command.others} more", value="", code="further_command", reason=reason)
        )
    return settings, left_out


def _not_known(written: str, reason: str) -> LeftOut:
    name, _, value = written.partition("=")
    return LeftOut(setting=name.lstrip("+"), value=value, code="unknown_value", reason=reason)


def _option(argument: str) -> LeftOut:
    name, _, value = argument.partition("=")
    reason = "an option of the command, not a setting; the platform composes verl's standard configuration"
    return LeftOut(setting=name, value=value, code="command_option", reason=reason)


def _plain(value: Any) -> Any:
    """Convert Hydra's own types in a value to plain Python types."""
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    return value


def _moved_keys(issues: list[Issue], settings: dict[str, Any]) -> dict[str, str]:
    """Return the keys of an older verl, by the keys that replaced them."""
    moved = {}
    for issue in issues:
        key, place = issue.field.removeprefix("overrides."), issue.suggestion
        if issue.code == "ineffective_key" and key in settings and place and place not in settings:
            moved[key] = place
    return moved


def _left_out(issue: Issue, settings: dict[str, Any]) -> LeftOut:
    key = issue.field.removeprefix("overrides.")
    value = settings.get(key, next((below for name, below in settings.items() if key.startswith(name)), ""))
    return LeftOut(setting=key, value=_text(value) or "", code=issue.code, reason=issue.message)


def _count_gpus(settings: dict[str, Any]) -> int:
    nodes, each = settings.get("trainer.nnodes", 1), settings.get("trainer.n_gpus_per_node", 8)
    counts = [count for count in (nodes, each) if isinstance(count, int) and 0 < count <= 4096]
    return counts[0] * counts[1] if len(counts) == 2 else 1


def _choose_recipe(engine: Engine, settings: dict[str, Any], schema: EngineSchema) -> Recipe:
    """Choose the recipe whose fixed settings are most similar to the script's."""
    recipes = [each for each in list_recipes() if each.engine is engine and each.family != "agent"]
    if engine is Engine.VERL_SFT:
        return next(each for each in recipes if each.id == "sft")

    def likeness(recipe: Recipe) -> tuple[bool, ...]:
        return tuple(_effective(key, settings, schema, recipe) == recipe.fixed.get(key) for key in _DEFINING)

    # GRPO leaves the averaging of the loss to a parameter, so it stands for all that no other recipe is.
    return max(recipes, key=lambda recipe: (*likeness(recipe), recipe.id == "grpo"))


def _effective(key: str, settings: dict[str, Any], schema: EngineSchema, recipe: Recipe) -> Any:
    if key in settings:
        return settings[key]
    if key not in recipe.fixed:
        return None
    node: Any = schema.tree
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _split(recipe: Recipe, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split into parameters where the recipe has one for a setting, and overrides, without what it fixes."""
    params: dict[str, Any] = {}
    rest = {key: value for key, value in settings.items() if recipe.fixed.get(key, _NOTHING) != value}
    for parameter in recipe.parameters:
        keys = [key for key in parameter.engine_keys if key in rest]
        if (
            keys
            and len(keys) == len(parameter.engine_keys)
            and all(rest[key] == rest[keys[0]] for key in keys)
        ):
            _take(params, rest, parameter, keys, rest[keys[0]])
    for key, name in _RUN_PARAMETERS.items():
        parameter_of_run = recipe.parameter(name)
        if key in rest and parameter_of_run is not None:
            value = rest[key]
            # Verl's own "never" and "as often as it comes out" are empty parameters here.
            is_never = isinstance(value, int) and not isinstance(value, bool) and value < 1
            _take(params, rest, parameter_of_run, [key], None if is_never else value)
    return params, rest


_NOTHING = object()


def _take(
    params: dict[str, Any], rest: dict[str, Any], parameter: Parameter, keys: list[str], value: Any
) -> None:
    """Move a setting to its parameter, where that takes the value."""
    checked, problem = check_value(parameter, value)
    if problem is None:
        params[parameter.name] = checked
        for key in keys:
            del rest[key]


def _find_problems(
    recipe: Recipe, params: dict[str, Any], overrides: dict[str, Any], *, platform: str, gpus: int
) -> list[Issue]:
    """Find errors of the whole, with a model and data that are still to be chosen."""
    request = ComposeRequest(
        recipe=recipe.id,
        params=params,
        overrides=overrides,
        platform=platform,
        gpus=gpus,
        model_path="/model",
        train_path="/train.parquet",
        checkpoint_dir="/checkpoints",
        seed=1,
    )
    return compose(request).errors


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value)
