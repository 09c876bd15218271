"""A whole platform in a temporary data root, beside the one of this machine."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from trellis_cli.client import ApiClient
from trellis_cli.output import err
from trellis_cli.services.platform import load_platform
from trellis_cli.services.ports import pick_free
from trellis_cli.services.supervisor import Supervisor


@contextmanager
def temporary_platform() -> Iterator[ApiClient]:
    """Start one, yield its client with the admin token, and end it with all that it holds.

    ``TRELLIS_DATA_ROOT`` names its data root meanwhile; other settings of the environment do not hold for it.
    """
    saved = {name: value for name, value in os.environ.items() if name.startswith("TRELLIS_")}
    with tempfile.TemporaryDirectory(prefix="trellis-platform-") as folder:
        for name in saved:
            del os.environ[name]
        os.environ["TRELLIS_DATA_ROOT"] = folder
        platform = load_platform(pick_free(1)[0])
        supervisor = Supervisor(platform, lambda line: err.print(line, style="dim"))
        try:
            supervisor.up()
            yield ApiClient(platform.url, platform.settings.admin_token_path.read_text().strip())
        finally:
            supervisor.down()
            del os.environ["TRELLIS_DATA_ROOT"]
            os.environ.update(saved)
