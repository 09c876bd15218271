"""`./init.sh soak`: a temporary platform, its use, its memory, and whether that stays within bounds."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trellis_cli.client import connect_to
from trellis_cli.demo import starter, steps
from trellis_cli.output import out, print_json, print_table, size
from trellis_cli.services.platform import load_platform
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.temporary import temporary_platform

from trellis_tools.bench.peak_memory import pss
from trellis_tools.chaos.processes import list_tree
from trellis_tools.soak.growth import Growth, measure_growth
from trellis_tools.soak.use import Use

SEED = 1
#: Ray's own processes are not ours, and what it runs are jobs, which come and go.
SERVICES = ("api", "worker", "beat", "redis")
_SAMPLE_S = 2.0
_SHORT = {"total_steps": 3, "validate_every": 0, "save_every": 0}


def run_soak(*, minutes: float, is_json: bool) -> bool:
    """Use a platform for so long; whether no service's memory grew."""
    samples: dict[str, list[int]] = {name: [] for name in SERVICES}
    with temporary_platform() as client:
        root = Path(os.environ["TRELLIS_DATA_ROOT"])
        supervisor = Supervisor(load_platform(), lambda _: None)
        use = Use(connect_to(supervisor.platform), _make_request(client, root), SEED)
        use.start()
        try:
            ends = time.monotonic() + 60 * minutes
            while time.monotonic() < ends:
                for name, sampled in sample(supervisor).items():
                    samples[name].append(sampled)
                time.sleep(_SAMPLE_S)
        finally:
            use.stop()
    growths = [measure_growth(name, taken) for name, taken in samples.items()]
    if is_json:
        print_json(_as_json(growths, use, samples))
    else:
        _print(growths, use)
    return all(each.is_bounded for each in growths)


def sample(supervisor: Supervisor) -> dict[str, int]:
    """Measure the bytes of each service with all its processes; shared pages count once."""
    return {
        each.name: sum(pss(process) for process in list_tree(each.pid))
        for each in supervisor.services
        if each.name in SERVICES
    }


def _make_request(client: Any, root: Path) -> dict[str, Any]:
    starter.make_starter(root / "starter", SEED)
    return {
        "name": "soak",
        "recipe": "sft",
        "preset": starter.PRESET,
        "model": steps.ensure_model(client, "starter", {"kind": "local", "path": "starter/model"}),
        "dataset": steps.ensure_dataset(client, root / "starter" / "data" / "sft.jsonl", "addition"),
        "params": _SHORT,
    }


def _as_json(growths: list[Growth], use: Use, samples: Mapping[str, list[int]]) -> dict[str, Any]:
    return {
        "services": [
            {**vars(each), "growth": round(each.ratio, 4), "bounded": each.is_bounded} for each in growths
        ],
        "done": dict(use.done),
        "refused": dict(use.refused),
        "samples": samples,
    }


def _print(growths: list[Growth], use: Use) -> None:
    rows = [
        (each.name, size(each.first), size(each.last), f"{each.ratio:+.1%}", size(each.most), each.is_bounded)
        for each in growths
    ]
    print_table(("service", "first third", "last third", "growth", "peak", "within limit"), rows)
    for title, counted in (("done", use.done), ("refused", use.refused)):
        told = ", ".join(f"{count} {what}" for what, count in sorted(counted.items()))
        out.print(f"{title}: {told or 'nothing'}", markup=False, highlight=False, soft_wrap=True)
