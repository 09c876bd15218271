"""Watches the services of one platform and starts again what died or hangs; `trellis supervise` runs it.

It holds the lock of the data root only for the moment in which it starts something, and takes it only
when it is free: whoever starts or ends the platform by hand goes first. Services outlive it.
"""

import contextlib
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from trellis_contracts.supervision import RENEW_INTERVAL_S, SUPERVISION_FILE, SupervisedService, Supervision

from trellis_cli.errors import Problem
from trellis_cli.services import logs
from trellis_cli.services.process import ProcessIdentity, write_record
from trellis_cli.services.restarts import MOST_DEATHS, WINDOW_S, Restarts
from trellis_cli.services.service import Service
from trellis_cli.services.supervisor import Supervisor

_LOOK_INTERVAL_S = 1.0
#: Between two questions to a service whether it answers.
_PROBE_INTERVAL_S = 10.0
#: How much of a service's log goes with the news of its death.
_REASON_CHARS = 300
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Watched:
    """One service under watch."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.restarts = Restarts()
        self.told = SupervisedService(name=service.name)
        self.seen: ProcessIdentity | None = service.record
        self.probed_at = 0.0
        self.failed_probes = 0
        #: Whether the last start failed for a reason of the machine's.
        self.is_put_off = False

    def note_alive(self, record: ProcessIdentity) -> None:
        """Record that the service is running, perhaps as another process than before."""
        if record != self.seen or self.told.state in ("waiting", "given_up"):
            self.seen, self.failed_probes = record, 0
            self.restarts.note_start()
            self.told.state = "starting"

    def note_death(self, reason: str, now: float) -> None:
        """Record that the service was found dead, or is being ended because it hangs."""
        self.seen = None
        self.restarts.note_death(now)
        self.told.died_at, self.told.reason = time.time(), reason
        self.told.state = "given_up" if self.restarts.has_given_up else "waiting"


def notify_systemd(state: str) -> None:
    """Tell systemd, where it started this process and wants to know (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    # An address that begins with @ is one of Linux' abstract sockets.
    address = f"\0{address[1:]}" if address.startswith("@") else address
    # Where systemd is away for a moment, the next round tells it.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.sendto(state.encode(), address)


class Watch:
    """The loop. ``look`` is one round, for tests."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.layout = supervisor.platform.layout
        self.watched = [Watched(each) for each in supervisor.services if not each.is_external]
        self._stop = threading.Event()
        self._started_at = time.time()
        self._told: Supervision | None = None
        self._trouble: str | None = None
        #: Whether the file could not be written the last time.
        self._is_untold = False

    def run(self) -> None:
        """Watch until SIGTERM; a restart that is under way is completed."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        with self._alone():
            self.supervisor.say(f"watching {', '.join(each.service.name for each in self.watched)}")
            while not self._stop.is_set():
                self._look_whatever_happens()
                notify_systemd("WATCHDOG=1")
                self._stop.wait(_LOOK_INTERVAL_S)
            (self.layout.data_root / SUPERVISION_FILE).unlink(missing_ok=True)

    def _look_whatever_happens(self) -> None:
        """Look at the services; a full or missing disk must not end the watch and is reported once."""
        try:
            self.look()
        except (Problem, OSError) as problem:
            if str(problem) != self._trouble:
                self.supervisor.say(f"the services cannot be watched now: {problem}")
            self._trouble = str(problem)
        else:
            self._trouble = None

    def look(self) -> None:
        """Look at every service once, and start what is due."""
        # Others start services, too, and may have settled on other ports.
        self.supervisor.platform.follow()
        dead = [each for each in self.watched if not self._is_alive(each)]
        if dead:
            with self.layout.try_locked() as has_lock:
                # Otherwise somebody is starting or ending the services.
                if has_lock:
                    # They may have been done before the lock was ours.
                    self.supervisor.platform.follow()
                    for each in dead:
                        if not self._stop.is_set():
                            self._care_for(each)
        self._tell()

    def _is_alive(self, watched: Watched) -> bool:
        record = watched.service.record
        if record is None:
            return False
        watched.note_alive(record)
        return not self._hangs(watched)

    def _hangs(self, watched: Watched) -> bool:
        """Return whether it has not answered for so long that it must be restarted."""
        now = time.monotonic()
        if now - watched.probed_at < _PROBE_INTERVAL_S:
            return False
        watched.probed_at = now
        service = watched.service
        logs.rotate(self.layout.log_path(service.name))
        problem = service.find_hang()
        if problem is None:
            watched.failed_probes, watched.told.state = 0, "running"
            return False
        watched.failed_probes += 1
        is_starting = watched.told.state == "starting"
        patience_s = 2 * service.start_timeout_s if is_starting else service.hangs_after_s
        return watched.failed_probes * _PROBE_INTERVAL_S > patience_s

    def _care_for(self, watched: Watched) -> None:
        """Handle a service that is dead or hangs, under the lock: record it, and start it when it is due."""
        service, record = watched.service, watched.service.record
        if record is not None and record != watched.seen:
            return  # somebody has started it since
        if watched.told.state not in ("waiting", "given_up"):
            reason = self._explain(watched)
            if record is not None:
                service.end()
            self._note_death(watched, reason, time.monotonic())
        if watched.restarts.is_due(time.monotonic()):
            self._start(watched)

    def _start(self, watched: Watched) -> None:
        service = watched.service
        if not watched.is_put_off:
            self.supervisor.say(f"{service.name}: restarting")
        try:
            self.supervisor.bring_back([service])
        except OSError as error:
            self._put_off(watched, error)
            return
        except Problem as problem:
            watched.told.restarts += 1
            self._note_death(watched, str(problem), time.monotonic())
            return
        watched.told.restarts += 1
        watched.is_put_off = False
        if (record := service.record) is not None:
            watched.note_alive(record)
        else:
            self._note_death(watched, self._explain(watched), time.monotonic())

    def _put_off(self, watched: Watched, error: OSError) -> None:
        """Postpone a start that failed because of the disk; it is retried until the disk works again."""
        # It may run without a record.
        watched.service.end()
        watched.told.reason = f"it cannot be started: {error.strerror or error}"
        if not watched.is_put_off:
            self.supervisor.say(f"{watched.service.name}: {watched.told.reason}; it is tried again and again")
        watched.is_put_off = True
        watched.restarts.put_off(time.monotonic())

    def _note_death(self, watched: Watched, reason: str, now: float) -> None:
        watched.note_death(reason, now)
        name = watched.service.name
        self.supervisor.say(f"{name}: {reason}")
        if watched.restarts.has_given_up:
            self.supervisor.say(
                f"ERROR {name}: GAVE UP after {MOST_DEATHS + 1} crashes within {WINDOW_S / 60:.0f} minutes; "
                f"see {self.layout.log_path(name)}, fix the cause, then run ./init.sh"
            )

    def _explain(self, watched: Watched) -> str:
        service = watched.service
        if service.record is not None:
            silent_s = watched.failed_probes * _PROBE_INTERVAL_S
            return f"it did not respond for {silent_s:.0f} s and was killed"
        lines = logs.tail(self.layout.log_path(service.name), 5)
        last = [text for text in (_COLOURS.sub("", line).strip() for line in lines) if text]
        return f"it exited; last line: {last[-1][:_REASON_CHARS]}" if last else "it exited without output"

    def _tell(self) -> None:
        """Write the file that the API reads, where there is news or it is getting old."""
        now, services = time.time(), [each.told.model_copy() for each in self.watched]
        is_fresh = self._told is not None and 0 <= now - self._told.renewed_at < RENEW_INTERVAL_S
        if self._told is not None and is_fresh and services == self._told.services:
            return
        told = Supervision(pid=os.getpid(), started_at=self._started_at, renewed_at=now, services=services)
        self._told = told
        path = self.layout.data_root / SUPERVISION_FILE
        temporary = path.with_suffix(".tmp")
        try:
            temporary.write_text(told.model_dump_json())
            temporary.replace(path)
        except OSError as error:  # a full disk must not end the watch, nor be filled with this
            if not self._is_untold:
                self.supervisor.say(f"{path} cannot be written: {error.strerror}")
            self._is_untold = True
        else:
            self._is_untold = False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only supervisor of this data root, and let others know."""
        with self.layout.try_locked("supervisor.lock") as is_alone:
            if not is_alone:
                raise Problem(
                    "another supervisor is already running for this platform",
                    hint="./init.sh status shows it",
                )
            own = ProcessIdentity.of(os.getpid())
            if own is not None:
                write_record(self.layout.pid_path("supervisor"), own)
            yield
