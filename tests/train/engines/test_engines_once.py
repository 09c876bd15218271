"""One short real run of the engines that the platform's own smoke tests do not start: TRL, and evaluation."""

import json
from pathlib import Path

import pytest
from trellis_contracts.evaluation import ANY_ORDER, BenchmarkFiles, BenchmarkTask
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import EXIT_SUCCEEDED
from trellis_data.samples.preferences import write_preferences
from trellis_testing.engine_runs import Rows, compose_job, run_engine
from trellis_testing.evaluation_runs import Attempt, Evaluation, run_all
from trellis_train.starter.model import write_model

pytestmark = [pytest.mark.training, pytest.mark.smoke, pytest.mark.timeout(600)]
STEPS = 12


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter model with random weights."""
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, 0)
    return folder


def test_dpo_on_trl_learns_to_rank_the_pairs_held_out(model: Path, tmp_path: Path) -> None:
    files = write_preferences(tmp_path / "data", 2)
    train, validation = (
        Rows.from_json_lines(files[f"preference_{part}"], DataFormat.PREFERENCE)
        for part in ("train", "validation")
    )
    params = {"total_steps": STEPS, "validate_every": STEPS}
    job = compose_job(
        tmp_path / "dpo", recipe="dpo", model=model, rows=train, validation=validation, params=params
    )

    run = run_engine(job)

    accuracies = run.curve("eval_rewards/accuracies")
    assert list(accuracies) == [0, STEPS]
    # Against itself a model prefers nothing; one of random weights soon learns not to hedge.
    assert accuracies[0] == 0
    assert accuracies[STEPS] > 0.6
    assert run.checkpoint()["step"] == STEPS


def test_an_evaluation_answers_every_problem_and_scores_it(model: Path, tmp_path: Path) -> None:
    problems = tmp_path / "sums.jsonl"
    rows = [{"question": f"How much is {n} + 1?", "answer": f"#### {n + 1}"} for n in range(6)]
    problems.write_text("\n".join(map(json.dumps, rows)))
    order = ANY_ORDER.validate_python({"benchmark": "gsm8k", "decoding": {"max_tokens": 8}})
    files = BenchmarkFiles(paths={"test": [str(problems)]}, sha256="0" * 64)
    evaluation = Evaluation(
        tmp_path / "evaluation", model, [BenchmarkTask(label="sums", order=order, files=files)]
    )

    codes = run_all([Attempt(evaluation.write_spec())], tmp_path / "log")

    assert codes == [EXIT_SUCCEEDED]
    (result,) = evaluation.result.benchmarks
    assert (result.problems, result.counts.total, result.counts.failed) == (6, 6, 0)
    assert [score.metric for score in result.scores] == ["strict", "flexible"]
    assert len(evaluation.samples("sums")) == 6
