"""`trellis sweeps` against a real API; the test does the workers' part."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from trellis_api.core.database import Database
from trellis_api.models.models import Model
from trellis_cli.errors import ExitCode
from trellis_testing.commands import trellis
from trellis_testing.datasets import add_dataset
from trellis_testing.sweeps import METRIC, SweepRig
from trellis_tools.bench.light_platform import LightPlatform

MODEL = "mdl_sweepaaaaaaa"


@pytest.fixture(scope="module")
def database(platform: LightPlatform) -> Iterator[Database]:
    opened = Database(platform.settings)
    yield opened
    opened.dispose()


@pytest.fixture(scope="module")
def document(platform: LightPlatform, database: Database) -> dict[str, Any]:
    with database.write() as session:
        session.add(
            Model(
                id=MODEL,
                name="for sweeps",
                state="ready",
                source={"kind": "local", "path": "models/s"},
                lineage={},
                path="models/s",
                warnings=[],
            )
        )
        dataset = add_dataset(session, platform.settings)
        return {
            "name": "rates",
            "job": {"recipe": "grpo", "preset": "cpu-tiny", "model": "for sweeps", "dataset": dataset.name},
            "parameters": {"learning_rate": {"values": [1e-6, 1e-5, 1e-4]}},
            "search": {"method": "grid"},
            "objective": {"metric": METRIC},
        }


def test_a_sweep_is_checked_submitted_shown_and_its_best_run_cloned(
    platform: LightPlatform, database: Database, document: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump(document))
    assert (
        "3 runs of 3 combinations"
        in trellis(platform, "sweeps", "submit", "-f", str(file), "--dry-run").stdout
    )

    made = json.loads(trellis(platform, "sweeps", "submit", "-f", str(file), "--json").stdout)
    rig = SweepRig(database, platform.settings)
    rig.run_through(made["id"], lambda run: abs(run.values["learning_rate"] - 1e-5))

    shown = trellis(platform, "sweeps", "show", "rates").stdout
    assert "succeeded" in shown
    assert shown.index("1e-05") < shown.index("1e-06")
    listed = json.loads(trellis(platform, "sweeps", "list", "--json").stdout)
    assert [each["best"]["values"] for each in listed] == [{"learning_rate": 1e-5}]
    cloned = json.loads(
        trellis(platform, "sweeps", "clone", "rates", "--name", "best again", "--json").stdout
    )
    assert (cloned["name"], cloned["params"]["learning_rate"]) == ("best again", 1e-5)

    done = trellis(platform, "sweeps", "export", "rates", "--name", "best model")
    assert (done.returncode, "no checkpoint" in done.stderr) == (ExitCode.REFUSED, True)
    assert trellis(platform, "sweeps", "resume", "rates").returncode == ExitCode.REFUSED
    assert trellis(platform, "sweeps", "delete", "rates").returncode == 0


def test_show_says_that_seeds_of_the_best_have_not_finished(
    platform: LightPlatform, database: Database, document: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump({**document, "name": "by seed", "parameters": {}, "seeds": [1, 2, 3]}))
    made = json.loads(trellis(platform, "sweeps", "submit", "-f", str(file), "--json").stdout)
    rig = SweepRig(database, platform.settings)
    rig.look()
    job = next(each for each in rig.active() if each.sweep_id == made["id"])
    rig.start(job.id)
    rig.measure(job.id, 1, 0.5)
    rig.end(job.id)
    rig.look()

    assert "best: 0.5 (1 of 3 seeds)" in trellis(platform, "sweeps", "show", "by seed").stdout


def test_a_mistake_is_told_with_file_and_line(
    platform: LightPlatform, document: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "sweep.yaml"
    wrong = {**document, "parameters": {"learning_rat": {"values": [1, 2]}}}
    file.write_text(yaml.safe_dump(wrong, sort_keys=False))

    done = trellis(platform, "sweeps", "submit", "-f", str(file))

    assert done.returncode == ExitCode.REFUSED
    assert "sweep.yaml:" in done.stderr.replace("\n", "")
    assert "learning_rate" in done.stderr
