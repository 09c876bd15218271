"""A buffer of old dialogs that goes from run to run, so that new ones do not make a model forget them.

Everything that decides what is replayed next - rows, metrics, the state of the random numbers - is one file,
written whole or not at all: a run that was ended goes on as if it had not been.
"""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis_data.atomic_files import write_atomically

from trellis_train.agents.tooluse.selection.coreset import Strategy, select
from trellis_train.agents.tooluse.selection.dialog_items import item_of, measure_row

FORMAT = 1
Row = Mapping[str, Any]


class BadBuffer(ValueError):
    """The file of a buffer cannot be used; says why and what to do."""


@dataclass
class ReplayMetrics:
    """Of all rounds since the buffer was new."""

    rounds: int = 0
    seen: int = 0
    dropped: int = 0
    replayed: int = 0
    #: Over the rows that are in the buffer.
    mean_token_length: float = 0.0
    mean_lexical_diversity: float = 0.0
    mean_loss: float = 0.0


class ReplayBuffer:
    """Rows of earlier rounds by id (formatted dialogs), at most ``size`` of them."""

    def __init__(self, *, size: int, ratio: float, strategy: Strategy, seed: int) -> None:
        if size < 1:
            raise ValueError(f"the buffer size must be at least 1, not {size}")
        if not 0 <= ratio < float("inf"):
            raise ValueError(f"the replay ratio is {ratio}; it must be 0 or more")
        self.size, self.ratio, self.strategy = size, ratio, strategy
        self.rows: dict[str, Row] = {}
        self.metrics = ReplayMetrics()
        self._draw = random.Random(f"{seed}:replay")  # noqa: S311 - no secret

    @classmethod
    def open(cls, path: Path, *, size: int, ratio: float, strategy: Strategy, seed: int) -> "ReplayBuffer":
        """Load the buffer from a file, or create a new one if there is none. Raises ``BadBuffer``.

        Size, ratio and strategy are those given now; the seed counts for a new buffer only.
        """
        buffer = cls(size=size, ratio=ratio, strategy=strategy, seed=seed)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return buffer
        except (OSError, UnicodeDecodeError) as error:
            raise BadBuffer(f"the replay buffer {path} cannot be read: {error}") from error
        buffer._restore(_check(path, text))
        return buffer

    def absorb(self, new: Sequence[Row]) -> list[Row]:
        """Take in the rows of a round; the old ones to train on beside them.

        The buffer becomes buffer and new ones by id (a new row takes an old one's place), what is too much is
        left to the selector; then min(max(1, int(new x ratio)), available) rows are drawn from those of the
        buffer that are not new.
        """
        fresh = {str(row["id"]): row for row in new}
        united = {**self.rows, **fresh}
        kept = self._keep(list(united.values()))
        self.rows = {str(row["id"]): row for row in kept}
        old = [row for name, row in self.rows.items() if name not in fresh]
        count = min(max(1, int(len(fresh) * self.ratio)), len(old))
        replayed = self._draw.sample(old, count)
        self._note(seen=len(fresh), dropped=len(united) - len(self.rows), replayed=count)
        return replayed

    def save(self, path: Path) -> None:
        """Write the buffer; the file appears whole or not at all."""
        state = {
            "metrics": asdict(self.metrics),
            "random": self._draw.getstate(),
            "rows": list(self.rows.values()),
        }
        body = json.dumps(state, ensure_ascii=False, sort_keys=True)
        head = json.dumps({"format": FORMAT, "sha256": _hash(body)})
        write_atomically(path, f"{head}\n{body}\n")

    def _keep(self, rows: list[Row]) -> list[Row]:
        if len(rows) <= self.size:
            return rows
        seed = self._draw.getrandbits(32)
        chosen = select([item_of(row) for row in rows], self.size, self.strategy, seed=seed)
        # In the order in which they came, whatever the strategy: what is drawn next depends on it.
        return [rows[place] for place in sorted(chosen)]

    def _note(self, *, seen: int, dropped: int, replayed: int) -> None:
        noted, count = self.metrics, max(1, len(self.rows))
        measured = [measure_row(row) for row in self.rows.values()]
        noted.rounds += 1
        noted.seen += seen
        noted.dropped += dropped
        noted.replayed += replayed
        noted.mean_token_length = sum(each.token_length for each in measured) / count
        noted.mean_lexical_diversity = sum(each.lexical_diversity for each in measured) / count
        noted.mean_loss = sum(each.loss for each in measured) / count

    def _restore(self, state: dict[str, Any]) -> None:
        version, numbers, spare = state["random"]
        self._draw.setstate((version, tuple(numbers), spare))
        self.metrics = ReplayMetrics(**state["metrics"])
        self.rows = {str(row["id"]): row for row in state["rows"]}


def _check(path: Path, text: str) -> dict[str, Any]:
    """Check a buffer file's format and hash, and return its state. Raises ``BadBuffer``."""
    head, _, body = text.partition("\n")
    try:
        told = json.loads(head)
        version, wanted = told["format"], told["sha256"]
    except (ValueError, TypeError, KeyError) as error:
        raise BadBuffer(f"{path} is not a replay buffer: its header line is invalid") from error
    if version != FORMAT:
        raise BadBuffer(f"the replay buffer {path} has format {version!r}; this version reads {FORMAT}")
    if _hash(body.removesuffix("\n")) != wanted or not body.endswith("\n"):
        raise BadBuffer(
            f"the replay buffer {path} is truncated or corrupted: its {len(body)} characters do not "
            "match its checksum. Restore it from a backup, or delete it to start with an empty buffer."
        )
    state: dict[str, Any] = json.loads(body)
    return state


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
