"""What calls to a judge have cost and when the next may be made, shared by all processes of a run."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: More than an account takes, so that a new one covers the old one whole.
_ACCOUNT_CHARACTERS = 160
#: One for each judge.
LEDGER_FILES = "judge-*.json"


class BudgetSpent(Exception):
    """Another call could cost more than is left."""


class Ledger:
    """An account of one judge: in a file under a lock where a folder is given, else in this process."""

    def __init__(self, path: Path | None, *, bound: float, requests_per_minute: float) -> None:
        self._path = path
        self._bound = bound
        self._pause_s = 60.0 / requests_per_minute
        self._own: dict[str, float] = {}

    def reserve(self, cost: float) -> None:
        """Set aside what a call may cost at most; raises ``BudgetSpent`` where that is not left."""
        with self._open() as account:
            spent, reserved = account.get("spent", 0.0), account.get("reserved", 0.0)
            if spent + reserved + cost > self._bound:
                raise BudgetSpent(
                    f"{spent:.4f} dollars are spent, and the next call may cost {cost:.4f} of the bound "
                    f"of {self._bound:g}"
                )
            account["reserved"] = reserved + cost

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what was set aside for a call by what it did cost."""
        with self._open() as account:
            account["reserved"] = max(0.0, account.get("reserved", 0.0) - reserved)
            account["spent"] = account.get("spent", 0.0) + cost

    def take_turn(self) -> float:
        """Return the seconds to wait before the next request; turns are spaced evenly."""
        with self._open() as account:
            now = time.time()
            turn = max(now, account.get("next_turn", 0.0))
            account["next_turn"] = turn + self._pause_s
            return turn - now

    @property
    def spent(self) -> float:
        """Dollars that calls have cost so far."""
        with self._open() as account:
            return account.get("spent", 0.0)

    @property
    def unsettled(self) -> float:
        """Dollars set aside for calls whose end is not known: under way, or of killed processes."""
        with self._open() as account:
            return account.get("reserved", 0.0)

    @contextmanager
    def _open(self) -> Iterator[dict[str, float]]:
        if self._path is None:
            yield self._own
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            account: dict[str, float] = json.loads(file.read() or "{}")
            yield account
            # Written at once and cut afterwards: a process that is killed here leaves an account.
            file.seek(0)
            file.write(json.dumps(account).ljust(_ACCOUNT_CHARACTERS))
            file.truncate()


def read_spent(folder: Path) -> float:
    """Return the total cost in dollars of all judges of a run."""
    return float(
        sum(json.loads(path.read_text() or "{}").get("spent", 0.0) for path in folder.glob(LEDGER_FILES))
    )
