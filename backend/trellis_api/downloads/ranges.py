"""One range of bytes, as a client asks for what is missing (RFC 9110, 14.2)."""

import re

from trellis_api.downloads.errors import RangeNotSatisfiable

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the first byte and the exclusive end; None for all: no range, several, or another unit."""
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or match.group() == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(size, int(last) + 1) if last else size
    if start >= stop:
        message = f"The archive has {size} bytes; there is nothing from {start} on."
        raise RangeNotSatisfiable(message, {"size_bytes": size}, headers={"Content-Range": f"bytes */{size}"})
    return start, stop
