"""What can go wrong with transfers."""

from trellis_api.core.errors import Conflict, NotFound


class TransferNotFound(NotFound):
    """There is no transfer of this id."""

    code = "transfer_not_found"


class TransferFinished(Conflict):
    """It is over already."""

    code = "transfer_finished"


class TransferUnfinished(Conflict):
    """It waits or runs; cancel it first."""

    code = "transfer_unfinished"


class TransferNotResumable(Conflict):
    """Only one that failed or was cancelled goes on."""

    code = "transfer_not_resumable"


class TransferFileMissing(Conflict):
    """It has no file: it is no export, or not done, or its file was removed."""

    code = "transfer_file_missing"


class ModelNotTransferable(Conflict):
    """The model's files are not here, or not of a kind that can be exported."""

    code = "model_not_transferable"
