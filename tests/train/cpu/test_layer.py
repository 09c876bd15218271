"""When the layer for CPUs is there."""

import pytest
from trellis_train.cpu.layer import CpuLayer
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
