"""One attempt from its first event to its last: prepare, start the engine, watch it, report how it ended."""

import json
import logging
import os
import re
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from trellis_contracts.attempt import ADDRESS_FILE, ENGINE_KEY_FILE, MIX_FILE, PREPARED_FOLDER, STOP_FILE
from trellis_contracts.events import LogEvent, ManifestEvent, MetricsEvent, OutcomeEvent, ProgressEvent
from trellis_contracts.isolation import OFF, ON, STATE_VARIABLE
from trellis_contracts.spec import EXIT_CRASHED, EXIT_STOPPED, EXIT_SUCCEEDED, JobSpec

from trellis_train.agents.unusable import AgentUnusable
from trellis_train.hooks.checkpoints import find_step
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE, Spool, is_stop_requested
from trellis_train.platform.activation import THREADS_VARIABLE, threads_of_slot
from trellis_train.rewards.resources import read_keys
from trellis_train.rewards.scorer import RewardUnusable
from trellis_train.supervise.child import EngineProcess
from trellis_train.supervise.failure_causes import Verdict, find_known_cause, judge
from trellis_train.supervise.heartbeat import HeartbeatSender
from trellis_train.supervise.manifest import describe_run
from trellis_train.supervise.output import OutputPump
from trellis_train.supervise.platform_client import PlatformClient
from trellis_train.supervise.redaction import Redactor
from trellis_train.supervise.shipper import Shipper
from trellis_train.supervise.standalone import NoHeartbeat, NoShipper
from trellis_train.supervise.termination import Ending

logger = logging.getLogger(__name__)

PRODUCER = "entrypoint"
#: How long to wait for an absent API at the end. What is then left in the spool is
#: drained by the reconciler, so this bounds how long an idle run holds its slots.
DRAIN_TIMEOUT_S = 120.0
#: The same after SIGTERM, where SIGKILL follows soon.
_HURRIED_DRAIN_TIMEOUT_S = 3.0
_POLL_INTERVAL_S = 0.2


def _build_environment(spec: JobSpec) -> dict[str, str]:
    """Build the environment of the engine's process.

    Ray gives the job's own process one thread, whatever the machine has: on a CPU the engine would
    compute on one core. Exports and evaluations take no slot and are one process.
    """
    threads = {THREADS_VARIABLE: str(threads_of_slot(max(1, spec.gpus)))} if spec.platform == "cpu" else {}
    return {**os.environ, **threads, **spec.env, ATTEMPT_DIR_VARIABLE: spec.attempt_dir}


class SupervisedRun:
    """Everything that the parent of one attempt does. ``execute`` must run in the main thread."""

    def __init__(
        self,
        spec: JobSpec,
        token: str | None,
        engine_command: list[str],
        *,
        drain_timeout_s: float = DRAIN_TIMEOUT_S,
    ) -> None:
        """Take the job's spec; without a ``token`` nothing is sent and the events stay in the spool."""
        self._spec = spec
        self._attempt_dir = Path(spec.attempt_dir)
        self._engine_command = engine_command
        self._drain_timeout_s = drain_timeout_s
        self._environment = _build_environment(spec)
        secrets = [*read_keys(self._attempt_dir).values()] + ([] if token is None else [token])
        secrets += read_engine_key(self._attempt_dir)
        self._redactor = Redactor(self._environment, extra_secrets=secrets)
        self._ending = Ending()
        self._spool = Spool(self._attempt_dir, PRODUCER)
        self._shipper: Shipper | NoShipper = NoShipper()
        self._heartbeat: HeartbeatSender | NoHeartbeat = NoHeartbeat()
        if token is not None:
            self._shipper, self._heartbeat = self._report_to(token)

    def _report_to(self, token: str) -> tuple[Shipper, HeartbeatSender]:
        """Create the shipper and the heartbeat sender, which communicate with the platform."""
        spec, address_file = self._spec, self._attempt_dir / ADDRESS_FILE
        shipper = Shipper(
            PlatformClient(spec.ingest_url, spec.job_id, token, address_file=address_file),
            self._attempt_dir,
            spec.attempt,
            on_refused=self._ending.note_refusal,
        )
        heartbeat = HeartbeatSender(
            PlatformClient(spec.ingest_url, spec.job_id, token, address_file=address_file),
            self._attempt_dir,
            spec.attempt,
            interval_s=spec.heartbeat_interval_s,
            read_step=lambda: shipper.latest_step,
            on_stop_requested=self._request_stop,
        )
        return shipper, heartbeat

    def execute(self) -> int:
        """Run the attempt; the exit code of the process."""
        signal.signal(signal.SIGTERM, self._on_terminate)
        signal.signal(signal.SIGINT, self._on_terminate)
        start_step = find_step(self._spec.resume_from)
        self._shipper.latest_step = start_step
        self._spool.write(ProgressEvent(time=now(), phase="preparing", step=start_step))
        self._shipper.start()
        self._heartbeat.start()
        self._tell_isolation()
        exit_code, verdict = self._run_to_verdict()
        self._report(exit_code, verdict)
        return choose_exit_code(exit_code, verdict)

    def _tell_isolation(self) -> None:
        """Say in the log where the run sees more of the machine than it needs."""
        state = os.environ.get(STATE_VARIABLE, OFF)
        if state not in (ON, OFF):
            self.say(f"The run's processes are not isolated from the platform's files: {state}.")

    def _run_to_verdict(self) -> tuple[int, Verdict]:
        """Return the engine's exit code and its verdict; a failed preparation counts as exit code 1."""
        try:
            self._prepare()
        except Exception as error:  # noqa: BLE001 - the edge of the process: reported as the reason
            return 1, self._explain_preparation(error)
        if self._is_ending():
            return EXIT_STOPPED, Verdict("stopped", "The run was stopped before it started.")
        return self._run_engine()

    def _prepare(self) -> None:
        # Imported here: it costs a tenth of a second, and the first event is on its way by now.
        if self._spec.train_data is None:
            return  # exports and evaluations train on nothing
        from trellis_train.agents.preflight import check_agent, check_first_sessions
        from trellis_train.agents.tooluse.training.sampled_pairs import SamplingStopped
        from trellis_train.data.prepare import prepare
        from trellis_train.rewards.preflight import check_rewards

        check_agent(self._spec)
        try:
            prepare(self._spec, is_stopped=self._is_ending)
        except SamplingStopped:
            return
        self._tell_mix()
        check_first_sessions(self._spec)
        check_rewards(self._spec)

    def _tell_mix(self) -> None:
        """Report the rows that are learned by kind of task, where a recipe chooses them."""
        mix = self._attempt_dir / PREPARED_FOLDER / MIX_FILE
        if not mix.is_file():
            return
        found = json.loads(mix.read_text(encoding="utf-8"))
        values = {f"data/rows/{kind}": count for kind, count in found.pop("task_types").items()}
        values |= {f"data/{name}": count for name, count in found.items()}
        self._spool.write(MetricsEvent(time=now(), step=find_step(self._spec.resume_from), values=values))

    def _is_ending(self) -> bool:
        return is_stop_requested(self._attempt_dir) or self._ending.is_terminated

    def _explain_preparation(self, error: Exception) -> Verdict:
        reason = self._redactor.mask(f"{error}" or type(error).__name__)
        if isinstance(error, RewardUnusable):
            return Verdict("failed", reason, "reward_unusable")
        if isinstance(error, AgentUnusable):
            return Verdict("failed", reason, "agent_unusable")
        self.say(f"The data could not be prepared.\n{traceback.format_exc()}")
        known = find_known_cause([reason])
        return known or Verdict("failed", reason, "bad_data")

    def _run_engine(self) -> tuple[int, Verdict]:
        kills_before = count_oom_kills()
        engine = EngineProcess(self._engine_command, environment=self._environment, folder=self._attempt_dir)
        stdout, stderr = engine.list_streams()
        pump = OutputPump(
            {"stdout": stdout, "stderr": stderr},
            self._spool,
            self._redactor,
            on_flush=self._shipper.wake,
            is_full=self._shipper.is_full,
        )
        pump.start()
        self._write_manifest()
        exit_code = self._watch(engine)
        pump.join(timeout_s=5.0)
        verdict = judge(
            exit_code,
            list(pump.tail),
            was_oom_kill=count_oom_kills() > kills_before,
            ended_for=self._ending.explain(is_stop_requested=is_stop_requested(self._attempt_dir)),
        )
        return exit_code, verdict

    def _watch(self, engine: EngineProcess) -> int:
        """Wait for the engine, ending it when its time is up."""
        while True:
            exit_code = engine.wait(_POLL_INTERVAL_S)
            if exit_code is not None:
                return exit_code
            self._ending.advance(engine, request_stop=self._request_stop)

    def _write_manifest(self) -> None:
        try:
            manifest = describe_run(self._spec, self._redactor)
            self._spool.write(ManifestEvent(time=now(), manifest=manifest))
        except Exception:  # the edge of the process: the run matters more than its manifest
            logger.exception("the manifest of %s could not be written", self._spec.job_id)
            self.say("The manifest could not be written.")

    def _report(self, exit_code: int, verdict: Verdict) -> None:
        if verdict.reason:
            self.say(f"Run {verdict.outcome}: {verdict.reason}")
        self._spool.write(
            OutcomeEvent(
                time=now(),
                outcome=verdict.outcome,
                exit_code=exit_code,
                reason=verdict.reason,
                cause=verdict.cause,
            )
        )
        timeout_s = _HURRIED_DRAIN_TIMEOUT_S if self._ending.is_terminated else self._drain_timeout_s
        if not self._shipper.drain(timeout_s):
            logger.warning("not all events reached the platform; the rest is kept in %s", self._attempt_dir)
        self._heartbeat.stop()

    def _request_stop(self) -> bool:
        """Ask the engine to checkpoint and leave at the end of its step; False when it has been asked."""
        if is_stop_requested(self._attempt_dir):
            return False
        (self._attempt_dir / STOP_FILE).touch()
        self.say("Stop requested: the run will leave at a checkpoint.")
        return True

    def _on_terminate(self, _number: int, _frame: FrameType | None) -> None:
        self._ending.note_termination()

    def say(self, text: str) -> None:
        """Write lines of the platform's own into the job's log."""
        lines = [self._redactor.mask(line) for line in text.splitlines()]
        print("\n".join(lines), file=sys.stderr, flush=True)
        try:
            self._spool.write(LogEvent(time=now(), stream="platform", lines=lines))
        except OSError as error:
            logger.warning("the event spool cannot be written: %s", error)
        self._shipper.wake()


def read_engine_key(attempt_dir: Path) -> list[str]:
    """Read the key of an endpoint's engine; empty if the attempt serves none."""
    try:
        return [(attempt_dir / ENGINE_KEY_FILE).read_text()]
    except FileNotFoundError:
        return []


def choose_exit_code(engine_exit_code: int, verdict: Verdict) -> int:
    """Choose the entrypoint's exit code: the engine's own unless it has another meaning here."""
    fixed = {"succeeded": EXIT_SUCCEEDED, "stopped": EXIT_STOPPED, "crashed": EXIT_CRASHED}
    if verdict.outcome in fixed:
        return fixed[verdict.outcome]
    is_free = 0 < engine_exit_code < 256 and engine_exit_code not in fixed.values()
    return engine_exit_code if is_free else 1


def count_oom_kills() -> int:
    """Count the processes that the kernel has killed for memory since it was booted."""
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    match = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(match.group(1)) if match else 0
