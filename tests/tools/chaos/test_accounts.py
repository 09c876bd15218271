"""What a run wrote down, read again."""

from datetime import UTC, datetime
from pathlib import Path

from trellis_contracts.events import LogEvent, MetricsEvent, ProgressEvent
from trellis_tools.chaos.accounts import read_own
from trellis_train.hooks.event_spool import Spool

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_spools_of_all_producers_make_one_account(tmp_path: Path) -> None:
    attempt = tmp_path / "attempt-1"
    supervisor, trainer = Spool(attempt, "entrypoint"), Spool(attempt, "trainer")
    supervisor.write(ProgressEvent(time=NOW, phase="preparing", step=0))
    supervisor.write(LogEvent(time=NOW, stream="stdout", lines=["one", "two"]))
    trainer.write(MetricsEvent(time=NOW, step=1, values={"train/loss": 0.5, "bad": float("nan")}))

    own = read_own(tmp_path)

    assert own.beginnings == 1
    assert own.lines == ["stdout: one", "stdout: two"]
    assert own.points == {("train/loss", 1): 0.5, ("bad", 1): None}
    assert own.faults == []


def test_a_step_that_was_measured_twice_is_a_fault_of_the_run(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "attempt-1", "trainer")
    for _ in range(2):
        spool.write(MetricsEvent(time=NOW, step=1, values={"train/loss": 0.5}))

    assert read_own(tmp_path).faults == ["the run reported train/loss at step 1 twice"]
