"""What is replaced in Ray to start it without parts that the platform doesn't use: it must still be there."""

import inspect
import sys
from pathlib import Path

import pytest
import ray
from trellis_cli.services import ray_head


@pytest.fixture
def ray_services() -> object:
    import ray._private.services

    return ray._private.services


def test_ray_starts_its_processes_through_one_function(ray_services: object) -> None:
    start = ray_services.start_ray_process  # type: ignore[attr-defined]
    assert list(inspect.signature(start).parameters)[:2] == ["command", "process_type"]
    assert "ray_constants.PROCESS_TYPE_DASHBOARD" in inspect.getsource(ray_services)  # type: ignore[arg-type]
    assert ray._private.ray_constants.PROCESS_TYPE_DASHBOARD == "dashboard"


def test_the_dashboard_takes_the_parts_to_load_by_name() -> None:
    folder = Path(ray.__file__).parent / "dashboard"
    assert '"--modules-to-load"' in (folder / "dashboard.py").read_text()
    modules = "".join(path.read_text() for path in (folder / "modules").rglob("*_head.py"))
    missing = [part for part in ray_head.PARTS if f"class {part}(" not in modules]
    assert missing == []


def test_ray_goes_on_without_the_commands_that_are_left_out() -> None:
    source = (Path(ray.__file__).parent / "scripts" / "scripts.py").read_text()
    for name in ray_head._COMMANDS:
        assert f"from {name} import" in source
    assert "get_ray_client_dependency_error" in source
    assert not {name for name in ray_head._COMMANDS if sys.modules.get(name, sys) is None}
