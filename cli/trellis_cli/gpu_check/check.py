"""Which checks are made on this machine, and what is said of them."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.markup import escape

from trellis_cli.doctor import gpu_names
from trellis_cli.gpu_check.check_results import Check, Ground, Row, State
from trellis_cli.gpu_check.platform import check_platform
from trellis_cli.gpu_check.probes import (
    COLLECTIVE_PROBE,
    FOUNDATION,
    GENERATION_PROBE,
    LIBRARIES,
    SPLIT_GENERATION_PROBE,
    Probe,
)
from trellis_cli.gpu_check.process import run_limited
from trellis_cli.gpu_check.training import RUNS, SEED
from trellis_cli.gpu_tools import Tool, examine_tools
from trellis_cli.output import err, print_json, print_table, styled
from trellis_cli.services.platform import python_command

CHECKS: tuple[Check, ...] = (COLLECTIVE_PROBE, GENERATION_PROBE, SPLIT_GENERATION_PROBE, *RUNS)
DRIVER, STARTER = "driver", "starter model"
STARTER_LIMIT_S = 300.0
PLATFORM = "cuda"


def run_gpu_check(*, is_quick: bool, as_json: bool) -> bool:
    """Print a table or JSON; True when nothing fails. What failed runs wrote is kept."""
    ground = Ground(Path(tempfile.mkdtemp(prefix="trellis-gpu-check-")), PLATFORM)
    rows: list[Row] = []
    try:
        rows_found = examine(
            ground,
            libraries=LIBRARIES,
            checks=() if is_quick else CHECKS,
            tools=examine_tools(),
            through_platform=None if is_quick else check_platform,
        )
        for row in rows_found:
            err.print(f"{row.check}: {row.state}", style="dim")
            rows.append(row)
    finally:
        is_passed = all(row.state != "failing" for row in rows)
        if is_passed or not any(str(ground.folder) in row.detail for row in rows):
            shutil.rmtree(ground.folder, ignore_errors=True)
    show(rows, is_passed=is_passed, as_json=as_json)
    return is_passed


def examine(
    ground: Ground,
    *,
    libraries: Sequence[Probe],
    checks: Sequence[Check],
    tools: Sequence[Tool] = (),
    through_platform: Callable[[Ground], Iterator[Row]] | None = None,
) -> Iterator[Row]:
    """Yield the rows of all checks as they end: driver, tools, libraries, GPU runs and the platform."""
    names = gpu_names()
    yield Row(DRIVER, "ok" if names else "failing", ", ".join(names) or "nvidia-smi lists no GPU")
    obstacle = None if names else "no GPU found"
    for tool in tools:
        yield Row(tool.name, _state_of(tool), tool.detail)
    for probe in libraries:
        # A platform without flash-attn works; a foundation that is missing must fail.
        reason = find_obstacle(probe, probe.gpus) if probe.package else None
        row = Row(probe.name, "skipped", reason) if reason else probe.run(ground)
        yield row
        if row.check == FOUNDATION and row.state != "ok":
            obstacle = obstacle or f"{FOUNDATION} fails"
    if obstacle is None and checks:
        row = make_starter(ground)
        yield row
        if row.state != "ok":
            obstacle = "could not create the starter model"
    gpus = count_gpus(names)
    for check in checks:
        reason = obstacle or find_obstacle(check, gpus)
        yield Row(check.name, "skipped", reason) if reason else check.run(ground)
    if through_platform is not None and obstacle is None:
        yield from through_platform(ground)


def _state_of(tool: Tool) -> State:
    if tool.is_found:
        return "ok"
    return "skipped" if tool.is_optional else "failing"


def find_obstacle(check: Check, gpus: int) -> str | None:
    """Return why a check cannot be made on a machine with so many GPUs, or None."""
    if check.gpus > gpus:
        return f"needs {check.gpus} GPUs, found {gpus}"
    if check.package is not None and importlib.util.find_spec(check.package) is None:
        return f"the package {check.package} is not installed"
    return None


def count_gpus(names: Sequence[str]) -> int:
    """Count the GPUs that processes started from here may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return len(names)
    return min(len(names), sum(1 for each in visible.split(",") if each.strip() not in ("", "-1")))


def make_starter(ground: Ground) -> Row:
    """Write the model and the data that the checks work on."""
    places = ("--model", str(ground.model), "--data", str(ground.data), "--seed", str(SEED))
    ended = run_limited(python_command("-m", "trellis_train.starter", *places), limit_s=STARTER_LIMIT_S)
    if ended.exit_code == 0:
        return Row(STARTER, "ok", "0.8M parameters, random weights", ended.seconds)
    said = ended.last_words or f"exit code {ended.exit_code}"
    return Row(STARTER, "failing", said, ended.seconds)


def show(rows: Sequence[Row], *, is_passed: bool, as_json: bool) -> None:
    """Show one line per check."""
    if as_json:
        checks = [
            {"check": row.check, "state": row.state, "detail": row.detail, "seconds": row.seconds}
            for row in rows
        ]
        print_json({"passed": is_passed, "checks": checks})
        return
    lines = [
        (
            row.check,
            styled(row.state),
            None if row.seconds is None else f"{row.seconds:.0f} s",
            escape(row.detail),
        )
        for row in rows
    ]
    print_table(("check", "state", "took", ""), lines)
