"""What a trainer logs becomes events."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trellis_contracts.events import MetricsEvent
from trellis_train.compat import trainer
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.metrics import report_metrics, to_scalars


@pytest.fixture
def tracking(monkeypatch: pytest.MonkeyPatch) -> Any:
    from verl.utils.tracking import Tracking

    monkeypatch.setattr(trainer, "_listeners", [])  # nobody listens after the test
    return Tracking


def read_events(attempt_dir: Path) -> list[dict[str, Any]]:
    files = sorted((attempt_dir / "events").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def test_every_step_that_is_logged_is_in_the_spool(tmp_path: Path, tracking: Any) -> None:
    report_metrics(Spool(tmp_path, "trainer"))
    logger = tracking("project", "run", default_backend=[])

    logger.log({"actor/pg_loss": 0.5}, step=1)
    logger.log({"actor/pg_loss": 0.25}, step=2)

    assert [(event["step"], event["values"]) for event in read_events(tmp_path)] == [
        (1, {"actor/pg_loss": 0.5}),
        (2, {"actor/pg_loss": 0.25}),
    ]


def test_nan_and_infinities_survive_the_journey(tmp_path: Path, tracking: Any) -> None:
    report_metrics(Spool(tmp_path, "trainer"))

    tracking("project", "run", default_backend=[]).log({"a": math.nan, "b": -math.inf}, step=1)

    event = MetricsEvent.model_validate(read_events(tmp_path)[0])
    assert math.isnan(event.values["a"])
    assert event.values["b"] == -math.inf


def test_the_loggers_of_the_configuration_still_log(
    tmp_path: Path, tracking: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    report_metrics(Spool(tmp_path, "trainer"))

    tracking("project", "run", default_backend=["console"]).log({"loss": 1.0}, step=3)

    assert "step:3" in capsys.readouterr().out


def test_scalars_of_any_library_are_numbers_and_the_rest_is_left_out() -> None:
    import torch

    data = {
        "numpy": np.float32(0.5),
        "integer": np.int64(3),
        "tensor": torch.tensor(2.0),
        "flag": True,
        "text": "no",
        "list": [1, 2],
        "vector": np.ones(2),
    }

    assert to_scalars(data) == {"numpy": 0.5, "integer": 3.0, "tensor": 2.0, "flag": 1.0}
