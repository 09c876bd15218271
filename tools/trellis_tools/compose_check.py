"""Checks docker-compose.yml: ``python -m trellis_tools.compose_check``.

Docker Compose itself says whether the file is valid; the rules that it does not know are ours: no default
password, a health check and a restart rule for every service, nothing published beyond this machine, and a
sandbox for code of persons where it is run, with no privilege beyond that.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from trellis_cli.services.platform import REPOSITORY_ROOT

COMPOSE_FILE = REPOSITORY_ROOT / "docker-compose.yml"
REQUIRED_SERVICES = frozenset({"api", "worker", "beat", "ray-head", "ray-gpu-worker", "postgres", "redis"})
#: Where code of persons is run: dry runs in the worker, checks of a job on the head, scoring on nodes.
SANDBOXED_SERVICES = frozenset({"worker", "ray-head", "ray-gpu-worker"})
#: Variables without a default; the file must refuse to start without them.
REQUIRED_VARIABLES = {"POSTGRES_PASSWORD": "p", "REDIS_PASSWORD": "r", "RAY_AUTH_TOKEN": "t"}


def compose_command() -> list[str] | None:
    """Return the command of Docker's Compose plugin or of the stand-alone program, whichever is here."""
    if docker := shutil.which("docker"):
        probe = subprocess.run([docker, "compose", "version"], capture_output=True, check=False)  # noqa: S603
        if probe.returncode == 0:
            return [docker, "compose"]
    standalone = shutil.which("docker-compose")
    return [standalone] if standalone else None


def run_config(command: list[str], variables: dict[str, str], path: Path = COMPOSE_FILE) -> tuple[int, str]:
    """Run `config` with exactly these variables; return its exit code and output."""
    env = {name: value for name, value in os.environ.items() if name not in REQUIRED_VARIABLES} | variables
    done = subprocess.run(  # noqa: S603
        [*command, "-f", str(path), "config"],
        env=env,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def find_problems(model: dict[str, Any]) -> list[str]:
    """Check the parsed Compose file against our own rules and list the problems."""
    services: dict[str, Any] = model.get("services") or {}
    problems = [f"service {name} is missing" for name in sorted(REQUIRED_SERVICES - set(services))]
    for name, service in services.items():
        if "healthcheck" not in service:
            problems.append(f"{name} has no health check")
        if "restart" not in service:
            problems.append(f"{name} has no restart rule")
        build = service.get("build")
        if build and not (COMPOSE_FILE.parent / build["dockerfile"]).is_file():
            problems.append(f"{name}: {build['dockerfile']} does not exist")
        for port in service.get("ports", ()):
            if not str(port).startswith(("127.0.0.1:", "${TRELLIS_BIND:-127.0.0.1}:")):
                problems.append(f"{name} publishes {port} beyond this machine")
        problems += _find_privileges(name, service)
    return problems


def _find_privileges(name: str, service: dict[str, Any]) -> list[str]:
    """Check that no service has excess privileges, and that sandboxed ones have both security profiles."""
    options = dict(_split_option(str(each)) for each in service.get("security_opt", ()))
    problems = []
    if service.get("privileged") or service.get("cap_add") or "unconfined" in options.values():
        problems.append(f"{name} has more privileges than a sandbox takes")
    if name not in SANDBOXED_SERVICES:
        return problems
    profile = options.get("seccomp")
    if profile is None or not (COMPOSE_FILE.parent / profile).is_file():
        problems.append(f"{name} has no seccomp profile that permits a sandbox")
    if "apparmor" not in options:
        problems.append(f"{name} cannot be given an AppArmor profile that permits a sandbox")
    return problems


def _split_option(option: str) -> tuple[str, str]:
    """Split `name:value` or `name=value`, both of which Docker accepts; some have no value."""
    name, *value = re.split("[:=]", option, maxsplit=1)
    return name, "".join(value)


def main() -> int:
    """Print what is wrong."""
    problems = find_problems(yaml.safe_load(COMPOSE_FILE.read_text()))
    command = compose_command()
    if command is None:
        problems.append(
            "neither `docker compose` nor docker-compose is installed: apt-get install docker-compose"
        )
    else:
        code, text = run_config(command, REQUIRED_VARIABLES)
        if code:
            problems.append(text)
        for name in REQUIRED_VARIABLES:
            given = {other: value for other, value in REQUIRED_VARIABLES.items() if other != name}
            if run_config(command, given)[0] == 0:
                problems.append(f"the file can be started without {name}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
