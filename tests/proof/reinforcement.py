"""Runs of RL recipes on the starter model, and what they are held against."""

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.attempt import REWARDS_FILE
from trellis_contracts.rewards import RewardResources
from trellis_testing.engine_runs import EngineRun, compose_job, run_engine
from trellis_testing.proof_report import report_proof
from trellis_testing.starter import Starter

SEED = 0
STEPS = 6
#: Steps at the end whose rewards are compared.
COMPARED_STEPS = 3
#: What every run shares, so that it can be held against one control: the prompts of each step and how
#: they are answered. No validation and no checkpoint but the last.
COMMON: dict[str, Any] = {
    "total_steps": STEPS,
    "batch_size": 32,
    "group_size": 8,
    "validate_before": False,
    "validate_every": 0,
    "save_every": 0,
}
#: A validation after the last step.
VALIDATED: dict[str, Any] = {"validate_every": STEPS, "validation_samples": 4}
#: Composed settings that decide which responses are sampled, while the weights are the same.
SAMPLING = (
    "actor_rollout_ref.model.path",
    "actor_rollout_ref.rollout.dtype",
    "actor_rollout_ref.rollout.max_model_len",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.name",
    "actor_rollout_ref.rollout.seed",
    "actor_rollout_ref.rollout.temperature",
    "actor_rollout_ref.rollout.top_k",
    "actor_rollout_ref.rollout.top_p",
    "data.max_prompt_length",
    "data.max_response_length",
    "data.seed",
    "data.shuffle",
    "data.train_batch_size",
)


#: In standard errors, and in reward: what noise cannot give.
REQUIRED_ERRORS, REQUIRED_GAIN = 3.0, 0.05
#: Where the runs that are resumed by a test leave a checkpoint.
SAVED_STEP = 3
#: Metrics that depend on the machine and not on what is computed.
OF_THE_MACHINE = (
    *("timing", "perf/", "actor/perf/", "critic/perf/"),
    *("response_time_s/", "rollout_engine/", "process_busy/"),
)
#: Metrics of the difference between the rollout engine's probabilities and the trainer's.
OF_THE_SAMPLER = ("rollout_corr/", "training/rollout_")
#: Two updates a step.
MINI_BATCH = 16
#: What the run of a recipe sets beside what all share. Recipes for one response a prompt sample groups
#: here, so that all runs answer the same prompts alike often.
PARAMS: dict[str, dict[str, Any]] = {
    "ppo": {"mini_batch_size": MINI_BATCH, "save_every": SAVED_STEP},
    "grpo": {"use_kl_loss": True, "kl_coefficient": 0.01},
    "dr_grpo": {},
    "gspo": {},
    "rloo": {"mini_batch_size": MINI_BATCH},
    "remax": {"mini_batch_size": MINI_BATCH},
    "reinforce_plus_plus": {"mini_batch_size": MINI_BATCH},
    "reinforce_plus_plus_baseline": {},
    "opo": {},
    "cispo": {},
    "sapo": {},
    "gpg": {},
}


@dataclass(frozen=True)
class Gain:
    """How much more a run was rewarded than its control on the same prompts."""

    control: float
    trained: float
    #: Standard error of the difference, from how it varies over prompts.
    error: float

    @property
    def difference(self) -> float:
        return self.trained - self.control


class ReinforcementRuns:
    """Every run is made when it is first asked for, and once."""

    def __init__(self, folder: Path, starter: Starter, join_ray: Callable[[], dict[str, str]]) -> None:
        self._folder = folder
        self._starter = starter
        self._join_ray = join_ray
        self._runs: dict[str, EngineRun] = {}

    def run(
        self,
        recipe: str,
        name: str | None = None,
        *,
        validate: bool = False,
        resources: RewardResources | None = None,
        **params: Any,
    ) -> EngineRun:
        """A run from the taught starter; the same name gives the same run.

        ``resources`` are what its rewards need, handed over as the platform does.
        """
        name = name or recipe
        if name not in self._runs:
            job = self.compose(recipe, name, validate=validate, **params)
            if resources is not None:
                (job.folder / REWARDS_FILE).write_text(resources.model_dump_json())
            self._runs[name] = run_engine(job, environment=self._join_ray())
        return self._runs[name]

    def control(self) -> EngineRun:
        """GRPO with learning rate 0: it samples as the others do and stays as it is."""
        return self.run("grpo", "control", learning_rate=0.0, validate=True, **VALIDATED)

    def resume(self, run: EngineRun, step: int, *, total_steps: int) -> EngineRun:
        """A second attempt of the job, from its checkpoint at ``step``."""
        spec = run.spec
        again = compose_job(
            run.folder.parent,
            recipe=spec.recipe,
            model=self._starter.taught,
            rows=self._starter.rl_train,
            params={**spec.params, "total_steps": total_steps},
            measured=[f"trainer.rollout_data_dir={run.folder.parent}/attempt-2/scores"],
            seed=SEED,
            attempt=2,
            resume_from=run.checkpoint(step)["path"],
        )
        return run_engine(again, environment=self._join_ray())

    def compose(self, recipe: str, name: str, *, validate: bool = False, **params: Any) -> EngineRun:
        folder = self._folder / name
        validation = self._starter.rl_validation if validate else None
        rows_held_out = {} if validate else {"validation_rows": 0}
        return compose_job(
            folder,
            recipe=recipe,
            model=self._starter.taught,
            rows=self._starter.rl_train,
            validation=validation,
            params={**COMMON, **rows_held_out, **params},
            measured=[f"trainer.rollout_data_dir={folder}/attempt-1/scores"],
            seed=SEED,
        )


def run_of(runs: ReinforcementRuns, recipe: str) -> EngineRun:
    """The run that proves a recipe."""
    return runs.run(recipe, recipe, **PARAMS[recipe])


def run_with_adapter(runs: ReinforcementRuns) -> EngineRun:
    """GRPO with LoRA; an adapter stands about ten times the learning rate of all weights."""
    return runs.run(
        "grpo", "grpo-lora", lora_rank=8, lora_alpha=16, learning_rate=2e-3, save_every=SAVED_STEP
    )


def sampling_of(run: EngineRun) -> dict[str, Any]:
    """What decides the responses of a run."""

    def find(dotted: str) -> Any:
        value: Any = run.config
        for part in dotted.split("."):
            value = value[part]
        return value

    return {key: find(key) for key in SAMPLING}


@cache
def _read_scores(path: Path) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in path.read_bytes().splitlines())


def read_responses(run: EngineRun, step: int) -> tuple[dict[str, Any], ...]:
    """All responses of a step as verl writes them down: ``uid`` (prompt_session_output), ``score``, ..."""
    return _read_scores(run.folder / "scores" / f"{step}.jsonl")


def as_scored(response: dict[str, Any]) -> float:
    """What a response was rewarded with."""
    return float(response["score"])


def scores_by_prompt(
    run: EngineRun, step: int, score: Callable[[dict[str, Any]], float] = as_scored
) -> dict[str, list[float]]:
    """The scores of each prompt's responses at a step."""
    groups: dict[str, list[float]] = defaultdict(list)
    for response in read_responses(run, step):
        groups[response["uid"].rsplit("_", 2)[0]].append(score(response))
    return dict(groups)


def question_of(prompt: str) -> str:
    """The question in a prompt as the chat template wrote it, less its marks."""
    return prompt.removeprefix("user\n").removesuffix("\nassistant\n")


def held_out_accuracy(run: EngineRun) -> float:
    """Share of correct responses to the validation prompts after the last step."""
    return run.held_out_accuracy(STEPS)


def measure_gain(
    run: EngineRun,
    control: EngineRun,
    *,
    steps: int = COMPARED_STEPS,
    score: Callable[[dict[str, Any]], float] = as_scored,
) -> Gain:
    """Compare the mean rewards of the last steps prompt by prompt.

    Both runs answered the same prompts, so the difficulty of a prompt cancels out and the
    error of the mean difference follows from how the differences scatter. ``score`` stands
    in for the scores of a control that was rewarded for something else.
    """
    pairs: list[tuple[float, float]] = []
    last = max(run.curve("critic/score/mean"))
    for step in range(last - steps + 1, last + 1):
        ours, theirs = scores_by_prompt(run, step), scores_by_prompt(control, step, score)
        assert ours.keys() == theirs.keys(), "the runs did not answer the same prompts"
        pairs += [(statistics.fmean(ours[prompt]), statistics.fmean(theirs[prompt])) for prompt in ours]
    differences = [trained - control for trained, control in pairs]
    return Gain(
        control=statistics.fmean(control for _, control in pairs),
        trained=statistics.fmean(trained for trained, _ in pairs),
        error=statistics.stdev(differences) / math.sqrt(len(differences)),
    )


def answers(
    run: EngineRun, step: int, score: Callable[[dict[str, Any]], float] = as_scored
) -> list[tuple[str, str, str, float]]:
    """What was asked, answered and scored at a step."""
    return [(each["uid"], each["input"], each["output"], score(each)) for each in read_responses(run, step)]


def expect_gain(
    name: str,
    run: EngineRun,
    control: EngineRun,
    score: Callable[[dict[str, Any]], float] = as_scored,
) -> None:
    """The comparison is fair, and the run was rewarded more than the control by what noise cannot give."""
    assert sampling_of(run) == sampling_of(control)
    assert list(run.curve("critic/score/mean")) == list(range(1, STEPS + 1))
    # Before anything was learned, both answered the same prompts with the same words.
    assert answers(run, 1) == answers(control, 1, score)
    gain = measure_gain(run, control, score=score)
    report_proof(
        name,
        measure="mean reward",
        control=gain.control,
        trained=gain.trained,
        error=gain.error,
        seconds=run.seconds,
    )
    assert gain.difference > max(REQUIRED_ERRORS * gain.error, REQUIRED_GAIN), gain


def expect_same_steps(resumed: EngineRun, run: EngineRun) -> None:
    """Two steps after the checkpoint, bit by bit: the first shows the weights, the second the optimizer.

    The rollout engine's own probabilities may differ in the last bits, as vLLM computes together what happens
    to arrive together; nothing is trained on them.
    """
    assert SAVED_STEP + 2 < STEPS
    for step in (SAVED_STEP + 1, SAVED_STEP + 2):
        ours, theirs = computed_at(resumed, step), computed_at(run, step)
        assert {"actor/pg_loss", "actor/grad_norm", "actor/entropy", "critic/score/mean"} <= ours.keys()
        of_sampler = {name: theirs.pop(name) for name in list(theirs) if name.startswith(OF_THE_SAMPLER)}
        assert {name: ours.pop(name) for name in of_sampler} == pytest.approx(of_sampler, abs=1e-5)
        assert ours == theirs


def computed_at(run: EngineRun, step: int) -> dict[str, float]:
    """The metrics of a step that do not tell of the machine."""
    return {name: value for name, value in run.metrics(step).items() if not name.startswith(OF_THE_MACHINE)}
