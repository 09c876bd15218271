"""What a preview tells of time, start and disk, as lines."""

from typing import Any

from trellis_cli.output import duration, size

_MEGA, _GIGA, _TERA = 10**6, 10**9, 10**12


def describe_forecast(forecast: dict[str, Any] | None) -> list[str]:
    """Describe the forecast in lines; nothing if the request cannot run."""
    if forecast is None:
        return []
    return [_describe_time(forecast), _describe_start(forecast["start"]), _describe_disk(forecast["disk"])]


def _describe_time(forecast: dict[str, Any]) -> str:
    time, steps = forecast["time"], forecast["steps"]
    of_steps = f" for {steps} steps" if steps else ""
    if time is None:
        return f"time: unknown{of_steps}; no comparable run has been measured here"
    cost = f", about {time['cost']['amount']:.2f} {time['cost']['currency']}" if time["cost"] else ""
    return (
        f"time: about {duration(time['seconds'])}{of_steps} ({duration(time['low_s'])} to "
        f"{duration(time['high_s'])}) from {_describe_basis(time)}; {time['slot_hours']:.2f} slot-hours{cost}"
    )


def _describe_basis(time: dict[str, Any]) -> str:
    if time["basis"] == "arithmetic":
        return (
            f"arithmetic, without a measured run: {time['step_flops'] / _TERA:.2f} TFLOP per step at "
            f"{time['machine_flops'] / _GIGA:.0f} GFLOP/s, this machine's measured speed, without start-up"
        )
    count = len(time["runs"])
    runs = "run" if count == 1 else "runs"
    others = "" if time["is_same_data"] else " on other datasets"
    if time["basis"] == "scaled_runs":
        size = f"{time['scaled_from_parameters'] / _MEGA:.3g}M parameters"
        return f"{count} {runs} of a model with {size}, scaled by size{others}"
    return f"{count} similar {runs}{others}"


def _describe_start(start: dict[str, Any]) -> str:
    ahead = f"{start['jobs_ahead']} job{'' if start['jobs_ahead'] == 1 else 's'} ahead"
    if start["seconds"] == 0:
        return "start: immediately"
    if start["seconds"] is not None:
        return f"start: in about {duration(start['seconds'])} ({ahead})"
    return f"start: unknown; {start['unknown'] or ahead} has no estimate"


def _describe_disk(disk: dict[str, Any] | None) -> str:
    if disk is None:
        return "disk: unknown"
    each = size(disk["checkpoint_bytes"])
    if disk["total_bytes"] is None:
        return f"disk: {each} per checkpoint"
    return f"disk: {size(disk['total_bytes'])} ({disk['checkpoints']} checkpoints of {each})"
