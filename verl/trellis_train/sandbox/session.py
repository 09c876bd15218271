"""An isolated process that is asked call by call, and replaced when it died or was ended.

Calls and answers go through pipes of their own, so that nothing the code prints can be taken for
an answer; what it prints goes to a bounded log.
"""

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

from trellis_train.sandbox.command import (
    HARNESS_INSIDE,
    NOTHING,
    Belongings,
    Inherited,
    build_command,
    require_sandbox,
)
from trellis_train.sandbox.errors import CodeNotLoaded, CodeRaised, SandboxError, TooSlow
from trellis_train.sandbox.limits import Limits
from trellis_train.sandbox.output import BoundedLog, as_text

_READ_BYTES = 64 * 1024
#: For bubblewrap and Python; the code has its own limit.
START_TIMEOUT_S = 20.0
#: A process that has closed its pipes is about to end.
_END_TIMEOUT_S = 1.0
#: Of what it printed, in messages.
_SHOWN_OUTPUT = 500


class SandboxSession:
    """One isolated process for one piece of code. Calls from several threads wait for each other."""

    def __init__(
        self,
        code: bytes,
        *,
        mode: str,
        limits: Limits,
        packages: Sequence[str] | None = None,
        belongings: Belongings = NOTHING,
    ) -> None:
        require_sandbox()
        self._belongings = belongings
        self._code = code
        #: Folders of installed packages that the code may import; None for all.
        self._packages = packages
        self._mode = mode
        self._limits = limits
        self._lock = threading.Lock()
        self._process: _Process | None = None
        #: The process, also when it has ended.
        self._last: _Process | None = None

    def call(self, request: dict[str, Any], *, timeout_s: float | None = None) -> dict[str, Any]:
        """Return the reply to a request, by default within the limits' time.

        ``SandboxError`` says what went wrong, and the next call starts anew, unless the code only raised
        (``CodeRaised``).
        """
        with self._lock:
            process = self._start()
            try:
                return process.exchange(request, self._limits.wall_s if timeout_s is None else timeout_s)
            except CodeRaised:
                raise
            except SandboxError:
                self._end()
                raise

    def open(self) -> None:
        """Load the code now, where that has not been done; ``CodeNotLoaded`` where it fails."""
        with self._lock:
            self._start()

    def printed(self, characters: int) -> str:
        """Return the end of what the code printed; complete once its process has been closed."""
        with self._lock:
            return "" if self._last is None else self._last.printed(characters)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _start(self) -> "_Process":
        if self._process is None:
            self._process = _Process(self._code, self._mode, self._limits, self._packages, self._belongings)
            self._last = self._process
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class _Process:
    """The isolated process and this end of its pipes."""

    def __init__(
        self,
        code: bytes,
        mode: str,
        limits: Limits,
        packages: Sequence[str] | None,
        belongings: Belongings,
    ) -> None:
        self._limits, self._packages, self._belongings = limits, packages, belongings
        self._count = 0
        self._unread = b""
        requests_read, self._requests = os.pipe2(os.O_CLOEXEC)
        self._answers, answers_write = os.pipe2(os.O_CLOEXEC)
        try:
            self._process = self._start(code, mode, requests_read, answers_write)
        except BaseException:
            os.close(self._requests)
            os.close(self._answers)
            raise
        finally:
            os.close(requests_read)
            os.close(answers_write)
        os.set_blocking(self._requests, False)
        self._log = BoundedLog(self._process.stdout, limits.output_bytes)
        try:
            self._receive(time.monotonic() + START_TIMEOUT_S, "starting the process")
            self._receive(time.monotonic() + limits.wall_s, "loading the code")
        except SandboxError as error:
            self.end()
            was_slow = isinstance(error, TooSlow)
            raise CodeNotLoaded(f"the code could not be loaded: {error}", was_slow=was_slow) from None

    def _start(self, code: bytes, mode: str, requests: int, answers: int) -> subprocess.Popen[bytes]:
        arguments = [
            HARNESS_INSIDE,
            mode,
            self._limits.as_argument(),
            json.dumps(self._belongings.package_folders),
        ]
        with Inherited(code) as file:
            command = build_command(
                [*arguments, str(requests), str(answers)],
                code=file,
                limits=self._limits,
                packages=self._packages,
                belongings=self._belongings,
            )
            return command.start(
                descriptors=(requests, answers),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )

    def exchange(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._count += 1
        deadline = time.monotonic() + timeout_s
        self._send(json.dumps({**request, "id": self._count}).encode() + b"\n", deadline)
        return self._receive(deadline, "the call")

    def _send(self, data: bytes, deadline: float) -> None:
        while data:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([], [self._requests], [], left_s)[1]:
                raise SandboxError(f"it did not accept the call within {self._limits.wall_s:g} s")
            try:
                data = data[os.write(self._requests, data) :]
            except BrokenPipeError:
                raise SandboxError(self._explain_end()) from None

    def _receive(self, deadline: float, what: str) -> dict[str, Any]:
        """Receive the reply to the last request."""
        while b"\n" not in self._unread:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._answers], [], [], left_s)[0]:
                raise TooSlow(f"{what} took too long (limit {self._limits.wall_s:g} s)")
            chunk = os.read(self._answers, _READ_BYTES)
            if not chunk:
                raise SandboxError(self._explain_end())
            self._unread += chunk
            if len(self._unread) > self._limits.answer_bytes:
                raise SandboxError(f"it returned more than {self._limits.answer_bytes:,} bytes")
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            raise SandboxError("it wrote invalid data to the result pipe") from None
        if not isinstance(reply, dict) or reply.get("id") != self._count:
            raise SandboxError("it wrote invalid data to the result pipe")
        if "error" in reply:
            raise CodeRaised(as_text(str(reply["error"])[: _SHOWN_OUTPUT * 2]))
        return reply

    def _explain_end(self) -> str:
        """Explain why the process is gone."""
        try:
            code = self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:  # it closed its end of the pipe and stays
            return "the code closed the result pipe"
        # bubblewrap reports the end of its child by a signal as 128 + its number.
        number = -code if code < 0 else code - 128
        reason = f"exit code {code}"
        if number == signal.SIGXCPU:
            reason = f"it used more than {self._limits.cpu_s} s of CPU time"
        elif number in {*signal.Signals}:
            reason = f"signal {signal.Signals(number).name}"
        printed = self._log.tail(_SHOWN_OUTPUT)
        return f"the process exited ({reason})" + (f"; it printed: {printed}" if printed else "")

    def printed(self, characters: int) -> str:
        """Return the end of what it printed so far."""
        return self._log.tail(characters)

    def end(self) -> None:
        """Kill the process with everything in it, and close the pipes."""
        self._process.kill()
        self._process.wait()
        self._log.close()
        os.close(self._requests)
        os.close(self._answers)
