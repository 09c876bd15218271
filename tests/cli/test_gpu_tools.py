"""What a machine with GPUs needs is looked for and named, on machines made of stand-ins."""

import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from trellis_api.core.settings import Settings
from trellis_cli import doctor
from trellis_cli.gpu_check.check import examine
from trellis_cli.gpu_check.check_results import Ground
from trellis_cli.gpu_tools import Tool, examine_tools


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Tool]]:
    """The tools that are found on a machine with these programs on its PATH."""

    def build(
        programs: Sequence[str] = ("gcc", "g++", "nvcc", "nvidia-smi"),
        *,
        driver: str = "580.95.05",
        has_headers: bool = True,
    ) -> dict[str, Tool]:
        folder, include = tmp_path / "bin", tmp_path / "include"
        for each in (folder, include):
            each.mkdir(exist_ok=True)
        for name in programs:
            (folder / name).write_text(f"#!/bin/sh\necho '{driver}'\n" if driver else "#!/bin/sh\nexit 9\n")
            (folder / name).chmod(0o755)
        if has_headers:
            (include / "Python.h").touch()
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
        monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(include))
        return {tool.name: tool for tool in examine_tools()}

    return build


def test_a_machine_with_everything_lacks_flash_attention_alone(
    machine: Callable[..., dict[str, Tool]],
) -> None:
    tools = machine()

    assert {name for name, tool in tools.items() if not tool.is_found} == {"flash-attn"}
    assert tools["nvidia driver"].detail == "580.95.05"
    assert "without packing" in tools["flash-attn"].detail


@pytest.mark.parametrize(
    ("missing", "name", "to_install"),
    [
        ("nvidia-smi", "nvidia driver", "nvidia-driver-580"),
        ("gcc", "compiler", "build-essential"),
        ("nvcc", "nvcc", "cuda-toolkit-13-0"),
        ("g++", "g++", "build-essential"),
    ],
)
def test_what_is_missing_is_named_with_what_to_install(
    missing: str, name: str, to_install: str, machine: Callable[..., dict[str, Tool]]
) -> None:
    tools = machine([each for each in ("gcc", "g++", "nvcc", "nvidia-smi") if each != missing])

    assert {each for each, tool in tools.items() if not tool.is_found} == {name, "flash-attn"}
    assert to_install in tools[name].detail


def test_missing_headers_are_named_with_the_package_of_this_python(
    machine: Callable[..., dict[str, Tool]],
) -> None:
    headers = machine(has_headers=False)["Python.h"]

    assert not headers.is_found
    assert not headers.is_optional
    assert "-dev" in headers.detail


@pytest.mark.parametrize(
    ("driver", "said"), [("550.54.14", "too old for CUDA 13"), ("", "is not responding")]
)
def test_an_old_or_broken_driver_is_told(
    driver: str, said: str, machine: Callable[..., dict[str, Tool]]
) -> None:
    assert said in machine(driver=driver)["nvidia driver"].detail


def test_nvcc_is_found_where_the_toolkit_lies(
    tmp_path: Path, machine: Callable[..., dict[str, Tool]]
) -> None:
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.touch(mode=0o755)

    assert machine(["gcc", "g++", "nvidia-smi"])["nvcc"] == Tool("nvcc", True, str(nvcc))


def test_doctor_tells_the_tools_of_a_machine_with_gpus_alone(
    tmp_path: Path, machine: Callable[..., dict[str, Tool]]
) -> None:
    machine(["gcc", "g++", "nvidia-smi"], has_headers=False)
    with_gpu = Settings(data_root=tmp_path, platform="cuda", slots=1)
    without = Settings(data_root=tmp_path, platform="cpu")

    found = {check.name: check for check in doctor.check_gpu_tools(with_gpu)}

    # A platform starts without them; jobs would fail later, which a warning says.
    assert {name for name, check in found.items() if check.state == "warning"} == {
        "Python.h",
        "flash-attn",
        "nvcc",
    }
    assert {check.state for check in found.values()} == {"ok", "warning"}
    assert doctor.check_gpu_tools(without) == []


def test_gpu_check_fails_without_what_jobs_need_and_skips_what_they_do_without(tmp_path: Path) -> None:
    tools = [
        Tool("Python.h", False, "missing: install it"),
        Tool("nvcc", False, "there is none", is_optional=True),
        Tool("compiler", True, "/usr/bin/gcc"),
    ]

    rows = {row.check: row for row in examine(Ground(tmp_path, "cuda"), tools=tools, libraries=[], checks=[])}

    assert {name: rows[name].state for name in ("Python.h", "nvcc", "compiler")} == {
        "Python.h": "failing",
        "nvcc": "skipped",
        "compiler": "ok",
    }
    assert rows["Python.h"].detail == "missing: install it"


def test_the_probe_of_flash_attention_is_skipped_where_it_is_not_installed() -> None:
    from trellis_cli.gpu_check.probes import LIBRARIES

    probe = next(each for each in LIBRARIES if each.name == "flash attention")

    assert probe.package == "flash_attn"
