"""A whole platform in a temporary data root, beside the one of this machine."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trellis_cli.client import ApiClient, connect_to
from trellis_cli.output import err
from trellis_cli.services.platform import load_platform
from trellis_cli.services.ports import pick_free
from trellis_cli.services.supervisor import Say, Supervisor


def _say_dimly(line: str) -> None:
    err.print(line, style="dim")


@contextmanager
def temporary_platform() -> Iterator[ApiClient]:
    """Start one, yield its client with the admin token, and end it with all that it holds.

    ``TRELLIS_DATA_ROOT`` names its data root meanwhile; other settings of the environment do not hold for it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="trellis-platform-") as folder,
        platform_in(Path(folder)) as supervisor,
    ):
        yield connect_to(supervisor.platform)


@contextmanager
def platform_in(
    folder: Path, variables: Mapping[str, str] | None = None, say: Say = _say_dimly
) -> Iterator[Supervisor]:
    """Start a platform whose data root is this folder, and end its processes; the folder stays.

    The environment holds its settings meanwhile: these variables, and none of the caller's ``TRELLIS_``.
    """
    with _environment({**(variables or {}), "TRELLIS_DATA_ROOT": str(folder)}):
        supervisor = Supervisor(load_platform(pick_free(1)[0]), say)
        try:
            supervisor.up()
            yield supervisor
        finally:
            supervisor.down()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    saved = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("TRELLIS_")]:
        del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)
