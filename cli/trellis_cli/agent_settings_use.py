"""Which keys of a tool-use settings file a command does not use, and what to give it instead.

One file serves all stages, so keys of other stages are no error; a key without effect is told of.
"""

from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel
from trellis_recipes.tool_use_settings import Algorithm, ToolUseSettings

PIPELINE, SFT, RETRIEVAL, DPO = "pipeline", "sft", "retrieval", "dpo"
_ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
#: Told of even where a file sets them to their defaults, which name rows that are not what is trained on.
_ROWS = frozenset({"sft.train_data", "sft.dev_data", "warm_up.data"})


def list_unused(settings: ToolUseSettings, command: str, *, samples_pairs: bool = False) -> list[str]:
    """Return a sentence for each reason why keys set in the file have no effect on ``command``.

    Keys at their defaults are left out: files that were written by a program set all of them.
    ``command`` is a stage of `trellis agent train`, or ``pipeline``; ``samples_pairs`` whether the model's
    own responses become pairs.
    """
    reasons = list(_reasons(settings, command, samples_pairs=samples_pairs))
    told: dict[str, list[str]] = {}
    for key in list_set_keys(settings):
        if key not in _ROWS and _is_default(settings, key):
            continue
        reason = next((why for place, why in reasons if key == place or key.startswith(f"{place}.")), None)
        if reason is not None:
            told.setdefault(reason, []).append(key)
    return [f"no effect: {', '.join(keys)}; {reason}" for reason, keys in told.items()]


def list_set_keys(settings: BaseModel, place: str = "") -> list[str]:
    """List the keys that a file sets, as in ``rl.dpo.beta``."""
    found: list[str] = []
    for name in type(settings).model_fields:
        if name not in settings.model_fields_set:
            continue
        value = getattr(settings, name)
        key = f"{place}{name}"
        found += list_set_keys(value, f"{key}.") if isinstance(value, BaseModel) else [key]
    return found


def _is_default(settings: BaseModel, key: str) -> bool:
    *places, name = key.split(".")
    for place in places:
        settings = getattr(settings, place)
    default: object = type(settings).model_fields[name].get_default(call_default_factory=True)
    return bool(getattr(settings, name) == default)


def _reasons(
    settings: ToolUseSettings, command: str, *, samples_pairs: bool
) -> Iterator[tuple[str, str | None]]:
    """Yield keys, or sections of the file, with why they have no effect, or None if they have one.

    The first that fits counts.
    """
    if command in (SFT, PIPELINE):
        yield from _dependent(settings)
    if command == PIPELINE:
        yield from _of_pipeline(settings)
    elif command == SFT:
        yield "rl", "they are settings of dpo, ppo and grpo"
    else:
        yield from _of_other_stage(settings, command)
    trained = settings.rl.algorithm if command == PIPELINE else command
    if trained in (SFT, RETRIEVAL):
        yield "reward", "the reward is for dpo with --num-samples, ppo and grpo"
    if trained == DPO and not samples_pairs:
        yield "reward", "for dpo, the reward only ranks sampled pairs: add --num-samples N"


def _dependent(settings: ToolUseSettings) -> Iterator[tuple[str, str]]:
    """Yield keys of supervised training that belong to something switched off."""
    if not settings.warm_up.enabled:
        for name in ("data", "samples", "focus_tags"):
            yield f"warm_up.{name}", "set warm_up.enabled: true"
    has_coreset, has_replay = settings.sft.use_coreset_selection, settings.sft.use_online_continual
    if not has_coreset:
        yield "sft.coreset_target_size", "set sft.use_coreset_selection: true"
    if not has_coreset and not has_replay:
        yield (
            "sft.coreset_strategy",
            "set sft.use_coreset_selection: true or sft.use_online_continual: true",
        )
    if not has_replay:
        for name in ("continual_buffer_size", "continual_replay_ratio"):
            yield f"sft.{name}", "set sft.use_online_continual: true"


def _of_pipeline(settings: ToolUseSettings) -> Iterator[tuple[str, str]]:
    yield "sft.base_model", "the pipeline starts from --model"
    for key in ("sft.train_data", "sft.dev_data", "warm_up.data"):
        yield key, "the pipeline trains on datasets: use --environment or --dataset dialogs=NAME"
    for algorithm in _ALGORITHMS:
        if algorithm != settings.rl.algorithm:
            yield (
                f"rl.{algorithm}",
                f"the pipeline trains with {settings.rl.algorithm}: use --algorithm {algorithm}",
            )


def _of_other_stage(settings: ToolUseSettings, stage: str) -> Iterator[tuple[str, str | None]]:
    yield "sft.base_model", None
    yield "sft.train_data", f"it names rows for sft; for {stage}, use --data"
    yield "sft.dev_data", f"it names rows for sft; for {stage}, use --dev-data"
    yield "sft", f"they are settings of sft; for {stage}, use --set NAME=VALUE"
    yield "warm_up", "a warm-up precedes sft; train sft first and pass its folder with --sft-model"
    if stage == RETRIEVAL:
        yield "preset", "it is for language models; for retrieval, use --preset with a machine preset"
    for algorithm in _ALGORITHMS:
        if algorithm != stage:
            yield f"rl.{algorithm}", f"they are settings of {algorithm}, and {stage} is trained"
    if settings.rl.algorithm != stage:
        yield "rl.algorithm", f"it selects the algorithm of trellis agent pipeline; {stage} is trained"
