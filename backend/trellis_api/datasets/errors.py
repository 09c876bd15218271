"""What can go wrong with datasets."""

from trellis_api.core.errors import Conflict, DomainError, InvalidRequest, NotFound


class DatasetNotFound(NotFound):
    """No dataset has this id."""

    code = "dataset_not_found"


class DatasetNameTaken(Conflict):
    """Another dataset has this name."""

    code = "dataset_name_taken"


class DatasetInUse(Conflict):
    """An unfinished job reads the dataset."""

    code = "dataset_in_use"


class DatasetRowsInvalid(InvalidRequest):
    """At least one row of the upload cannot be used; details name each by its line."""

    code = "dataset_rows_invalid"


class DatasetFileInvalid(InvalidRequest):
    """The upload as a whole cannot be read; ``details.code`` says why."""

    code = "dataset_file_invalid"


class DatasetFileMissing(DomainError):
    """The row exists but its file is gone or damaged."""

    status = 500
    code = "dataset_file_missing"


class UploadMalformed(InvalidRequest):
    """The request is not the multipart form that was expected."""

    code = "upload_malformed"


class UploadTooLarge(DomainError):
    """The upload is larger than the platform accepts."""

    status = 413
    code = "upload_too_large"


class DiskFull(DomainError):
    """The data root has no room for the upload."""

    status = 507
    code = "disk_full"
