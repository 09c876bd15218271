"""A sweep of real trainings: a killed worker and a stop in between lose no run and double none."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.faults, pytest.mark.timeout(900)]
RATES = [1e-5, 1e-4, 1e-3, 3e-3]


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
