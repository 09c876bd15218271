"""The text encoding of an upload: UTF-8 with or without a mark, or GB18030."""

import codecs
from pathlib import Path

from trellis_data.reading.problems import UnreadableFile

_CHUNK_BYTES = 1024 * 1024
_UTF8_MARK = codecs.BOM_UTF8
_FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
#: Chinese text in GB18030 is nearly all GB2312: both bytes at 0xA1 or above. Latin-1 text that
#: happens to decode as GB18030 has ASCII letters as second bytes instead.
_MIN_GB2312_SHARE = 0.8


def detect_encoding(path: Path) -> str:
    """Python's name of the file's encoding, after reading all of it once.

    Raises UnreadableFile with the line and byte where the text stops being text.
    """
    with path.open("rb") as file:
        head = file.read(4)
    for mark, name in _FOREIGN_MARKS.items():
        if head.startswith(mark):
            raise UnreadableFile("encoding_unknown", f"The file is {name}; save it as UTF-8.", encoding=name)
    failure = _first_bad_byte(path)
    if failure is None:
        return "utf-8-sig" if head.startswith(_UTF8_MARK) else "utf-8"
    line, offset, byte = failure
    if byte == 0:
        raise UnreadableFile(
            "not_text",
            f"The file is not text: line {line} holds a NUL byte (offset {offset}).",
            line=line,
            offset=offset,
        )
    if _is_gb18030(path):
        return "gb18030"
    raise UnreadableFile(
        "encoding_unknown",
        f"Line {line} is neither UTF-8 nor GB18030 (byte 0x{byte:02x} at offset {offset}); "
        "save the file as UTF-8.",
        line=line,
        offset=offset,
    )


def _first_bad_byte(path: Path) -> tuple[int, int, int] | None:
    """(line, offset, byte) of the first NUL or the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset, line = 0, 1
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK_BYTES)
            pending = decoder.getstate()[0]
            at = chunk.find(0)
            try:
                decoder.decode(chunk if at < 0 else chunk[:at], final=not chunk)
            except UnicodeDecodeError as error:
                data = pending + chunk
                return (
                    line + data.count(b"\n", 0, error.start),
                    offset - len(pending) + error.start,
                    data[error.start],
                )
            if at >= 0:
                return line + chunk.count(b"\n", 0, at), offset + at, 0
            if not chunk:
                return None
            offset += len(chunk)
            line += chunk.count(b"\n")


def _is_gb18030(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("gb18030")()
    characters, common = 0, 0
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK_BYTES)
            if 0 in chunk:
                return False
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                return False
            if not chunk:
                break
            foreign = [character for character in text if character > "\x7f"]
            characters += len(foreign)
            common += sum(1 for character in foreign if _is_gb2312(character))
    return characters > 0 and common / characters >= _MIN_GB2312_SHARE


def _is_gb2312(character: str) -> bool:
    encoded = character.encode("gb18030")
    return len(encoded) == 2 and min(encoded) >= 0xA1
