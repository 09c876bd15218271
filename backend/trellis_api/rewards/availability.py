"""Which rewards can be used on this platform, and why others cannot."""

import subprocess
from datetime import timedelta

from sqlmodel import Session
from trellis_contracts.recipe import Text
from trellis_contracts.rewards import RewardKind
from trellis_recipes.rewards import reward_kinds

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.rewards import repository
from trellis_api.rewards.models import SandboxProbe

#: The training side alone knows how code is isolated; it is asked in a process of its own.
_PROBE = ("-m", "trellis_train.sandbox")
_PROBE_TIMEOUT_S = 60.0
#: Machines whose worker has not started for so long are forgotten when another one does.
_FORGOTTEN_AFTER = timedelta(days=7)
MAX_PROBLEM = 500


def probe_sandbox(python: str) -> str | None:
    """Find why code can't be sandboxed here, or None. Starts processes: don't call in a transaction."""
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            [python, *_PROBE], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the probe does not run: {error}"
    if done.returncode == 0:
        return None
    said = done.stdout.strip() or done.stderr.strip().rpartition("\n")[2]
    return said or f"the probe left with exit code {done.returncode}"


def record_probe(session: Session, *, hostname: str, problem: str | None) -> None:
    """Keep what a worker has found out on its machine."""
    now = utc_now()
    shown = problem[:MAX_PROBLEM] if problem else None
    repository.replace_sandbox_probe(
        session,
        SandboxProbe(hostname=hostname, problem=shown, probed_at=now),
        forget_before=now - _FORGOTTEN_AFTER,
    )


def read_sandbox_problem(session: Session) -> str | None:
    """Return what the workers lack to isolate code; None if one of them can, or none was probed yet."""
    problems = repository.list_sandbox_problems(session)
    return problems[0] if problems and all(problems) else None


def list_kinds(session: Session, settings: Settings) -> list[RewardKind]:
    """List the reward kinds of the catalogue, adapted to this platform."""
    problem = read_sandbox_problem(session)
    return [_localise(kind, settings, problem) for kind in reward_kinds().values()]


def find_obstacle(session: Session, name: str, settings: Settings) -> Text | None:
    """Find why a reward can't be used on this platform, or None."""
    kind = reward_kinds().get(name)
    return None if kind is None else _find_obstacle(kind, settings, read_sandbox_problem(session))


def _localise(kind: RewardKind, settings: Settings, sandbox_problem: str | None) -> RewardKind:
    options = [
        option.model_copy(update={"choices": sorted(settings.judges)})
        if option.source == "judges"
        else option
        for option in kind.options
    ]
    unavailable = _find_obstacle(kind, settings, sandbox_problem)
    return kind.model_copy(update={"options": options, "unavailable": unavailable})


def _find_obstacle(kind: RewardKind, settings: Settings, sandbox_problem: str | None) -> Text | None:
    if kind.runs_code and sandbox_problem is not None:
        return Text(
            en="Code only runs in a sandbox, which isn't available on the workers' machine: "
            f"{sandbox_problem}. Fix this and restart the workers.",
            zh=f"代码只能在沙箱中运行，而工作进程所在的机器没有可用的沙箱：{sandbox_problem}。修复后请重启工作进程。",
        )
    if kind.name == "judge" and not settings.judges:
        return Text(
            en="No judge is configured; add an endpoint to TRELLIS_JUDGES.",
            zh="尚未配置裁判端点；请在 TRELLIS_JUDGES 中配置。",
        )
    return None
