"""What can go wrong with uploads."""

from typing import Any

from trellis_api.core.errors import DiskFull, DomainError, means_no_room

TUS_VERSION = "1.0.0"


class UploadError(DomainError):
    """Base: every answer to a client of the protocol names the protocol."""

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(message, details, headers={"Tus-Resumable": TUS_VERSION, "Tus-Version": TUS_VERSION})


class UploadNotFound(UploadError):
    """No upload has this id; it may have expired."""

    status = 404
    code = "upload_not_found"


class UploadMalformed(UploadError):
    """The request is not what the protocol or the form asks for."""

    status = 422
    code = "upload_malformed"


class ChecksumUnknown(UploadError):
    """The checksum is of a kind that is not computed here."""

    status = 400
    code = "checksum_unknown"


class ProtocolUnknown(UploadError):
    """The client speaks another version of the protocol, or none."""

    status = 412
    code = "tus_version_unknown"


class ContentTypeUnknown(UploadError):
    """A piece that is not sent as one."""

    status = 415
    code = "content_type_unknown"


class OffsetConflict(UploadError):
    """The piece does not begin where the upload ends; ``details`` say where that is."""

    status = 409
    code = "upload_offset_conflict"


class UploadIncomplete(UploadError):
    """Not all of the file has arrived."""

    status = 409
    code = "upload_incomplete"


class UploadInUse(UploadError):
    """An import that is not finished reads the upload."""

    status = 409
    code = "upload_in_use"


class UploadLocked(UploadError):
    """Another request writes to the upload at this moment."""

    status = 423
    code = "upload_locked"


class UploadStalled(UploadError):
    """Nothing arrived for a long time; what had arrived is kept."""

    status = 408
    code = "upload_stalled"


class ChecksumMismatch(UploadError):
    """A piece or the whole is not what the client meant to send; it was not kept."""

    status = 460
    code = "upload_checksum_mismatch"


class UploadTooLarge(UploadError):
    """The upload is larger than the platform accepts, or than it was announced."""

    status = 413
    code = "upload_too_large"


class UploadDiskFull(UploadError, DiskFull):
    """The data root has no room for the upload."""


def too_large(limit_bytes: int) -> UploadTooLarge:
    """Build the error for an upload above the limit."""
    return UploadTooLarge(
        f"The file is larger than the limit of {limit_bytes} bytes (TRELLIS_MAX_UPLOAD_BYTES).",
        {"limit_bytes": limit_bytes},
    )


def explain_disk_error(error: OSError) -> Exception:
    """Return a clear error if the disk is full; any other disk error is returned as it is."""
    return UploadDiskFull("The data root's disk is full.") if means_no_room(error) else error
