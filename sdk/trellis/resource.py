"""What the client's parts have in common: get, list, delete, and waiting for a state."""

import time
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from trellis.transport import Transport

#: As a list shows an item, and as it is read by itself.
Listed = TypeVar("Listed")
Whole = TypeVar("Whole")
_POLL_S = 1.0


class Resource(Generic[Whole, Listed]):
    """One kind of thing, below ``path``. Ids say which; ``find`` knows names."""

    path = ""

    def __init__(self, transport: Transport) -> None:
        self._api = transport

    def get(self, identifier: str) -> Whole:
        """Return the object with this identifier."""
        return cast(Whole, self._api.request("GET", f"{self.path}/{identifier}"))

    def list(self, **filters: Any) -> Iterator[Listed]:
        """Iterate over all, newest first; filters are those of the API, and unknown ones are rejected."""
        return self._api.pages(self.path, **filters)

    def find(self, name: str) -> Listed:
        """Return the newest with this name; raise ``LookupError`` if there is none."""
        for each in self.list():
            if cast(dict[str, Any], each)["name"] == name:
                return each
        raise LookupError(f"there is no '{name}' among {self.path.strip('/')}")

    def delete(self, identifier: str) -> None:
        """Forget it."""
        self._api.request("DELETE", f"{self.path}/{identifier}")

    def _post(self, path: str, body: Any = None) -> Any:
        return self._api.request("POST", f"{self.path}{path}", json=body)

    def _wait(self, identifier: str, states: frozenset[str], timeout_s: float | None) -> Whole:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            found = self.get(identifier)
            state = self._state_of(found)
            if state in states:
                return found
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{identifier} is still {state} after {timeout_s:g} s")
            time.sleep(_POLL_S)

    def _state_of(self, found: Whole) -> str:
        return str(cast(dict[str, Any], found)["state"])
