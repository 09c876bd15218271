"""Sweeps in the browser: from the form, on a page of their own, stopped and gone on with."""

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs.models import Checkpoint
from trellis_cli.waiting import wait_for_dataset
from trellis_testing.sweeps import METRIC, SweepRig

pytestmark = pytest.mark.browser


@pytest.fixture
def rig(dashboard: Any, database: Database) -> SweepRig:
    settings = Settings(
        data_root=dashboard.data_root, database_url=None, redis_url=None, min_free_disk_bytes=0
    )
    return SweepRig(database, settings)


@pytest.fixture
def sweep(call_api: Any, model: Any, dataset: Any, tidy: None) -> Iterator[Callable[..., str]]:
    """Creates a sweep over the API; deleted afterwards."""
    made: list[str] = []

    def create(**changes: Any) -> str:
        body = {
            "name": "learning rate",
            "job": {"recipe": "grpo", "preset": "cpu-tiny", "model": model["id"], "dataset": dataset["id"]},
            "parameters": {
                "learning_rate": {"min": 1e-6, "max": 1e-4, "scale": "log", "count": 4},
                "clip_ratio": {"values": [0.1, 0.2, 0.3]},
            },
            "search": {"method": "grid"},
            "objective": {"metric": METRIC},
            "parallel": 1,
            **changes,
        }
        made.append(str(call_api("POST", "/sweeps", body)["id"]))
        return made[-1]

    yield create
    for sweep_id in made:
        if call_api("GET", f"/sweeps/{sweep_id}")["can_delete"]:
            call_api("DELETE", f"/sweeps/{sweep_id}")


def test_a_finished_sweep_shows_its_best_run_and_what_mattered(
    logged_in: Page, dashboard: Any, sweep: Callable[..., str], rig: SweepRig
) -> None:
    sweep_id = sweep()
    rig.run_through(
        sweep_id,
        lambda run: abs(math.log10(run.values["learning_rate"]) + 5) + run.values["clip_ratio"] / 100,
    )
    logged_in.goto(f"{dashboard.url}/sweeps/{sweep_id}")

    best = logged_in.locator("[data-test=best-run]")
    expect(best).to_contain_text("learning_rate")
    expect(logged_in.locator("[data-test=sweep-runs] tbody tr")).to_have_count(12)
    expect(logged_in.locator("path[data-run]")).to_have_count(12)
    expect(logged_in.locator("circle[data-run]")).to_have_count(12)
    expect(logged_in.locator("[data-parameter=learning_rate]")).to_be_visible()
    expect(logged_in).to_have_title(re.compile("learning rate"))

    logged_in.locator("[data-test=sweep-runs] tbody tr").first.hover()
    expect(logged_in.locator("path.marked")).to_have_count(1)

    logged_in.locator("[data-test=compare-runs]").click()
    expect(logged_in.get_by_role("heading", level=1, name="Compare jobs")).to_be_visible()


def test_the_best_run_is_exported_and_evaluated(
    logged_in: Page,
    dashboard: Any,
    database: Database,
    sweep: Callable[..., str],
    rig: SweepRig,
    call_api: Any,
) -> None:
    sweep_id = sweep(parameters={"clip_ratio": {"values": [0.1, 0.2]}})
    rig.run_through(sweep_id, lambda run: run.values["clip_ratio"])
    best = call_api("GET", f"/sweeps/{sweep_id}")["runs"][0]["job"]["id"]
    logged_in.goto(f"{dashboard.url}/sweeps/{sweep_id}")
    logged_in.locator("[data-test=export-best]").click()
    expect(logged_in.get_by_text("The best run has no checkpoint.")).to_be_visible()

    folder = dashboard.data_root / "jobs" / best / "checkpoints" / "global_step_1"
    weights = folder / "actor" / "huggingface"
    shutil.copytree(dashboard.data_root / "models" / "tiny", weights)
    with database.write() as session:
        session.add(
            Checkpoint(
                job_id=best,
                step=1,
                attempt=1,
                path=str(folder),
                hf_path=str(weights),
                size_bytes=4096,
                created_at=utc_now(),
            )
        )
    logged_in.locator("[data-test=export-best]").click()
    expect(logged_in).to_have_url(re.compile(f"/jobs/{best}.*tab=checkpoints"))
    expect(logged_in.get_by_role("dialog")).to_be_visible()

    logged_in.goto(f"{dashboard.url}/sweeps/{sweep_id}")
    logged_in.locator("[data-test=evaluate-best]").click()
    expect(logged_in).to_have_url(re.compile(f"/evaluations/new.*job={best}.*step=1"))


def test_a_running_sweep_is_stopped_and_goes_on(
    logged_in: Page, dashboard: Any, sweep: Callable[..., str], rig: SweepRig
) -> None:
    sweep_id = sweep()
    rig.look()
    logged_in.goto(f"{dashboard.url}/sweeps/{sweep_id}")
    logged_in.locator("[data-test=stop-sweep]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Stop sweep").click()
    expect(logged_in.locator("[data-test=sweep-state]")).to_contain_text("Stopping")
    rig.look()
    expect(logged_in.locator("[data-test=sweep-state]")).to_contain_text("Stopped")

    logged_in.locator("[data-test=resume-sweep]").click()

    expect(logged_in.locator("[data-test=sweep-state]")).to_contain_text("Running")
    rig.run_through(sweep_id, lambda run: run.values["clip_ratio"])
    expect(logged_in.locator("[data-test=sweep-state]")).to_contain_text("Succeeded")


def test_parameters_vary_from_the_form(
    logged_in: Page, dashboard: Any, model: Any, dataset: Any, tidy: None, call_api: Any, rig: SweepRig
) -> None:
    logged_in.goto(f"{dashboard.url}/jobs/new?recipe=grpo")
    expect(logged_in.get_by_text("Ready to launch")).to_be_visible()
    expect(logged_in.locator("[data-test=forecast]")).to_contain_text("unknown: no run")
    logged_in.locator("[data-test=vary-learning_rate]").click()
    logged_in.locator("[data-vary=learning_rate] input[aria-label*=List]").fill("1e-6, nonsense")
    expect(logged_in.locator("[data-vary=learning_rate]")).to_contain_text("comma-separated")
    logged_in.locator("[data-vary=learning_rate] input[aria-label*=List]").fill("1e-6, 1e-5")
    logged_in.locator("#sweep-seeds").fill("1-3")
    expect(logged_in.locator("[data-test=sweep-summary]")).to_contain_text("6 runs over 2 combinations")

    logged_in.locator("[data-test=launch]").click()

    expect(logged_in).to_have_url(re.compile(r"/sweeps/swp_"))
    expect(logged_in.locator("[data-test=sweep-state]")).to_contain_text("Running")
    sweep_id = logged_in.url.rpartition("/")[2]
    assert call_api("GET", f"/sweeps/{sweep_id}")["planned_runs"] == 6
    call_api("POST", f"/sweeps/{sweep_id}/stop")
    rig.look()
    call_api("DELETE", f"/sweeps/{sweep_id}")


def test_a_form_that_was_left_is_as_it_was(
    logged_in: Page, dashboard: Any, model: Any, dataset: Any, tidy: None
) -> None:
    logged_in.goto(f"{dashboard.url}/jobs/new")
    expect(logged_in.get_by_text("Ready to launch")).to_be_visible()
    logged_in.locator('[data-field="params.group_size"] input').fill("6")
    logged_in.goto(f"{dashboard.url}/models")
    logged_in.goto(f"{dashboard.url}/jobs/new")

    expect(logged_in.locator("[data-test=restored]")).to_be_visible()
    expect(logged_in.locator('[data-field="params.group_size"] input')).to_have_value("6")
    logged_in.locator("[data-test=start-over]").click()
    expect(logged_in.locator('[data-field="params.group_size"] input')).not_to_have_value("6")


def test_conversations_open_supervised_training(
    logged_in: Page, dashboard: Any, call_api: Any, api: Any, tmp_path: Path
) -> None:
    rows = [
        {"messages": [{"role": "user", "content": f"Hi {n}"}, {"role": "assistant", "content": "Hello"}]}
        for n in range(40)
    ]
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    made = wait_for_dataset(api, api.upload("/datasets", path, {"name": "chat"})["id"])
    try:
        logged_in.goto(f"{dashboard.url}/datasets/{made['id']}")
        logged_in.get_by_role("button", name="Train", exact=True).click()
        expect(logged_in.locator('[data-field="recipe"]')).to_contain_text("Supervised")
    finally:
        api.delete(f"/datasets/{made['id']}")
