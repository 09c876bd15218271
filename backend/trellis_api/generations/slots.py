"""Whether there is room on the GPUs to serve a model."""

from sqlmodel import Session

from trellis_api.core.settings import Settings
from trellis_api.generations.errors import NoFreeSlot
from trellis_api.jobs.repository import count_held_slots, lock_admission


def slots_to_serve(settings: Settings) -> int:
    """Return the slots that serving a model takes; none on a CPU, where it shares the cores."""
    return 1 if settings.resolved_platform == "cuda" else 0


def check_slots(session: Session, settings: Settings, *, slots: int, held: int = 0) -> None:
    """Raise ``NoFreeSlot`` where jobs leave too few; ``held`` of them are the caller's own already."""
    if not slots:
        return
    lock_admission(session)
    free = settings.total_slots - count_held_slots(session) + held
    if free < slots:
        raise NoFreeSlot(
            "All GPUs are in use by jobs. Try again when one is free, or use an endpoint.",
            {"free": max(0, free), "needed": slots},
        )
