"""Alarms of a job in the terminal: a mark in the list, the whole text on its own, a line when one comes."""

from typing import Any

from trellis_cli.client import ApiClient
from trellis_cli.job_rollouts import print_example
from trellis_cli.output import err, out

_STYLE = {"critical": "red", "warning": "yellow"}


def alarm_mark(job: dict[str, Any]) -> str:
    """Return the alarm count shown after the state in a list; empty without an alarm."""
    if not job["alarm_count"]:
        return ""
    style = _STYLE[job["worst_alarm"]]
    return f" [{style}]!{job['alarm_count']}[/{style}]"


def print_alarms(client: ApiClient, job: dict[str, Any]) -> None:
    """Print every alarm of a job: active ones with what to try and an example, the others in one line."""
    for alarm in job["alarms"]:
        if not alarm["is_active"]:
            out.print(f"\npast alarm: {describe(alarm)}", style="dim", markup=False, highlight=False)
            continue
        out.print(f"\n{alarm['severity']}: {describe(alarm)}", style=_STYLE[alarm["severity"]], markup=False)
        out.print(alarm["advice"]["en"], markup=False, highlight=False)
        if alarm["example_id"] is not None:
            print_example(client, job["id"], alarm["example_id"])


def describe(alarm: dict[str, Any]) -> str:
    """Describe an alarm: title, steps and value."""
    steps = f"step {alarm['first_step']}"
    if alarm["last_step"] != alarm["first_step"]:
        steps = f"steps {alarm['first_step']} to {alarm['last_step']}"
    value = "" if alarm["value"] is None else f" {alarm['value']:.4g}"
    bound = "" if alarm["threshold"] is None else f" (bound {alarm['threshold']:.4g})"
    what = f", {alarm['metric']}{value}{bound}" if alarm["metric"] else ""
    return f"{alarm['title']['en']} [{alarm['code']}], {steps}{what}"


class AlarmLines:
    """Prints every alarm once when it is raised, and once when it has cleared."""

    def __init__(self) -> None:
        self._active: set[tuple[int, str, str]] = set()

    def print_new(self, job: dict[str, Any]) -> None:
        """Compare with what was printed."""
        active = {
            (each["attempt"], each["code"], each["raised_at"]): each
            for each in job["alarms"]
            if each["is_active"]
        }
        for key in sorted(active.keys() - self._active):
            alarm = active[key]
            line = f"{alarm['severity']}: {describe(alarm)}"
            err.print(line, style=_STYLE[alarm["severity"]], markup=False, highlight=False)
        for _, code, _ in sorted(self._active - active.keys()):
            err.print(f"{code} has cleared", style="dim", markup=False, highlight=False)
        self._active = set(active)
