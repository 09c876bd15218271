"""The encoding of a text file, how sure that is, and its bytes as UTF-8.

Readers downstream see UTF-8 only. What cannot be decoded reaches them as bytes that are no UTF-8, so that
they refuse the rows that hold it and no other.
"""

import codecs
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from trellis_data.reading.problems import UnreadableFile

_CHUNK_BYTES = 1024 * 1024
#: Lines with characters beyond ASCII that are looked at where a file is not all UTF-8.
_SAMPLE_BYTES = 512 * 1024
#: The longer mark first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Chinese text in GB18030 is nearly all GB2312: both bytes at 0xA1 or above. Latin-1 text that
#: happens to decode as GB18030 has ASCII letters as second bytes instead.
_MIN_GB2312_SHARE = 0.8
#: From this share of its lines on, a file is UTF-8 with lines that are not, and those are refused.
_MIN_UTF8_SHARE = 0.5
_MAX_BINARY_SHARE = 0.02
_FEW = 64
#: Of every second byte, in UTF-16 without a mark.
_MIN_ZERO_SHARE = 0.02
_WESTERN_ZERO_SHARE = 0.25
_TEXT_CONTROLS = b"\t\n\r\f\x1b"


@dataclass(frozen=True)
class Encoding:
    """An encoding by Python's name, how sure it is (0 to 1), and the sentence that says why."""

    name: str
    confidence: float
    reason: str


def detect_encoding(open_stream: Callable[[], BinaryIO]) -> Encoding:
    """Detect the encoding of a text by reading all of it once. Raise UnreadableFile if it is not text."""
    with open_stream() as stream:
        head = stream.read(64 * 1024)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name, 1.0, "The file begins with the mark of this encoding.")
    if wide := _detect_wide(head):
        return wide
    _refuse_binary(head)
    sample = _Sample()
    with open_stream() as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            sample.add(chunk)
    return sample.judge()


def _detect_wide(head: bytes) -> Encoding | None:
    """Detect UTF-16 without a byte order mark, by the zero bytes beside line ends and ASCII characters."""
    size = len(head) // 2
    zeros = {"utf-16-le": head[1::2].count(0), "utf-16-be": head[0::2].count(0)}
    name = max(zeros, key=lambda each: zeros[each])
    # Western text has zeros throughout; Chinese has few, but is no UTF-8 either.
    wanted = _WESTERN_ZERO_SHARE if _decodes(head[:-3], "utf-8") else _MIN_ZERO_SHARE
    if not size or zeros[name] < max(1, size * wanted) or zeros[name] < 3 * min(zeros.values()):
        return None
    text = codecs.getincrementaldecoder(name)(errors="replace").decode(head)
    strange = sum(1 for each in text if each == "\ufffd" or (each < " " and each not in "\t\n\r\f"))
    if strange > len(text) * _MAX_BINARY_SHARE:
        return None
    return Encoding(name, 0.9, f"Of every second byte {zeros[name] / size:.0%} are zero.")


def _refuse_binary(head: bytes) -> None:
    controls = sum(head.count(byte) for byte in range(32) if byte not in _TEXT_CONTROLS)
    # A few among many are the fault of rows, and those are refused one by one.
    if controls > max(_FEW, len(head) * _MAX_BINARY_SHARE):
        at = next(n for n, byte in enumerate(head) if byte < 32 and byte not in _TEXT_CONTROLS)
        line = head.count(b"\n", 0, at) + 1
        raise UnreadableFile(
            "not_text",
            f"The file is not text: line {line} holds byte 0x{head[at]:02x}.",
            line=line,
            offset=at,
        )


class _Sample:
    """Lines with more than ASCII, from the start of a file and from where it stops being UTF-8."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = b""
        self._early: list[bytes] = []
        self._late: list[bytes] = []
        self._sizes = [0, 0]
        self._has_foreign = False
        self._is_utf8 = True

    def add(self, chunk: bytes) -> None:
        if self._is_utf8:
            try:
                self._decoder.decode(chunk)
            except UnicodeDecodeError:
                self._is_utf8 = False
        self._has_foreign = self._has_foreign or not chunk.isascii()
        target = 0 if self._is_utf8 else 1
        if self._sizes[target] < _SAMPLE_BYTES:
            self._keep(chunk, target)
        else:
            self._rest = b""

    def _keep(self, chunk: bytes, target: int) -> None:
        lines = (self._rest + chunk).split(b"\n")
        # A line that is longer than the sample is looked at in pieces.
        self._rest = lines.pop() if len(lines[-1]) < _SAMPLE_BYTES else b""
        for line in lines:
            if self._sizes[target] < _SAMPLE_BYTES and not line.isascii():
                (self._early, self._late)[target].append(line)
                self._sizes[target] += len(line)

    def judge(self) -> Encoding:
        """Decide which encoding the text has."""
        if self._is_utf8 and not self._decoder.getstate()[0]:
            if self._has_foreign:
                return Encoding("utf-8", 1.0, "Every byte of the file is valid UTF-8.")
            return Encoding("utf-8", 1.0, "The file is plain ASCII.")
        if self._rest and not self._rest.isascii():
            self._late.append(self._rest)
        lines = self._early + self._late
        valid = sum(1 for line in lines if _decodes(line, "utf-8"))
        share = valid / len(lines) if lines else 0.0
        if share >= _MIN_UTF8_SHARE:
            return Encoding("utf-8", share, f"{share:.1%} of the lines with more than ASCII are valid UTF-8.")
        foreign = [line for line in lines if not _decodes(line, "utf-8")]
        return _detect_foreign(b"\n".join(foreign))


def _detect_foreign(sample: bytes) -> Encoding:
    share = _gb2312_share(sample)
    if share >= _MIN_GB2312_SHARE:
        return Encoding("gb18030", share, f"{share:.0%} of the characters beyond ASCII are common Chinese.")
    import charset_normalizer

    best = charset_normalizer.from_bytes(sample[:_SAMPLE_BYTES], cp_exclusion=["utf_8"]).best()
    if best is None:
        raise UnreadableFile("encoding_unknown", "Unknown text encoding; save the file as UTF-8.")
    confidence = round(max(0.0, 1.0 - best.chaos) * (0.5 + best.coherence / 2), 2)
    return Encoding(best.encoding, confidence, f"The bytes read best as {best.encoding}, judged by letters.")


def _gb2312_share(sample: bytes) -> float:
    """Return the share of GB2312 among the non-ASCII characters; 0 if the bytes are not GB18030."""
    foreign = common = 0
    for line in sample.split(b"\n"):
        if not _decodes(line, "gb18030"):
            continue
        characters = [each for each in line.decode("gb18030") if each > "\x7f"]
        foreign += len(characters)
        common += sum(1 for each in characters if _is_gb2312(each))
    total = foreign + sum(1 for line in sample.split(b"\n") if not _decodes(line, "gb18030"))
    return common / total if total else 0.0


def _is_gb2312(character: str) -> bool:
    encoded = character.encode("gb18030")
    return len(encoded) == 2 and min(encoded) >= 0xA1


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _mark_bytes(error: UnicodeError) -> tuple[str, int]:
    """Put half surrogates for bytes that cannot be decoded: no encoder takes them for text."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), error.end


codecs.register_error("trellis-mark", _mark_bytes)


class _Transcoded(io.RawIOBase):
    """A stream in some encoding as UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="trellis-mark")
        self._ready = b""
        self._is_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]  # any writable buffer
        while not self._ready and not self._is_ended:
            chunk = self._stream.read(_CHUNK_BYTES)
            self._is_ended = not chunk
            text = self._decoder.decode(chunk, final=self._is_ended)
            self._ready = text.encode("utf-8", "surrogatepass")
        taken = min(len(view), len(self._ready))
        view[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def close(self) -> None:
        self._stream.close()
        super().close()


def as_utf8(stream: BinaryIO, encoding: str) -> BinaryIO:
    """Return the stream as UTF-8 without a byte order mark."""
    if encoding == "utf-8":
        return stream
    if encoding == "utf-8-sig":
        mark = stream.read(len(codecs.BOM_UTF8))
        if mark != codecs.BOM_UTF8:
            raise UnreadableFile("file_changed", "The file changed while it was read.")
        return stream
    return io.BufferedReader(_Transcoded(stream, encoding), _CHUNK_BYTES)
