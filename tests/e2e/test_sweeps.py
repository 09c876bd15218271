"""A sweep of real trainings: a killed worker and a stop in between lose no run and double none."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.faults, pytest.mark.timeout(900)]
RATES = [1e-5, 1e-4, 1e-3, 3e-3]
#: Of a sweep as large as two cores shall carry, and how many of its runs have ended when the worker dies.
MANY, ENDED = [round(1e-4 * number, 6) for number in range(1, 21)], 8


@pytest.fixture
def body(rig: Any, tmp_path: Path) -> dict[str, Any]:
    """Supervised training of the starter model on sums, of which rows are held out."""
    ids = rig.starter()
    return {
        "name": "learning rate",
        "job": {
            "recipe": "sft",
            "preset": "cpu-tiny",
            "model": ids["model"],
            "dataset": ids["sft"],
            "params": {"total_steps": 4, "validate_every": 2, "save_every": 2},
        },
        "parameters": {"learning_rate": {"values": RATES}},
        "search": {"method": "grid"},
        "parallel": 1,
    }


def wait_for(rig: Any, sweep_id: str, *states: str, timeout_s: float = 600) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = rig.client.get(f"/sweeps/{sweep_id}")
        return found if found["state"] in states else None

    found = wait_until(look, timeout_s, f"the sweep is {' or '.join(states)}")
    assert found is not None
    return found


def test_a_sweep_outlives_its_workers_and_a_stop_and_names_the_best_run(
    rig: Any, body: dict[str, Any]
) -> None:
    sweep_id = rig.client.post("/sweeps", body)["id"]
    first = wait_until(lambda: rig.client.get(f"/sweeps/{sweep_id}")["runs"], 60, "the first run")[0]
    rig.wait_for_step(first["job"]["id"], 1)
    rig.kill("worker", "beat")
    rig.start()
    rig.wait_for_state(first["job"]["id"], "succeeded")

    wait_until(lambda: len(rig.client.get(f"/sweeps/{sweep_id}")["runs"]) >= 2, 60, "the second run")
    rig.client.post(f"/sweeps/{sweep_id}/stop")
    stopped = wait_for(rig, sweep_id, "stopped")
    assert len(stopped["runs"]) < len(RATES)
    rig.client.post(f"/sweeps/{sweep_id}/resume")
    found = wait_for(rig, sweep_id, "succeeded")

    assert [run["values"]["learning_rate"] for run in found["runs"]] == RATES
    assert {run["state"] for run in found["runs"]} == {"succeeded"}
    assert found["objective"]["metric"].startswith("val")
    jobs = rig.client.get("/jobs", sweep=sweep_id)["items"]
    assert len(jobs) == len(RATES)
    best = min(found["runs"], key=lambda run: run["value"])
    assert found["best_run"] == best["index"]
    # Held-out loss falls with the learning rate within these four: what the sweep says is what was measured.
    measured = {
        run["index"]: [
            value
            for (key, _), value in rig.stored_metrics(run["job"]["id"]).items()
            if key == found["objective"]["metric"]
        ]
        for run in found["runs"]
    }
    assert all(run["value"] == pytest.approx(min(measured[run["index"]])) for run in found["runs"])
    assert json.dumps(found["importance"])


def test_asha_stops_runs_early_and_spends_fewer_steps(rig: Any, body: dict[str, Any]) -> None:
    """The best rates come first, so that those behind them are worse at the first rung."""
    body |= {"name": "early", "parameters": {"learning_rate": {"values": [*reversed(RATES)]}}}
    body["job"]["params"] = {"total_steps": 100, "validate_every": 2, "save_every": 100}
    body["early_stop"] = {"rule": "asha", "min_steps": 2, "factor": 2, "min_runs": 2}

    found = wait_for(rig, rig.client.post("/sweeps", body)["id"], "succeeded")

    states = [run["state"] for run in found["runs"]]
    assert states[0] == "succeeded"
    assert states[2:] == ["pruned", "pruned"]
    assert states[found["best_run"]] == "succeeded"
    assert all(run["progress"]["step"] < 100 for run in found["runs"] if run["state"] == "pruned")
    stopped = rig.job(found["runs"][3]["job"]["id"])
    assert stopped["state"] == "stopped"


@pytest.mark.timeout(1700)
def test_a_sweep_of_twenty_runs_loses_none_when_the_worker_is_killed_in_the_middle(
    rig: Any, body: dict[str, Any]
) -> None:
    body |= {"name": "many", "parameters": {"learning_rate": {"values": MANY}}}
    body["job"]["params"] = {"total_steps": 2, "validate_every": 2, "save_every": 0}
    sweep_id = rig.client.post("/sweeps", body)["id"]

    def count_ended() -> bool:
        runs = rig.client.get(f"/sweeps/{sweep_id}")["runs"]
        return sum(run["state"] == "succeeded" for run in runs) >= ENDED

    wait_until(count_ended, 800, f"{ENDED} runs have ended", pause_s=0.5)
    rig.kill("worker")
    assert rig.client.get(f"/sweeps/{sweep_id}")["state"] == "running"
    rig.start()
    found = wait_for(rig, sweep_id, "succeeded", timeout_s=1500)

    assert [run["values"]["learning_rate"] for run in found["runs"]] == pytest.approx(MANY)
    assert {run["state"] for run in found["runs"]} == {"succeeded"}
    assert all(run["value"] is not None for run in found["runs"])
    jobs = list(rig.client.pages("/jobs", sweep=sweep_id))
    assert {job["id"] for job in jobs} == {run["job"]["id"] for run in found["runs"]}
    # Each ran once: what was under way went on without the worker.
    assert [job["attempt"] for job in jobs] == [1] * len(MANY)
    assert all((key, 2) in rig.stored_metrics(job["id"]) for job in jobs for key in ["train/loss"])
