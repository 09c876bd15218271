"""Preference training, run for real: on held-out pairs margins and accuracies rise from before to after."""

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trellis_contracts.spec import EXIT_STOPPED
from trellis_testing.engine_runs import EngineRun, run_engine
from trellis_testing.proof_report import report_proof
from trellis_testing.starter import Starter
from trellis_testing.watched_metrics import watched_metrics

from .preference import (
    STEPS,
    PreferenceRuns,
    first_and_last,
    read_json,
    share_of_pairs_learned,
    share_of_pairs_ranked,
)

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
#: 240 held-out pairs: by chance half of them are ranked right, give or take 0.032.
BETTER_THAN_CHANCE = 0.7
#: Of wall-clock time, which no two runs share.
CLOCKS = ("eval_runtime", "eval_samples_per_second", "eval_steps_per_second")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, starter: Starter) -> PreferenceRuns:
    return PreferenceRuns(tmp_path_factory.mktemp("preference"), starter)


@pytest.fixture(scope="module")
def dpo(runs: PreferenceRuns) -> EngineRun:
    return runs.get("dpo", "dpo")


def report(run: EngineRun, measure: str, before_and_after: tuple[float, float]) -> None:
    """Note what was measured on the pairs held out, before training and after it."""
    before, after = before_and_after
    report_proof(
        run.spec.job_id, measure=f"held-out {measure}", control=before, trained=after, seconds=run.seconds
    )


def expect_better_ranking(run: EngineRun, *, least_margin: float) -> None:
    margins = first_and_last(run, "eval_rewards/margins")
    accuracies = first_and_last(run, "eval_rewards/accuracies")
    report(run, "margin", margins)
    report(run, "accuracy", accuracies)

    assert margins[1] > margins[0] + least_margin
    assert accuracies[1] > max(BETTER_THAN_CHANCE, accuracies[0] + 0.1)


@pytest.mark.proves("dpo")
class TestDpo:
    def test_it_learns_what_is_preferred(self, dpo: EngineRun) -> None:
        expect_better_ranking(dpo, least_margin=0.5)
        assert dpo.curve("eval_loss")[0] == pytest.approx(0.6931, abs=1e-3)

    def test_what_it_says_of_itself_holds(self, dpo: EngineRun, starter: Starter) -> None:
        learned = share_of_pairs_learned(Path(dpo.checkpoint()["hf_path"]), starter.taught)

        assert learned == pytest.approx(dpo.curve("eval_rewards/accuracies")[STEPS], abs=0.03)

    def test_every_step_is_measured(self, dpo: EngineRun) -> None:
        for key in ("loss", "grad_norm", "learning_rate", "rewards/margins", "logps/chosen"):
            assert list(dpo.curve(key)) == list(range(1, STEPS + 1))
        phases = [(event["phase"], event["step"]) for event in dpo.events("progress")]
        assert ("validating", 0) in phases
        assert phases[-1] == ("finished", STEPS)

    @pytest.mark.parametrize(("loss", "least_margin"), [("hinge", 0.5), ("ipo", 0.5)])
    def test_its_other_losses_learn_too(self, runs: PreferenceRuns, loss: str, least_margin: float) -> None:
        expect_better_ranking(runs.get(f"dpo_{loss}", "dpo", loss_type=loss), least_margin=least_margin)


@pytest.mark.proves("dpo")
class TestDpoWithAdapter:
    @pytest.fixture(scope="class")
    def run(self, runs: PreferenceRuns) -> EngineRun:
        return runs.get("dpo_lora", "dpo", lora_rank=8, lora_alpha=16, learning_rate=2e-3)

    def test_it_learns_what_is_preferred(self, run: EngineRun) -> None:
        expect_better_ranking(run, least_margin=0.5)

    def test_its_checkpoint_is_an_adapter(self, run: EngineRun, starter: Starter) -> None:
        event = run.checkpoint()
        folder = Path(event["path"], "lora_adapter")

        assert event["hf_path"] is None
        assert (folder / "adapter_model.safetensors").is_file()
        assert read_json(folder / "adapter_config.json")["base_model_name_or_path"] == str(starter.taught)


@pytest.mark.proves("dpo")
class TestDpoStoppedAndResumed:
    @pytest.fixture(scope="class")
    def stopped(self, runs: PreferenceRuns) -> EngineRun:
        """A run that is asked to stop after some steps."""
        run = runs.compose("stopped", "dpo")
        with (run.folder / "log").open("wb") as log:
            command = [sys.executable, "-m", "trellis_train.engines.trl", str(run.folder / "spec.json")]
            engine = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while engine.poll() is None and max(run.curve("loss"), default=0) < 3:
            time.sleep(0.02)
        (run.folder / "stop").touch()
        assert engine.wait() == EXIT_STOPPED, run.log[-3000:]
        return run

    @pytest.fixture(scope="class")
    def resumed(self, stopped: EngineRun, runs: PreferenceRuns) -> EngineRun:
        path = stopped.checkpoint()["path"]
        return run_engine(runs.compose("stopped", "dpo", attempt=2, resume_from=path))

    def test_it_leaves_at_a_checkpoint_of_its_last_step(self, stopped: EngineRun) -> None:
        step = max(stopped.curve("loss"))

        assert stopped.checkpoint()["step"] == step < STEPS
        assert sorted(path.name for path in Path(stopped.checkpoint()["path"]).iterdir()) == [
            "huggingface",
            "optimizer.pt",
            "rng_state.pth",
            "scheduler.pt",
            "trainer_state.json",
        ]
        assert not Path(stopped.spec.checkpoint_dir, ".unfinished").exists()

    def test_resumed_it_takes_the_steps_of_a_run_never_stopped(
        self, stopped: EngineRun, resumed: EngineRun, dpo: EngineRun
    ) -> None:
        first = max(stopped.curve("loss")) + 1

        assert list(resumed.curve("loss")) == list(range(first, STEPS + 1))
        for step in range(first, STEPS + 1):
            measured, expected = resumed.metrics(step), dpo.metrics(step)
            for clock in CLOCKS:
                measured.pop(clock, None)
                expected.pop(clock, None)
            assert measured == expected

    def test_resumed_it_ends_with_the_same_weights_bit_for_bit(
        self, resumed: EngineRun, dpo: EngineRun
    ) -> None:
        weights = [Path(run.checkpoint()["hf_path"], "model.safetensors") for run in (resumed, dpo)]

        assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.proves("kto")
def test_kto_learns_from_single_answers(runs: PreferenceRuns, starter: Starter) -> None:
    run = runs.get("kto", "kto")
    margins = first_and_last(run, "eval_rewards/margins")
    learned = share_of_pairs_learned(Path(run.checkpoint()["hf_path"]), starter.taught)
    report(run, "margin", margins)

    assert margins[1] > margins[0] + 0.3
    assert learned > BETTER_THAN_CHANCE


@pytest.mark.parametrize("recipe", ["dpo", "kto"])
def test_a_run_logs_what_alarms_watch(recipe: str, runs: PreferenceRuns) -> None:
    run = runs.get(recipe, recipe)

    for key in watched_metrics(run.spec.engine, recipe, run.config):
        steps = (0, STEPS) if key.startswith("eval_") else range(1, STEPS + 1)
        assert list(run.curve(key)) == list(steps), key
        assert all(map(math.isfinite, run.curve(key).values())), key


@pytest.mark.proves("orpo")
def test_orpo_learns_what_is_preferred(runs: PreferenceRuns) -> None:
    run = runs.get("orpo", "orpo", **{"lambda": 1.0})

    expect_better_ranking(run, least_margin=0.1)


@pytest.mark.proves("simpo")
@pytest.mark.parametrize(
    ("name", "choices", "least_margin"),
    [
        ("simpo", {}, 0.5),
        # Its margins are of a smaller beta.
        ("simpo_cpo", {"loss_type": "sigmoid", "beta": 0.1, "supervised_weight": 1.0}, 0.25),
    ],
)
def test_simpo_and_cpo_learn_what_is_preferred(
    name: str, choices: dict, least_margin: float, runs: PreferenceRuns
) -> None:
    expect_better_ranking(runs.get(name, "simpo", **choices), least_margin=least_margin)


@pytest.mark.proves("reward_model")
class TestRewardModel:
    @pytest.fixture(scope="class")
    def run(self, runs: PreferenceRuns) -> EngineRun:
        return runs.get("reward_model", "reward_model", total_steps=2 * STEPS, learning_rate=1e-3)

    def test_it_ranks_held_out_pairs(self, run: EngineRun) -> None:
        before, after = first_and_last(run, "eval_accuracy")
        report(run, "margin", first_and_last(run, "eval_margin"))
        report(run, "accuracy", (before, after))

        assert after > 0.8
        assert after > before + 0.2

    def test_its_checkpoint_scores_answers_as_it_was_measured(self, run: EngineRun) -> None:
        ranked = share_of_pairs_ranked(Path(run.checkpoint()["hf_path"]))

        assert ranked == pytest.approx(first_and_last(run, "eval_accuracy")[1], abs=0.03)
