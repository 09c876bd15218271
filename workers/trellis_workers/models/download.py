"""Downloads a model from a hub: ``python -m trellis_workers.models.download ORDER``, ended at any moment.

The clients of hubs can't be stopped from within, so that a download that somebody cancels would go on. What
is there when this process ends stays, and is continued by the next one.
"""

import os
import sys
import tempfile
from pathlib import Path

from pydantic import BaseModel
from trellis_contracts.dry_run import EXIT_BAD_REQUEST
from trellis_contracts.parent_death import die_with

from trellis_workers.core.child_environment import plain_environment
from trellis_workers.core.last_lines import last_lines
from trellis_workers.models.child import RequireWanted, run_child
from trellis_workers.models.hub import FetchFailed, Hub
from trellis_workers.models.modelscope import ModelScope

_PROGRAM = "trellis_workers.models.download"
#: As long as the slowest lines take for the largest models.
_TIMEOUT_S = 7 * 24 * 3600


class DownloadOrder(BaseModel):
    """What to download, and where to."""

    is_modelscope: bool
    repo_id: str
    commit: str
    folder: Path
    #: One file of the repository; None: all that a model needs.
    file: str | None = None


def download(order: DownloadOrder, *, require_wanted: RequireWanted) -> None:
    """Let a child process download. Raises ``FetchFailed`` and ``FetchCancelled``."""
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "download.log"
        with log.open("wb") as output:
            status = run_child(
                [sys.executable, "-m", _PROGRAM, order.model_dump_json()],
                doing="The download",
                require_wanted=require_wanted,
                timeout_s=_TIMEOUT_S,
                stdout=output,
                stderr=output,
                env={
                    **plain_environment("HF_TOKEN", "MODELSCOPE_API_TOKEN"),
                    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                },
            )
        said = (last_lines(log, 1) or [""])[-1].strip()
    if status == EXIT_BAD_REQUEST:
        raise FetchFailed(said)
    if status != 0:
        raise FetchFailed(f"The download failed with exit code {status}: {said[:300]}")


def main(arguments: list[str]) -> int:
    """Carry out an order; the last line of the output says why it cannot be done."""
    die_with(os.getppid())
    order = DownloadOrder.model_validate_json(arguments[0])
    hub = ModelScope() if order.is_modelscope else Hub()
    try:
        if order.file is None:
            hub.download(order.repo_id, order.commit, order.folder)
        else:
            hub.download_files(order.repo_id, order.commit, [order.file], order.folder, kind="model")
    except FetchFailed as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    except OSError as error:
        print(f"Writing failed: {error.strerror}.", file=sys.stderr)
        return EXIT_BAD_REQUEST
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
