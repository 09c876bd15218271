"""What `trellis evaluations submit` is asked for, as the API's request."""

from pathlib import Path
from typing import Any

import yaml

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.resolve_by_name import find_job, find_model

#: ``harness:arc_easy`` is a task of lm-evaluation-harness.
_HARNESS = "harness:"


def read_orders(
    names: str | None, file: Path | None, changes: dict[str, Any], decoding: dict[str, Any]
) -> list[dict[str, Any]]:
    """Read benchmarks by name and from a file; options for all of them do not override the file's."""
    orders = [_named(name.strip()) for name in (names or "").split(",") if name.strip()]
    orders += _from_file(file) if file else []
    if not orders:
        raise Problem(
            "no benchmark specified",
            hint="--benchmarks gsm8k,math500 or --file orders.yaml; trellis benchmarks list",
            exit_code=ExitCode.USAGE,
        )
    given = {name: value for name, value in changes.items() if value is not None}
    tuned = {name: value for name, value in decoding.items() if value is not None}
    for order in orders:
        for name, value in given.items():
            order.setdefault(name, value)
        if tuned:
            order["decoding"] = tuned | order.get("decoding", {})
    return orders


def read_targets(client: ApiClient, models: list[str], checkpoints: list[str]) -> list[dict[str, Any]]:
    """Resolve models by id or name, and checkpoints as JOB:STEP."""
    targets: list[dict[str, Any]] = [
        {"kind": "model", "model": find_model(client, called)} for called in models
    ]
    for each in checkpoints:
        job, colon, step = each.rpartition(":")
        if not colon or not step.isdecimal():
            raise Problem(
                f"invalid checkpoint '{each}'",
                hint="use --checkpoint JOB:STEP, e.g. job_abc:200; see trellis jobs checkpoints JOB",
                exit_code=ExitCode.USAGE,
            )
        targets.append({"kind": "checkpoint", "job": find_job(client, job), "step": int(step)})
    if not targets:
        raise Problem(
            "no model or checkpoint specified",
            hint="--model NAME or --checkpoint JOB:STEP",
            exit_code=ExitCode.USAGE,
        )
    return targets


def _named(name: str) -> dict[str, Any]:
    if name.startswith(_HARNESS):
        task = name.removeprefix(_HARNESS)
        return {"benchmark": "harness", "task": task, "label": task.lower()}
    return {"benchmark": name}


def _from_file(file: Path) -> list[dict[str, Any]]:
    try:
        found = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Problem(f"{file} cannot be read: {error}", exit_code=ExitCode.USAGE) from error
    if isinstance(found, dict):
        found = found.get("benchmarks", [found])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Problem(
            f"{file} contains no list of benchmarks",
            hint="each entry must be a mapping such as {benchmark: gsm8k, limit: 100}; see "
            "docs/evaluation.md",
            exit_code=ExitCode.USAGE,
        )
    return found
