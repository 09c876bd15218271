"""Calling what takes microseconds at once, where verl hands it to another thread."""

from collections.abc import Callable
from typing import Any


class Inline:
    """Stands for an event loop whose ``run_in_executor`` changes no threads."""

    async def run_in_executor(self, _executor: Any, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)
