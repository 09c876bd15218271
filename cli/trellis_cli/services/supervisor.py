"""Bring a platform up, say how it is, and end exactly what was started."""

import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from trellis_cli.errors import Problem
from trellis_cli.services import logs
from trellis_cli.services.api import ApiService
from trellis_cli.services.beat import BeatService
from trellis_cli.services.platform import REPOSITORY_ROOT, Platform, python_command
from trellis_cli.services.ports import holder_of, wait_until_free
from trellis_cli.services.process import start_detached, write_record
from trellis_cli.services.ray import RayService
from trellis_cli.services.redis import RedisService
from trellis_cli.services.service import Service
from trellis_cli.services.watcher import WatcherService
from trellis_cli.services.worker import WorkerService

SERVICES: tuple[type[Service], ...] = (RedisService, RayService, ApiService, WorkerService, BeatService)
Say = Callable[[str], None]
#: How long the API's own port is waited for when it is started again.
_API_PORT_S = 10.0


@dataclass(frozen=True)
class ServiceStatus:
    """How one service is."""

    name: str
    state: Literal["running", "external", "stopped", "failing"]
    detail: str
    pid: int | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether it does its work."""
        return self.state in ("running", "external")


class Supervisor:
    """Starts and ends the services of one platform."""

    def __init__(self, platform: Platform, say: Say) -> None:
        self.platform = platform
        self.say = say
        self.services = [service(platform) for service in SERVICES]
        self.watcher = WatcherService(platform)

    def up(self) -> None:
        """Start what is not running and wait until it all answers."""
        platform = self.platform
        with platform.layout.locked():
            platform.state = platform.layout.read_state()
            stopped = [each for each in self.services if not each.is_external and each.record is None]
            for service in stopped:
                # What a killed service left behind would hold its ports and slots.
                service.end()
            self._check_api(next((each for each in stopped if isinstance(each, ApiService)), None))
            stopped = self._settle(stopped)
            if stopped:
                migrate(platform)
            for service in stopped:
                self._start(service)
            self._wait(self.services)

    def bring_back(self, services: list[Service]) -> None:
        """Start services that died, without waiting until they answer. The caller holds the lock."""
        for service in services:
            service.end()
        self._check_api(next((each for each in services if isinstance(each, ApiService)), None))
        for service in self._settle(services):
            self._start(service)

    def _settle(self, stopped: list[Service]) -> list[Service]:
        """Find the ports of what is to be started; the answer names also what has to follow."""
        for service in stopped:
            service.settle()
        stopped = [*stopped, *self._end_misled(stopped)]
        self.platform.state.api_port = self.platform.settings.port
        if any(isinstance(each, ApiService) for each in stopped):
            self.platform.state.api_host = self.platform.settings.host
        self.platform.layout.write_state(self.platform.state)
        return stopped

    def watch(self) -> None:
        """Start the process that starts again what dies, unless it runs."""
        with self.platform.layout.locked():
            if self.watcher.record is None:
                self.watcher.end()
                self._start(self.watcher)
        self._wait([self.watcher])

    def _end_misled(self, stopped: list[Service]) -> list[Service]:
        """End the services that run with an address of API, broker or cluster that holds no longer.

        A port that was taken meanwhile is replaced by another one, which they would never hear of.
        """
        told, addresses = self.platform.state.told, self.platform.addresses
        running = [each for each in self.services if each not in stopped and each.record is not None]
        misled = [
            each for each in running if each.is_told_addresses and told.get(each.name, addresses) != addresses
        ]
        for service in misled:
            self.say(f"{service.name}: restarting because an address changed")
            service.end()
        if any(isinstance(each, ApiService) for each in misled):
            wait_until_free([self.platform.settings.port], _API_PORT_S, self.platform.settings.host)
        return misled

    def _check_api(self, stopped: ApiService | None) -> None:
        settings, platform = self.platform.settings, self.platform
        if stopped is not None:
            if not wait_until_free([settings.port], stopped.patience_s, settings.host):
                raise Problem(
                    f"port {settings.port} is in use by {holder_of(settings.port)}",
                    hint="choose another one: ./init.sh --port 8002 (or TRELLIS_PORT=8002)",
                )
        elif platform.last_url != platform.url:
            raise Problem(
                f"the platform is already running on {platform.last_url}",
                hint="stop it first (./init.sh down), or set another TRELLIS_DATA_ROOT to run a second one",
            )

    def _start(self, service: Service) -> None:
        layout = self.platform.layout
        logs.rotate(layout.log_path(service.name))
        service.prepare()
        identity = start_detached(
            service.command(),
            env=service.environment(),
            log_path=layout.log_path(service.name),
            cwd=self.platform.settings.data_root,
        )
        write_record(layout.pid_path(service.name), identity)
        told, addresses = self.platform.state.told, self.platform.addresses
        if service.is_told_addresses and told.get(service.name) != addresses:
            told[service.name] = addresses
            layout.write_state(self.platform.state)

    def _wait(self, services: list[Service]) -> None:
        """Wait for all at the same time; the first that cannot be waited for is the problem that is told."""
        with ThreadPoolExecutor(len(services)) as pool:
            problems = [problem for problem in pool.map(self._wait_for, services) if problem]
        if problems:
            raise Problem(problems[0], hint="; ".join(problems[1:]) or None)

    def _wait_for(self, service: Service) -> str | None:
        started = time.monotonic()
        problem: str | None = "was never asked"
        attempt = 1
        while time.monotonic() - started < service.start_timeout_s:
            if not service.is_external and service.record is None:
                if attempt == service.start_attempts:
                    log = self.platform.layout.log_path(service.name)
                    last = "\n  ".join(logs.tail(log, 12))
                    return f"{service.name} ended while starting; the end of {log}:\n  {last}"
                attempt += 1
                self.say(f"{service.name}: exited during start-up, attempt {attempt}")
                service.end()
                self._start(service)
            problem = service.probe()
            if problem is None:
                self.say(f"{service.name}: ready after {time.monotonic() - started:.1f} s")
                return None
            time.sleep(0.2)
        return f"{service.name} is not ready after {service.start_timeout_s:.0f} s: {problem}"

    def down(self) -> list[str]:
        """End every process of this platform, the last started first; the answer names what was running."""
        ended: list[str] = []
        if not self.platform.layout.run_dir.exists():
            return ended
        # First of all, and before the lock, which it may hold: nothing is started again against the wish.
        self._end(self.watcher, ended)
        with self.platform.layout.locked():
            self.platform.state = self.platform.layout.read_state()
            for service in reversed(self.services):
                self._end(service, ended)
        return ended

    def _end(self, service: Service, ended: list[str]) -> None:
        has_ended = service.end()
        self.platform.layout.pid_path(service.name).unlink(missing_ok=True)
        if has_ended:
            self.say(f"{service.name}: ended")
            ended.append(service.name)

    def status(self, *, with_watcher: bool = False) -> list[ServiceStatus]:
        """Ask every service now, all at the same time."""
        services = [*self.services, *([self.watcher] if with_watcher else [])]
        for service in services:
            logs.rotate(self.platform.layout.log_path(service.name))
        with ThreadPoolExecutor(len(services)) as pool:
            return list(pool.map(self._status_of, services))

    def _status_of(self, service: Service) -> ServiceStatus:
        identity = None if service.is_external else service.record
        if identity is None and not service.is_external:
            return ServiceStatus(service.name, "stopped", "not running")
        problem = service.probe()
        if problem:
            return ServiceStatus(service.name, "failing", problem, identity.pid if identity else None)
        state: Literal["external", "running"] = "external" if service.is_external else "running"
        return ServiceStatus(service.name, state, service.describe(), identity.pid if identity else None)


def migrate(platform: Platform) -> None:
    """Bring the database to the newest schema, in a process of its own."""
    done = subprocess.run(  # noqa: S603 - a fixed command
        python_command("-m", "trellis_api.migrate"),
        env=platform.environment("migrate"),
        cwd=REPOSITORY_ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Problem("the database could not be migrated: " + os.linesep.join(last))
