"""When a service that died is started again: at once, then after pauses that double, and then no more."""

from dataclasses import dataclass, field

#: Deaths that are further apart have nothing to do with each other.
WINDOW_S = 600.0
#: A service that dies once more within the window is given up.
MOST_DEATHS = 6
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
#: Until a start is tried again that the machine did not allow.
PUT_OFF_S = 10.0


@dataclass
class Restarts:
    """The deaths of one service. Times are monotonic seconds, given by the caller."""

    deaths: list[float] = field(default_factory=list)
    has_given_up: bool = False
    due_at: float | None = None

    def note_death(self, now: float) -> None:
        """Record that the service was found dead and decide when, if at all, to start it again."""
        self.deaths = [each for each in self.deaths if now - each < WINDOW_S] + [now]
        if len(self.deaths) > MOST_DEATHS:
            self.has_given_up, self.due_at = True, None
            return
        earlier = len(self.deaths) - 1
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (earlier - 1)) if earlier else 0.0
        self.due_at = now + pause_s

    def put_off(self, now: float) -> None:
        """Postpone a start that failed for an outside reason, such as a full disk: it is not a death."""
        self.due_at = now + PUT_OFF_S

    def is_due(self, now: float) -> bool:
        """Return whether it should be started now."""
        return self.due_at is not None and now >= self.due_at

    def note_start(self) -> None:
        """Record that the service was started; after giving up, a manual start resets the count of deaths."""
        self.due_at = None
        if self.has_given_up:
            self.has_given_up = False
            self.deaths.clear()
