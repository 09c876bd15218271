"""Every metric that a trainer logs, written to the spool under the trainer's own names."""

from collections.abc import Callable
from numbers import Real
from typing import Any

from trellis_contracts.events import MetricsEvent

from trellis_train.compat import trainer
from trellis_train.compat.applying import apply_now
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool


def to_scalars(data: dict[str, Any]) -> dict[str, float]:
    """Return the numbers in ``data``; NaN and infinities are kept because charts must show them."""
    scalars: dict[str, float] = {}
    for name, value in data.items():
        # NumPy and torch scalars of any kind, which are not all registered as numbers.Real.
        number = value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
        if isinstance(number, Real):
            scalars[name] = float(number)
    return scalars


def report_metrics(
    spool: Spool, derive: Callable[[dict[str, float], int], dict[str, float]] | None = None
) -> None:
    """Write what verl's ``Tracking`` logs in this process to ``spool``.

    ``derive`` gives further metrics that follow from those of a step and its number. The loggers that
    the configuration asks for stay as they are; the event is written before them, so
    that a failing one loses nothing.
    """

    def report(data: dict[str, Any], step: int) -> None:
        values = to_scalars(data)
        more = derive(values, step) if derive else {}
        spool.write(MetricsEvent(time=now(), step=step, values=values | more))

    trainer.listen_to_metrics(report)
    apply_now("metrics")
