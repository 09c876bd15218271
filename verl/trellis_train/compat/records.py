"""What each changed symbol looked like when its change was last read: signature and source hash, by target.

Written by ``python -m trellis_train.compat --write TARGET``, after somebody has compared the two sources.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from trellis_train.compat.change import Change
from trellis_train.compat.source import digest, find_symbol

RECORDS_FILE = Path(__file__).with_name("records.json")


@dataclass(frozen=True)
class Record:
    """Of one target."""

    #: Hash of all symbols that the change was written against, as ``source.digest`` gives it.
    source: str
    #: Parameters of the first of them.
    signature: str


@cache
def read_records() -> Mapping[str, Record]:
    """Read all records by target."""
    return {target: Record(**values) for target, values in json.loads(RECORDS_FILE.read_text()).items()}


def record(entry: Change) -> Record:
    """Record the current state of an entry's symbols. Raises ``SymbolNotFound``."""
    symbols = [find_symbol(name) for name in entry.read_symbols]
    return Record(digest(symbols), symbols[0].signature)


def write_records(entries: Iterable[Change], *, all_targets: Iterable[str]) -> None:
    """Record these entries as they are now, and forget targets that are none any more."""
    known = dict(read_records()) | {entry.target: record(entry) for entry in entries}
    kept = {target: asdict(known[target]) for target in sorted(set(all_targets)) if target in known}
    # A file of the checkout, which git has: nothing is lost where this is cut off.
    RECORDS_FILE.write_text(json.dumps(kept, indent=2) + "\n")
    read_records.cache_clear()
