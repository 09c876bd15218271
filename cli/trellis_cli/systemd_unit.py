"""`trellis install-service`: a systemd unit that starts the platform at login or boot, and keeps it up."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from trellis_contracts.private_files import write_private

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import out
from trellis_cli.services.platform import REPOSITORY_ROOT, Platform, load_platform

#: Settings that the unit hands on: the platform's own, and what a Ray cluster of others asks for.
_HANDED_ON = ("TRELLIS_", "RAY_AUTH_")
_MARK = "TRELLIS_SERVICE_MARK"
_NAME = "trellis.service"


def build_unit(platform: Platform, environment_file: Path, *, is_system: bool) -> str:
    """Build the text of the systemd unit: its process is the supervisor, whose death the services survive."""
    run = f"{_quote(sys.executable)} -m trellis_cli"
    user = f"User={os.environ.get('USER') or os.getuid()}\n" if is_system else ""
    target = "multi-user.target" if is_system else "default.target"
    return f"""[Unit]
Description=Trellis, data root {_escape(str(platform.settings.data_root))}
After=network.target
StartLimitIntervalSec=600
StartLimitBurst=5

[Service]
{user}WorkingDirectory={_escape(str(REPOSITORY_ROOT))}
EnvironmentFile={_escape(str(environment_file))}
ExecStart={run} supervise
ExecStop={run} down
Restart=on-failure
RestartSec=10
# It tells after each round that it is alive; to start all services may take minutes.
NotifyAccess=main
WatchdogSec=900
# The services have sessions of their own and outlive a supervisor that dies: the next one watches them.
KillMode=process
TimeoutStopSec=180

[Install]
WantedBy={target}
"""


def build_environment(platform: Platform) -> str:
    """Build an EnvironmentFile from the settings of this call, so that they also apply to the unit."""
    values = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_HANDED_ON) and name != _MARK
    }
    values |= {
        "PATH": os.environ.get("PATH", os.defpath),
        "TRELLIS_DATA_ROOT": str(platform.settings.data_root),
        "TRELLIS_PORT": str(platform.settings.port),
    }
    for name, value in values.items():
        if "\n" in value:
            raise Problem(
                f"{name} has several lines, which an EnvironmentFile cannot hold", exit_code=ExitCode.USAGE
            )
    return "".join(f"{name}={_quote(value, is_unit=False)}\n" for name, value in values.items())


def install_service(
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Port of the platform.")
    ] = None,
    system: Annotated[
        bool, typer.Option("--system", help=("Install system-wide, started at boot; needs root."))
    ] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help=("Print the unit files without installing anything."))
    ] = False,
) -> None:
    """Install and enable a systemd unit: starts at login, or at boot with --system."""
    platform = load_platform(port)
    environment_file = platform.layout.data_root / "service.env"
    unit_path = locate_unit(is_system=system)
    unit = build_unit(platform, environment_file, is_system=system)
    environment = build_environment(platform)
    if only_print:
        for path, text in ((unit_path, unit), (environment_file, environment)):
            out.print(f"# {path}\n{text}", markup=False, highlight=False, soft_wrap=True)
        return
    platform.layout.prepare()
    # It may hold passwords.
    write_private(environment_file, environment)
    try:
        unit_path.parent.mkdir(parents=True, exist_ok=True)
        unit_path.write_text(unit)
    except OSError as error:
        raise Problem(
            f"{unit_path} cannot be written: {error.strerror}", hint="--system needs root"
        ) from error
    out.print(f"wrote {unit_path}\nwrote {environment_file}", highlight=False, soft_wrap=True)
    enable(is_system=system)


def enable(*, is_system: bool) -> None:
    """Let systemd know of the unit; it starts with the next login or boot, or at once by hand."""
    control = ["systemctl"] if is_system else ["systemctl", "--user"]
    commands = [[*control, "daemon-reload"], [*control, "enable", _NAME]]
    by_hand = "; ".join(" ".join(each) for each in commands)
    if shutil.which("systemctl") is None:
        raise Problem("wrote the unit but couldn't enable it: systemctl not found", hint=f"run: {by_hand}")
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise Problem(f"the unit is written and not enabled: {said[-1]}", hint=f"run: {by_hand}")
    out.print(f"enabled; start it now: {' '.join(control)} start {_NAME}", highlight=False, soft_wrap=True)
    if not is_system:
        out.print("to keep it running while you are logged out: loginctl enable-linger", highlight=False)


def locate_unit(*, is_system: bool) -> Path:
    """Return where systemd looks for the unit."""
    if is_system:
        return Path("/etc/systemd/system") / _NAME
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return configuration / "systemd" / "user" / _NAME


def _escape(text: str) -> str:
    """Escape a path for systemd, where % begins a specifier."""
    return text.replace("%", "%%")


def _quote(text: str, *, is_unit: bool = True) -> str:
    """Quote a text; in a unit, $ also begins a variable."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    if is_unit:
        quoted = quoted.replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"'
