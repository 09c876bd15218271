"""Which rewards can be used on this platform, and why others cannot."""

import shutil
import subprocess
import time

from trellis_contracts.recipe import Text
from trellis_contracts.rewards import RewardKind
from trellis_recipes.rewards import reward_kinds

from trellis_api.core.settings import Settings

#: Rewards that execute code of strangers.
SANDBOXED = frozenset({"code", "python"})
SANDBOX_PROGRAM = "bwrap"
_TRIAL = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true")
_TRIAL_TIMEOUT_S = 10.0
_REMEMBERED_S = 60.0
_remembered: tuple[float, str | None] | None = None


def find_sandbox_problem() -> str | None:
    """Why nothing can be run isolated on this machine, or None; looked at again once a minute."""
    global _remembered
    if _remembered is None or time.monotonic() - _remembered[0] > _REMEMBERED_S:
        _remembered = (time.monotonic(), _try_sandbox())
    return _remembered[1]


def _try_sandbox() -> str | None:
    program = shutil.which(SANDBOX_PROGRAM)
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, *_TRIAL], capture_output=True, text=True, timeout=_TRIAL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if done.returncode:
        return f"bubblewrap is refused here: {done.stderr.strip() or f'exit code {done.returncode}'}"
    return None


def list_kinds(settings: Settings) -> list[RewardKind]:
    """The catalogue, with what this platform has filled in."""
    return [_localise(kind, settings) for kind in reward_kinds().values()]


def _localise(kind: RewardKind, settings: Settings) -> RewardKind:
    options = [
        option.model_copy(update={"choices": sorted(settings.judges)})
        if option.source == "judges"
        else option
        for option in kind.options
    ]
    return kind.model_copy(update={"options": options, "unavailable": find_obstacle(kind.name, settings)})


def find_obstacle(name: str, settings: Settings) -> Text | None:
    """Why a reward cannot be used on this platform, or None."""
    if name in SANDBOXED:
        problem = find_sandbox_problem()
        if problem is None:
            return None
        return Text(
            en=f"Code is run in a sandbox only, and there is none on this machine: {problem}.",
            zh=f"代码只能在沙箱中运行，而本机没有可用的沙箱：{problem}。",
        )
    if name == "judge" and not settings.judges:
        return Text(
            en="No judge is set up; name an endpoint in TRELLIS_JUDGES.",
            zh="尚未配置评审端点；请在 TRELLIS_JUDGES 中配置。",
        )
    return None
