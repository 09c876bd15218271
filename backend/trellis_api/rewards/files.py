"""Where reward files are kept."""

from trellis_api.code_files.store import FileStore
from trellis_api.rewards.errors import (
    RewardFileInUse,
    RewardFileInvalid,
    RewardFileNameTaken,
    RewardFileNotFound,
)
from trellis_api.rewards.models import RewardFile
from trellis_api.rewards.schemas import RewardFileRead

FILES = FileStore(
    table=RewardFile,
    read=RewardFileRead,
    prefix="rwf",
    noun="reward file",
    not_found=RewardFileNotFound,
    name_taken=RewardFileNameTaken,
    invalid=RewardFileInvalid,
    in_use=RewardFileInUse,
)
