"""What a store's file holds: compressed samples, columns of numbers, an index over texts.

``samples(id, body)``  ``id`` is position · 1024 + number, so rows lie in the order in which they are shown;
                       ``body`` the sample's JSON, deflated with the first sample as dictionary: examples
                       that stand before every problem are stored once.
``columns(name, data)``  arrays in the order of the ids, to filter and to compare without reading bodies.
``texts``              FTS5 over the runs of three characters of what is searched.
``facts(name, value)`` counts, groups, the dictionary.
"""

import hashlib
import re
import zlib
from dataclasses import dataclass

from trellis_contracts.evaluation import Sample, Verdict

APPLICATION_ID = 0x74655361
FORMAT = 1
#: Generations of one problem that a file can tell apart.
NUMBERS = 1024
#: Verdicts by their place; a file keeps the place.
VERDICTS = tuple(Verdict)
#: Of the array types in ``columns``.
DTYPES = {"id": "<i8", "verdict": "u1", "score": "<f8", "key": "<u8", "group": "<i4"}

#: Precedes a pair of characters in the index: words of two are common in Chinese, and an index of threes
#: would not find them. It is of Unicode's private use, no text's own.
PAIR = "\ue000"
_WIDE = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]{2,}"
)
#: Of a prompt, its last characters are searched.
_PROMPT_CHARACTERS = 8000

SCHEMA = f"""
pragma application_id = {APPLICATION_ID};
pragma user_version = {FORMAT};
pragma page_size = 16384;
create table samples (id integer primary key, body blob not null);
create table columns (name text primary key, data blob not null) without rowid;
create table facts (name text primary key, value blob not null) without rowid;
create virtual table texts using fts5(
    text, content='', detail='none', columnsize=0, tokenize='trigram case_sensitive 1');
"""


def sample_id(position: int, number: int) -> int:
    """Compute a sample's id, which gives its place in its file."""
    return position * NUMBERS + number


def key_hash(key: str) -> int:
    """Hash a problem's key to 64 bits."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Codec:
    """Samples to bytes and back."""

    #: JSON of a sample like the others.
    dictionary: bytes
    #: What prompts begin with, as far as they do.
    prompt: str

    @classmethod
    def like(cls, sample: Sample) -> "Codec":
        """Fit for samples that resemble this one."""
        return cls(sample.model_dump_json().encode()[-32_768:], sample.prompt)

    def encode(self, sample: Sample) -> bytes:
        packer = zlib.compressobj(level=6, zdict=self.dictionary)
        return packer.compress(sample.model_dump_json().encode()) + packer.flush()

    def decode(self, body: bytes) -> Sample:
        """Decode a sample; raise ``zlib.error`` or pydantic's ``ValidationError`` for other bytes."""
        unpacker = zlib.decompressobj(zdict=self.dictionary)
        return Sample.model_validate_json(unpacker.decompress(body) + unpacker.flush())

    def searched_text(self, sample: Sample) -> str:
        """Return lower-case text to search: key, answer, reference, and the prompt's own part."""
        start = _common_start(self.prompt, sample.prompt)
        # Whole lines only; and of the first prompt, which shares all with itself, everything.
        start = 0 if start == len(sample.prompt) else sample.prompt.rfind("\n", 0, start) + 1
        own = sample.prompt[start:][-_PROMPT_CHARACTERS:]
        texts = (sample.key, sample.output, sample.extracted or "", sample.gold, sample.error or "", own)
        return "\n".join(texts).lower()


def indexed_text(text: str) -> str:
    """Return the text to index: the text itself and its pairs of Chinese, Japanese and Korean characters."""
    pairs = {run[at : at + 2] for run in _WIDE.findall(text) for at in range(len(run) - 1)}
    return text + "".join(PAIR + pair for pair in sorted(pairs)) if pairs else text


def index_query(wanted: str) -> str | None:
    """Build an FTS5 query that finds at least all texts with ``wanted`` (lower case); None if impossible."""
    if len(wanted) == 2 and _WIDE.fullmatch(wanted):
        tokens = [PAIR + wanted]
    elif len(wanted) < 3:
        return None
    else:
        tokens = list(dict.fromkeys(wanted[at : at + 3] for at in range(len(wanted) - 2)))
    # More words than these narrow nothing down, and each costs time.
    chosen = tokens[:: max(1, len(tokens) // 12)]
    return " AND ".join('"' + token.replace('"', '""') + '"' for token in chosen)


def _common_start(first: str, second: str) -> int:
    """Count the characters that both begin with, by bisection, because prompts are long and numerous."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
