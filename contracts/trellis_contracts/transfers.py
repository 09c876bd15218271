"""What a worker hands to the process that carries out a transfer: files in the transfer's folder."""

from typing import Literal

from pydantic import BaseModel

#: Written by the child, replaced whole: ``{"done_bytes": ..., "total_bytes": ..., "file": ...}``.
PROGRESS_FILE = "progress.json"
#: Written by the worker: a ``PushOrder``.
PUSH_ORDER_FILE = "push.json"
#: Ending of the file that an export is writing.
PART_ENDING = ".part"


class PushedFile(BaseModel):
    """A file and its name in the repository."""

    name: str
    path: str


class PushOrder(BaseModel):
    """What is pushed, and where to; the hub and its token come from the environment alone."""

    hub: Literal["huggingface", "modelscope"] = "huggingface"
    repo_id: str
    revision: str
    private: bool
    message: str
    files: list[PushedFile]
    #: The text of README.md.
    card: str
