"""The arithmetic of the comparison with TRL: shapes, parts of a step, tokens per second."""

from pathlib import Path
from typing import Any

import pytest
from trellis_cli.errors import Problem
from trellis_tools.bench import grpo
from trellis_tools.bench.engine_job import Material
from trellis_tools.bench.grpo_shapes import QUICK, SHAPES, choose_shapes
from trellis_tools.bench.grpo_steps import split_ours, split_trl
from trellis_tools.bench.result import Result


def metrics_event(step: int, at_s: float, **timings: float) -> dict[str, object]:
    return {
        "step": step,
        "time": f"2026-01-01T00:00:{at_s:09.6f}+00:00",
        "values": {f"timing_s/{name}": seconds for name, seconds in timings.items()},
    }


def test_our_step_lasts_from_event_to_event_and_what_no_timer_saw_is_the_rest() -> None:
    parts = {
        "gen": 1.0,
        "old_log_prob": 0.25,
        "ref": 0.25,
        "update_actor": 1.5,
        "update_weights": 0.5,
        "adv": 9,
    }
    events = [metrics_event(1, 0.0), metrics_event(2, 8.0, gen=7.0), metrics_event(3, 12.0, **parts)]

    split = split_ours(events, warm_up=2)

    assert split == {
        "step": 4.0,
        "generation": 1.0,
        "log_probs": 0.5,
        "update": 1.5,
        "sync": 0.5,
        "waiting_and_other": 0.5,
    }


def test_figures_are_medians_over_the_steps_after_the_warm_up() -> None:
    times = [0.0, 50.0, 51.0, 53.0, 56.0]
    events = [metrics_event(number + 1, at_s, gen=at_s / 100) for number, at_s in enumerate(times)]

    split = split_ours(events, warm_up=2)

    assert split["step"] == 2.0
    assert split["generation"] == pytest.approx(0.53)


def test_trl_is_split_into_the_same_parts() -> None:
    part = {"generation": 1.0, "log_probs": 0.5, "update": 2.0, "sync": 0.25}
    times = {"ends_s": [0.0, 9.0, 13.0], "parts_s": {name: [8.0, each] for name, each in part.items()}}

    split = split_trl(times, warm_up=1)

    assert split == {"step": 4.0, **part, "waiting_and_other": 0.25}


def test_a_run_too_short_to_measure_is_said_to_be_so() -> None:
    with pytest.raises(ValueError, match="no steps were measured"):
        split_ours([metrics_event(1, 0.0), metrics_event(2, 1.0)], warm_up=2)


def test_every_shape_divides_into_its_updates_and_passes() -> None:
    for shape in SHAPES.values():
        assert shape.mini_batch * shape.updates == shape.responses
        assert shape.mini_batch % shape.group_size == 0
        assert all(shape.mini_batch % (ranks * shape.micro_batch(ranks)) == 0 for ranks in (1, 2))
        assert shape.steps > shape.warm_up + 1


def test_from_64_tokens_on_we_promise_to_be_no_slower() -> None:
    assert {shape.name for shape in SHAPES.values() if shape.bound == 1.0} == {
        shape.name for shape in SHAPES.values() if shape.response_tokens >= 64
    }


def test_shapes_are_chosen_by_name_all_of_them_or_the_quick_ones() -> None:
    assert tuple(shape.name for shape in choose_shapes(None)) == QUICK
    assert [shape.name for shape in choose_shapes("20m-512,starter-16")] == ["20m-512", "starter-16"]
    assert len(choose_shapes("all")) == len(SHAPES)
    with pytest.raises(Problem, match="starter-17"):
        choose_shapes("starter-17")


def test_a_result_without_a_promise_is_kept_and_shows_what_it_is_made_of() -> None:
    result = Result(
        "x", 1.0, 4.0, "tokens/s", bound=None, is_more_better=True, details={"step_s": {"ours": 2}}
    )

    assert result.is_kept
    assert result.as_json()["ratio"] == 0.25
    assert result.as_json()["step_s"] == {"ours": 2}


def test_the_sides_run_in_turns_and_the_fastest_run_of_each_way_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs: list[tuple[str, grpo.Way, int]] = []

    def run(side: str, seconds: float) -> Any:
        def take(_shape: Any, _material: Any, folder: Path, way: grpo.Way) -> grpo.Run:
            assert folder.is_dir()
            turn = int(folder.name.rpartition("-")[2])
            runs.append((side, way, turn))
            # The second round of one way is the fastest run of its side.
            return grpo.Run({"step": seconds / 2 if (way.ranks, turn) == (2, 1) else seconds}, 2**30)

        return take

    monkeypatch.setattr(grpo, "run_ours", run("ours", 8.0))
    monkeypatch.setattr(grpo, "run_trl", run("trl", 6.0))

    material = Material(tmp_path / "model", tmp_path / "rows.jsonl")
    result = grpo.measure_shape(SHAPES["starter-64"], material, tmp_path, rounds=2)

    assert [side for side, _, _ in runs] == ["ours", "trl"] * 6
    assert len(set(runs)) == 12
    assert result.ratio == pytest.approx(6 / 8)
    assert result.details["ours_runs_with"] == "sampler_2_ranks"
    assert result.details["trl_runs_with"] == "transformers_2_ranks"
    assert result.details["step_s"]["ours_trainer"] == {"step": 8.0}
    assert result.details["step_s"]["ours_sampler_2_ranks"] == {"step": 4.0}
    assert result.details["peak_gib"]["trl_vllm"] == 1.0
