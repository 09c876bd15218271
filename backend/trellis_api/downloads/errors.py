"""What can go wrong with downloads."""

from trellis_api.core.errors import Conflict, DomainError, NotFound


class FileNotInFolder(NotFound):
    """The model or checkpoint has no file of this name."""

    code = "file_not_in_folder"

    def __init__(self, name: str) -> None:
        super().__init__(f"File '{name[:200]}' not found; see /files for the list.")


class FolderNotDownloadable(Conflict):
    """The files are not here, or one of them cannot be given away."""

    code = "folder_not_downloadable"


class RangeNotSatisfiable(DomainError):
    """The archive ends before the range begins."""

    status = 416
    code = "range_not_satisfiable"
