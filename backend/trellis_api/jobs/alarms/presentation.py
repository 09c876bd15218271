"""Turns rows of alarms into what clients read."""

from collections.abc import Iterable

from trellis_contracts.recipe import Text

from trellis_api.jobs.alarms import platforms
from trellis_api.jobs.alarms.alarm_texts import TEXTS
from trellis_api.jobs.alarms.models import Alarm
from trellis_api.jobs.alarms.placement import NOT_PLACED, describe_alarm
from trellis_api.jobs.alarms.platforms import OTHER_PLATFORM
from trellis_api.jobs.alarms.schemas import AlarmRead, Severity

_ORDER: tuple[Severity, ...] = ("warning", "critical")


def present_alarm(row: Alarm) -> AlarmRead:
    """Present one alarm with its texts."""
    texts = TEXTS.get(row.code)
    # A rule may be dropped while the alarms that it raised stay readable.
    title = texts.title if texts else Text(en=row.code, zh=row.code)
    if row.code == NOT_PLACED and row.metric and row.value is not None and row.threshold is not None:
        title = describe_alarm(row.metric, row.value, row.threshold)
    elif row.code == OTHER_PLATFORM and row.metric:
        title = platforms.describe_alarm(row.metric)
    advice = texts.advice if texts else Text(en="", zh="")
    return AlarmRead(
        code=row.code,
        severity=_severity(row),
        attempt=row.attempt,
        metric=row.metric,
        step=row.step,
        first_step=row.first_step,
        last_step=row.last_step,
        value=row.value,
        threshold=row.threshold,
        example_id=row.example_id,
        is_active=row.is_active,
        title=title,
        advice=advice,
        raised_at=row.raised_at,
        cleared_at=row.cleared_at,
    )


def find_worst(rows: Iterable[Alarm]) -> Severity | None:
    """Return the worst severity among some alarms; None without one."""
    return max((_severity(row) for row in rows), key=_ORDER.index, default=None)


def _severity(row: Alarm) -> Severity:
    return "critical" if row.severity == "critical" else "warning"
