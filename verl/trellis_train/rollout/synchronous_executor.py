"""Run microsecond-long functions synchronously where verl submits them to a thread pool."""

from collections.abc import Callable
from typing import Any


class Inline:
    """Stands for an event loop whose ``run_in_executor`` changes no threads."""

    async def run_in_executor(self, _executor: Any, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)
