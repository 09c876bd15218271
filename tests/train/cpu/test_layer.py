"""When the layer for CPUs is there."""

import json
import os
from pathlib import Path

import pytest
from trellis_train.cpu import layer as cpu_layer
from trellis_train.cpu import pieces
from trellis_train.cpu.layer import CpuLayer
from trellis_train.cpu.trainer_process import THREADS
from trellis_train.engines import ppo
from trellis_train.platform import layer
from trellis_train.platform.activation import PLATFORM_VARIABLE


def load(monkeypatch: pytest.MonkeyPatch, *, platform: str, switch: str | None) -> type[layer.Layer]:
    monkeypatch.setenv(PLATFORM_VARIABLE, platform)
    monkeypatch.delenv(layer.SWITCH_VARIABLE, raising=False)
    if switch is not None:
        monkeypatch.setenv(layer.SWITCH_VARIABLE, switch)
    return type(layer.load_layer.__wrapped__())


@pytest.mark.parametrize("switch", [None, "1", ""])
def test_it_is_on_a_cpu_unless_it_is_switched_off(
    switch: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load(monkeypatch, platform="cpu", switch=switch) is CpuLayer
    assert load(monkeypatch, platform="cpu", switch="0") is layer.Layer


def test_it_is_never_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch, platform="cuda", switch="1") is layer.Layer


def test_without_a_layer_verl_starts_everything_itself() -> None:
    none = layer.Layer()

    assert none.interpreter() is None
    assert none.take_workers(2) is None
    assert none.server_class("an actor class") == "an actor class"
    assert none.environment() == {}


def test_a_piece_is_left_out_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pieces.LEAVE_OUT_VARIABLE, "cpu-threads, cpu-spinning")
    applied: list[str] = []
    monkeypatch.setattr(cpu_layer, "apply", applied.append)
    found = CpuLayer()

    found.change_rollout_engine()

    assert "cpu-threads" not in applied
    assert "cpu-packed-weights" in applied
    assert found.environment() == {}


def test_an_unknown_piece_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pieces.LEAVE_OUT_VARIABLE, "cpu-thread")

    with pytest.raises(ValueError, match=r"cpu-thread; pieces: .*cpu-threads"):
        pieces.is_used("cpu-threads")


class Prepared(Exception):
    """The driver has come to where it would look at the engines."""


@pytest.mark.parametrize(("switch", "is_there"), [({}, True), ({layer.SWITCH_VARIABLE: "0"}, False)])
def test_the_environment_of_a_job_decides_before_anything_is_imported(
    switch: dict[str, str], is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []

    def stop(*_: str) -> None:
        raise Prepared

    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"]})
    monkeypatch.setattr(cpu_layer, "start_fork_server", lambda: prepared.append("forking"))
    monkeypatch.setattr(ppo, "require_group", stop)
    spec = {
        "job_id": "job_a", "attempt": 1, "name": "a", "recipe": "grpo", "engine": "verl-ppo",
        "platform": "cpu", "gpus": 1, "seed": 0, "params": {}, "engine_overrides": [],
        "env": {PLATFORM_VARIABLE: "cpu", **switch},
        "model": {"model_id": "m", "path": "/m"}, "row_format": "verl-rl",
        "train_data": {
            "dataset_id": "d", "paths": ["/d"], "format": "verl-rl", "sha256": "0", "row_count": 1,
        },
        "attempt_dir": str(tmp_path), "checkpoint_dir": str(tmp_path), "ingest_url": "http://127.0.0.1:1",
    }  # fmt: skip
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    layer.load_layer.cache_clear()
    try:
        with pytest.raises(Prepared):
            ppo.main([str(tmp_path / "spec.json")])
    finally:
        layer.load_layer.cache_clear()

    assert bool(prepared) is is_there
    assert (os.environ.items() >= THREADS.items()) is is_there
