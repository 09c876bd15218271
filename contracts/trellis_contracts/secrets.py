"""What secrets look like: runs mask them at the source, the API once more before anything is kept."""

import re

#: Tokens of this platform and of well-known others, passwords in addresses, and bearer headers.
SECRET_SHAPES = re.compile(
    r"trellis_(?:admin|job|session|login)_[\w-]{20,}"
    r"|\bhf_[A-Za-z0-9]{20,}"
    r"|\bsk-[A-Za-z0-9_-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|\bAKIA[A-Z0-9]{16}\b"
    r"|(?<=://)[^/\s:@]*:[^/\s]+(?=@)"
    r"|(?i:(?<=bearer )[\w.~+/-]{12,}=*)"
)
