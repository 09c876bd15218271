"""Starts Ray without what the platform doesn't use: ``python -m trellis_cli.services.ray_head start --head``.

Ray 2.60 has no options for this, so functions of Ray are replaced; ``tests/cli/test_ray_head.py`` fails where
they have moved. It saves 0.2 GB of memory (``./init.sh bench idle``), most of it in processes of their own:
the server of Ray Client, and the dashboard's pages on Serve, Data, Train, metrics and events.
"""

import importlib
import sys
from collections.abc import Callable
from typing import Any

#: Other commands of Ray's, which it loads with ``start``, and which bring pandas, FastAPI and aiohttp.
_COMMANDS = ("ray.util.state.state_cli", "ray.dashboard.modules.job.cli", "ray.serve.scripts")
#: Parts of the dashboard, each a process: the Jobs API, nodes, their usage, the state of actors and groups.
PARTS = ("JobHead", "NodeHead", "ReportHead", "StateHead")


def main() -> None:
    """Run Ray's command line."""
    for name in _COMMANDS:
        sys.modules[name] = None  # type: ignore[assignment]  # Ray goes on without those that can't be imported
    commands: Any = importlib.import_module("ray.scripts.scripts")
    services: Any = importlib.import_module("ray._private.services")
    # As if the packages of Ray Client were not installed.
    commands.get_ray_client_dependency_error = lambda: ImportError("not used")
    services.start_ray_process = _with_few_parts(services.start_ray_process)
    commands.main()


def _with_few_parts(start: Callable[..., Any]) -> Callable[..., Any]:
    def start_process(command: list[str], process_type: str, *arguments: Any, **options: Any) -> Any:
        if process_type == "dashboard":
            command = [*command, f"--modules-to-load={','.join(PARTS)}"]
        return start(command, process_type, *arguments, **options)

    return start_process


if __name__ == "__main__":
    main()
