"""The search over settings: Ray Tune for real, trainings in the place of which stands a formula (C10)."""

import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trellis
from trellis import searching
from trellis.searching import (
    FAILED_SHARE,
    TrainInProcess,
    _read_trial,
    read_base,
    share_gpus,
    tune_search,
    with_settings,
)
from trellis_train.agents.tune.settings import load_config

GOOD = 1e-4
BASE = {
    "model": {"model_path": "/model"},
    "buffer": {"total_steps": 6, "explorer_input": {"taskset": {"path": "/tasks.jsonl"}}},
}


def learn(config: dict[str, Any], folder: Path) -> Iterator[dict[str, float]]:
    """Rises with the learning rate; the one above the good one breaks after a step."""
    rate = config["algorithm"]["optimizer"]["lr"]
    for step in range(1, 7):
        if rate > GOOD and step == 2:
            raise RuntimeError("the loss is nan")
        yield {"reward": 0.1 + 1e3 * rate * step, "actor/lr": rate, FAILED_SHARE: 0.5 if step <= 3 else 0.0}


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> trellis.SearchResult:
    folder = tmp_path_factory.mktemp("search")
    space = {"algorithm.optimizer.lr": [0.0, GOOD, 1.0]}
    return tune_search("none.py", BASE, space, "reward", "max", 1, 2, output=folder, train=learn)


@pytest.mark.slow
def test_the_search_finds_the_good_setting_beside_a_trial_that_crashes(search: trellis.SearchResult) -> None:
    assert search.best.settings == {"algorithm.optimizer.lr": GOOD}
    assert search.best.value == pytest.approx(0.7)
    by_rate = {trial.settings["algorithm.optimizer.lr"]: trial for trial in search.trials}
    assert by_rate[0.0].error is None
    assert by_rate[1.0].error is not None
    assert "the loss is nan" in by_rate[1.0].error


def test_the_best_configuration_can_be_loaded_and_run(search: trellis.SearchResult) -> None:
    config, _ = load_config(search.best_config)
    assert config.algorithm.optimizer.lr == GOOD
    assert config.buffer.explorer_input.taskset.path == "/tasks.jsonl"


def test_the_table_has_a_row_for_every_trial(search: trellis.SearchResult) -> None:
    rows = list(csv.DictReader(search.trials_table.open()))
    assert [float(row["algorithm.optimizer.lr"]) for row in rows] == [0.0, GOOD, 1.0]
    assert [bool(row["error"]) for row in rows] == [False, False, True]
    assert float(rows[1]["reward"]) == pytest.approx(0.7)
    assert float(rows[1]["failed_share"]) == pytest.approx(0.25)


@pytest.mark.slow
def test_sessions_that_failed_are_told_of_the_best_trial(search: trellis.SearchResult) -> None:
    assert search.best.failed_share == pytest.approx(0.25)


@pytest.mark.slow
def test_a_search_of_which_every_trial_fails_says_so(tmp_path: Path) -> None:
    space = {"algorithm.optimizer.lr": [1.0]}
    with pytest.raises(trellis.TuneFailed, match="all 1 trials failed"):
        tune_search("none.py", BASE, space, "never measured", output=tmp_path, train=learn)
    assert (tmp_path / "trials.csv").exists()


def test_what_is_wrong_is_said_before_the_first_trial(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode is"):
        tune_search("w.py", BASE, {}, mode="most", output=tmp_path)
    with pytest.raises(ValueError, match=r"Invalid configuration: .*lrr"):
        tune_search("w.py", BASE, {"algorithm.optimizer.lrr": [1]}, output=tmp_path)
    with pytest.raises(ValueError, match="NOT_ASYNC"):
        tune_search(lambda task, model: 0.0, BASE, {}, output=tmp_path)


@pytest.mark.parametrize(
    ("visible", "cluster", "space", "at_a_time", "each"),
    [
        ("2,5", {}, {}, 2, 1),
        ("0,1,2,3", {"gpu_per_node": 2}, {}, 2, 2),
        ("0,1,2,3", {}, {"cluster.gpu_per_node": [1, 4]}, 1, 4),
        ("", {}, {}, 8, 0),
    ],
)
def test_each_trial_has_gpus_of_its_own(
    visible: str,
    cluster: dict[str, int],
    space: dict[str, Any],
    at_a_time: int,
    each: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TRELLIS_PLATFORM", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert share_gpus({"cluster": cluster}, space, at_a_time) == each
    if each:
        with pytest.raises(ValueError, match="reduce max_concurrent"):
            share_gpus({"cluster": cluster}, space, at_a_time + 1 + len(visible))


def say_devices(config: dict[str, Any], folder: Path) -> Iterator[dict[str, float]]:
    """The GPU that the trial sees, while the other one has not ended yet."""
    yield {"reward": float(os.environ["CUDA_VISIBLE_DEVICES"])}
    (folder.parent / f"{config['algorithm']['optimizer']['lr']}.begun").touch()
    # Ray's worker has the module's text alone, without the helpers of the tests.
    end = time.monotonic() + 120
    while len(list(folder.parent.glob("*.begun"))) < 2:
        if time.monotonic() > end:
            raise TimeoutError("the other trial did not begin")
        time.sleep(0.05)


@pytest.mark.slow
def test_trials_at_a_time_see_different_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRELLIS_PLATFORM", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    monkeypatch.setattr(searching, "_prepare_training", lambda *_: say_devices)
    space = {"algorithm.optimizer.lr": [0.1, 0.2]}

    found = tune_search("w.py", BASE, space, "reward", "max", 1, 2, output=tmp_path)

    assert sorted(trial.value or 0 for trial in found.trials) == [2, 5]


def test_settings_are_placed_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("a: {b: 1}\n")
    base = read_base(tmp_path / "base.yaml")
    assert with_settings(base, {"a.c.d": 2}) == {"a": {"b": 1, "c": {"d": 2}}}
    assert base == {"a": {"b": 1}}


def test_relative_paths_start_where_the_search_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray Tune works in a folder of the trial's own; the rows are found, and the learning rate is refused."""
    (tmp_path / "tasks.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n' * 64)
    (tmp_path / "trial").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "llama"}')
    config = with_settings(
        BASE,
        {
            "model.model_path": "model",
            "buffer.explorer_input.taskset.path": "tasks.jsonl",
            "algorithm.optimizer.lr": 5.0,
        },
    )
    monkeypatch.chdir(tmp_path)
    train = TrainInProcess("workflow.py")
    monkeypatch.chdir(tmp_path / "trial")

    with pytest.raises(trellis.TuneFailed, match="learning_rate"):
        list(train(config, tmp_path / "out"))


def test_the_error_of_a_trial_is_its_reason_not_where_its_log_lies() -> None:
    error = (
        "Traceback ...\ntrellis.tuning.TuneFailed: exit code 1\n  Run failed: no memory\nFull log: /a/log\n"
    )
    result = SimpleNamespace(error=error, metrics={}, config={"lr": 1})

    assert _read_trial(result, ["lr"]).error == "Run failed: no memory"
