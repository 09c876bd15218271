"""Functions that a domain calls and another one has, where the first must not import the second."""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class NotProvided(RuntimeError):
    """The function was called before ``trellis_api.wiring`` was imported."""


class Provided(Generic[Parameters, Result]):
    """A function that is set once, by ``trellis_api.wiring``."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._function: Callable[Parameters, Result] | None = None

    @property
    def is_set(self) -> bool:
        """Whether it can be called."""
        return self._function is not None

    def provide(self, function: Callable[Parameters, Result]) -> None:
        """Set the function."""
        if self._function is not None:
            raise ValueError(f"{self._what} are provided already.")
        self._function = function

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Call the function; ``NotProvided`` where there is none yet."""
        if self._function is None:
            raise NotProvided(f"Nothing provides {self._what}: import trellis_api.wiring.")
        return self._function(*args, **kwargs)
