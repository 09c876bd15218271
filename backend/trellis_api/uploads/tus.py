"""What the headers of the tus protocol say."""

import base64
import binascii
import re
from dataclasses import dataclass

from trellis_api.uploads.errors import (
    TUS_VERSION,
    ChecksumUnknown,
    ContentTypeUnknown,
    ProtocolUnknown,
    UploadMalformed,
)

EXTENSIONS = "creation,expiration,checksum,termination"
CHECKSUMS = ("sha1", "sha256")
PIECE_TYPE = "application/offset+octet-stream"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Metadata:
    """What a client says of the file; other keys than these are not kept."""

    filename: str
    sha256: str | None


@dataclass(frozen=True)
class Checksum:
    """What a piece has to hash to."""

    algorithm: str
    digest: bytes


def check_version(sent: str | None) -> None:
    """Refuse a client of another protocol."""
    if sent != TUS_VERSION:
        raise ProtocolUnknown(f"Send the header Tus-Resumable: {TUS_VERSION}.")


def check_piece_type(sent: str | None) -> None:
    """Refuse a body that is not meant as a piece."""
    if (sent or "").partition(";")[0].strip().lower() != PIECE_TYPE:
        raise ContentTypeUnknown(f"Send a piece as {PIECE_TYPE}.")


def parse_metadata(header: str | None) -> Metadata:
    """Parse ``Upload-Metadata``: pairs of a key and a value in base64."""
    values: dict[str, str] = {}
    for pair in (header or "").split(","):
        key, _, encoded = pair.strip().partition(" ")
        if not key:
            continue
        try:
            values[key] = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, ValueError) as error:
            raise UploadMalformed(f"Upload-Metadata: '{key[:80]}' is not UTF-8 in base64.") from error
    sha256 = values.get("sha256", "").strip().lower()
    if sha256 and not _SHA256.fullmatch(sha256):
        raise UploadMalformed("Upload-Metadata: sha256 has 64 hexadecimal digits.")
    return Metadata(values.get("filename", "") or values.get("name", ""), sha256 or None)


def parse_checksum(header: str | None) -> Checksum | None:
    """Parse ``Upload-Checksum``: an algorithm and a digest in base64."""
    if header is None:
        return None
    algorithm, _, encoded = header.strip().partition(" ")
    if algorithm not in CHECKSUMS:
        raise ChecksumUnknown(f"Upload-Checksum: known are {' and '.join(CHECKSUMS)}.")
    try:
        return Checksum(algorithm, base64.b64decode(encoded.strip(), validate=True))
    except (binascii.Error, ValueError) as error:
        raise UploadMalformed("Upload-Checksum: the digest is not base64.") from error
