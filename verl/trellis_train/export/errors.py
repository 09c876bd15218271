"""Why a checkpoint could not be exported; the names are what ``supervise/failure_causes.py`` looks for."""


class CheckpointIncomplete(Exception):
    """Files of the checkpoint are missing."""


class CheckpointMismatch(Exception):
    """The weights do not belong to the model that they are to be written as."""


class ExportUnsound(Exception):
    """What was written cannot be loaded, or gives values that are no numbers."""
