"""What a benchmark answers, and how it is compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """One figure: ours, what it is compared with, and the bound that the ratio must keep.

    `theirs` is the bare engine's figure in the same run, or the promised bound where nothing is compared.
    """

    name: str
    ours: float
    theirs: float
    unit: str
    #: The ratio ours/theirs must be at most this, or at least this where more is better; None: no promise.
    bound: float | None = 1.0
    is_more_better: bool = False
    #: What the figures are made of.
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours / self.theirs

    @property
    def is_kept(self) -> bool:
        """Whether the promise holds."""
        if self.bound is None:
            return True
        return self.ratio >= self.bound if self.is_more_better else self.ratio <= self.bound

    def as_json(self) -> dict[str, Any]:
        """Return the result as the line that `--json` prints."""
        return {
            "name": self.name,
            "ours": round(self.ours, 4),
            "theirs": round(self.theirs, 4),
            "ratio": round(self.ratio, 4),
            "unit": self.unit,
            **self.details,
        }
