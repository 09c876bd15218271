"""The endpoint of a campaign: started before the first fault, asked all the time, stopped after the last."""

import time
from collections.abc import Sequence
from typing import Any

from trellis_cli.errors import Problem
from trellis_cli.services.ports import is_free

from trellis_tools.chaos.accounts import read_spool
from trellis_tools.chaos.chats import Chats
from trellis_tools.chaos.ground import Ground

#: A model is loaded from a cold disk by libraries that nobody has read yet.
_START_TIMEOUT_S = 420.0
_POLL_S = 0.5
#: Longer than any campaign: it stops when it is told to.
_IDLE_S = 24 * 3600


class Serving:
    """One endpoint and the requests to it."""

    def __init__(self, ground: Ground, model_id: str) -> None:
        self._ground, self._model_id = ground, model_id
        self._endpoint: dict[str, Any] = {}
        self.chats: Chats | None = None

    @property
    def run_id(self) -> str:
        """The job that runs its engine, in each attempt."""
        return str(self._endpoint["run_id"])

    @property
    def attempt(self) -> int:
        """The attempt that was last seen."""
        return int(self._endpoint["attempt"])

    def start(self) -> None:
        """Load the model and begin to ask it; ``Problem`` where it can't be served with nothing broken."""
        path = f"/models/{self._model_id}/endpoint"
        self._endpoint = self._ground.client.post(path, {"idle_timeout_s": _IDLE_S})
        deadline = time.monotonic() + _START_TIMEOUT_S
        while self.read()["state"] != "ready":
            if self._endpoint["state"] != "starting" or time.monotonic() > deadline:
                raise Problem(f"the endpoint does not start: {describe(self._endpoint)}")
            time.sleep(_POLL_S)
        self._ground.serving_job = self.run_id
        self.chats = Chats(self._ground.client, str(self._endpoint["name"]))
        self.chats.start()

    def read(self) -> dict[str, Any]:
        """Read the endpoint from the API."""
        self._endpoint = self._ground.client.get(f"/endpoints/{self._endpoint['id']}")
        return self._endpoint

    def read_attempt(self) -> int:
        """Read the number of the endpoint's current attempt."""
        self.read()
        return self.attempt

    def is_settled(self, *, since: float, before: int) -> bool:
        """Return whether the platform knows the endpoint's state after a fault that ended at ``since``.

        ``before`` is the attempt that the fault found: a later one shows that it was settled meanwhile.
        """
        endpoint = self.read()
        if endpoint["state"] == "failed":
            return bool((endpoint["failure"] or {}).get("reason"))
        if endpoint["state"] == "starting":
            return endpoint["attempt"] > before or self._ground.find_serving() is not None
        return endpoint["state"] == "ready" and self.is_answering(since)

    def is_answering(self, since: float) -> bool:
        """Return whether a request made after this moment was answered."""
        return self.chats is not None and self.chats.is_answered_since(since)

    def is_stopped(self) -> bool:
        """Return whether the endpoint has stopped."""
        return str(self.read()["state"]) == "stopped"

    def ask_to_stop(self) -> None:
        """Ask no more of it, and let it end."""
        self.end_chats()
        self._ground.client.delete(f"/endpoints/{self._endpoint['id']}")

    def end_chats(self) -> None:
        """Make no more requests."""
        if self.chats is not None:
            self.chats.stop()

    def list_left(self) -> list[str]:
        """List processes that belong to finished attempts."""
        over = self._list_over()
        needles = [f"/jobs/{self.run_id}/attempt-{number}/" for number in over]
        return self._ground.list_naming(needles) if needles else []

    def list_ports(self) -> list[int]:
        """List ports with a listener although their engine is over."""
        folder = self._ground.data_root / "jobs" / self.run_id
        spools = {number: read_spool(folder, number) for number in range(1, self.attempt + 1)}
        ports = {number: _find_ports(events) for number, events in spools.items()}
        over = self._list_over()
        in_use = {port for number, found in ports.items() if number not in over for port in found}
        left = {port for number in over for port in ports[number]} - in_use
        return sorted(port for port in left if not is_free(port))

    def _list_over(self) -> list[int]:
        is_over = self._endpoint["state"] in {"failed", "stopped"}
        return list(range(1, self.attempt + is_over))


def _find_ports(events: Sequence[Any]) -> set[int]:
    return {event.port for event in events if event.kind == "serving"}


def describe(endpoint: dict[str, Any]) -> str:
    """Describe the endpoint's state, with the reason of a failure."""
    failure = endpoint["failure"]
    return f"{endpoint['state']}: {failure['reason']}" if failure else str(endpoint["state"])
