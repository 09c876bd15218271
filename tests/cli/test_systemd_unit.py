"""The unit of systemd: what it runs, what it is told, and that nothing is written for a look."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from trellis_cli import systemd_unit
from trellis_cli.errors import Problem
from trellis_cli.services.platform import load_platform
from trellis_cli.systemd_unit import build_environment, build_unit, install_service


@pytest.fixture
def data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path / "a folder"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "a folder"


def test_a_look_writes_nothing(data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install_service(port=8765, only_print=True)

    shown = capsys.readouterr().out
    assert "-m trellis_cli supervise" in shown
    assert "NotifyAccess=main\nWatchdogSec=" in shown, "one that hangs is started again, too"
    assert 'TRELLIS_PORT="8765"' in shown
    assert not data_root.exists()
    assert not (tmp_path / "config").exists()


def test_the_files_are_written_and_what_is_missing_is_told(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(Problem, match="couldn't enable it") as problem:
        install_service()

    assert "systemctl --user enable trellis.service" in (problem.value.hint or "")
    assert (tmp_path / "config" / "systemd" / "user" / "trellis.service").is_file()
    assert stat.S_IMODE((data_root / "service.env").stat().st_mode) == 0o600


def test_a_unit_that_was_enabled_says_how_it_is_started(
    data_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        ran.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/systemctl")
    monkeypatch.setattr(systemd_unit.subprocess, "run", run)

    install_service()

    assert ran == [
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", "trellis.service"],
    ]
    assert "systemctl --user start trellis.service" in capsys.readouterr().out


def test_settings_of_the_call_hold_for_the_unit(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_SLOTS", "3")
    monkeypatch.setenv("TRELLIS_REDIS_URL", 'redis://:a"b\\c%d$e@host/0')
    monkeypatch.setenv("TRELLIS_SERVICE_MARK", "another platform's")

    lines = build_environment(load_platform()).splitlines()

    assert 'TRELLIS_SLOTS="3"' in lines
    assert r'TRELLIS_REDIS_URL="redis://:a\"b\\c%d$e@host/0"' in lines
    assert f'TRELLIS_DATA_ROOT="{data_root}"' in lines
    assert not any(line.startswith("TRELLIS_SERVICE_MARK") for line in lines)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_accepts_the_unit(data_root: Path, tmp_path: Path) -> None:
    data_root.mkdir()
    platform = load_platform()
    environment_file = data_root / "service.env"
    environment_file.write_text(build_environment(platform))
    unit = tmp_path / "trellis.service"
    unit.write_text(build_unit(platform, environment_file, is_system=False))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "trellis.service" not in done.stdout + done.stderr
    assert "Failed to initialize" not in done.stderr
