"""The worker's look at sweeps: each for itself, and one that cannot be looked at holds up no other."""

from pathlib import Path
from typing import Any

import pytest
from trellis_api import tables
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.models.models import Model
from trellis_api.sweeps import service
from trellis_api.sweeps.advance import advance_in
from trellis_api.sweeps.schemas import SweepCreate
from trellis_contracts.states import ACTIVE
from trellis_testing.datasets import add_dataset
from trellis_testing.sweeps import METRIC, SweepRig
from trellis_workers.jobs import advance_sweeps

MODEL = "mdl_aaaaaaaaaaaa"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    options: dict[str, Any] = {"platform": "cpu", "slots": 4, "min_free_disk_bytes": 0}
    settings = Settings(data_root=tmp_path, database_url=None, redis_url=None, **options)
    database = Database(settings)
    tables.metadata.create_all(database.engine)
    for name, value in (
        ("read", database.read),
        ("write", database.write),
        ("get_settings", lambda: settings),
    ):
        monkeypatch.setattr(advance_sweeps, name, value)
    yield SweepRig(database, settings)
    database.dispose()


@pytest.fixture
def two_sweeps(rig: SweepRig) -> list[str]:
    with rig.database.write() as session:
        session.add(
            Model(id=MODEL, name="m", state="ready", source={}, lineage={}, path="models/m", warnings=[])
        )
        dataset = add_dataset(session, rig.settings)
        job = {"recipe": "grpo", "preset": "cpu-tiny", "model": MODEL, "dataset": dataset.id}
        return [
            service.create(
                session,
                rig.settings,
                request=SweepCreate.model_validate(
                    {
                        "name": name,
                        "job": job,
                        "seeds": [1, 2],
                        "objective": {"metric": METRIC},
                        "parallel": 1,
                    }
                ),
            ).id
            for name in ("first", "second")
        ]


def test_every_sweep_begins_its_runs(rig: SweepRig, two_sweeps: list[str]) -> None:
    found = advance_sweeps.advance_sweeps()

    assert found.has_queued
    assert [job.sweep_id for job in rig.active()] == two_sweeps
    assert not advance_sweeps.advance_sweeps().has_queued


def test_a_sweep_that_cannot_be_looked_at_fails_and_the_others_go_on(
    rig: SweepRig, two_sweeps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    advance_sweeps.advance_sweeps()
    whole = advance_in

    def broken(write: Any, settings: Settings, *, sweep_id: str) -> Any:
        if sweep_id == two_sweeps[0]:
            raise RuntimeError("a fault of ours")
        return whole(write, settings, sweep_id=sweep_id)

    with monkeypatch.context() as patch:
        patch.setattr(advance_sweeps, "advance_in", broken)
        advance_sweeps.advance_sweeps()
    advance_sweeps.advance_sweeps()

    with rig.database.read() as session:
        first, second = (service.get_sweep(session, sweep_id=each) for each in two_sweeps)
    assert (first.state, first.cause) == ("failed", "sweep_failed")
    assert second.state == "running"
    assert [job.sweep_id for job in rig.jobs() if job.state in ACTIVE] == [two_sweeps[1]]
