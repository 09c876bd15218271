"""What a generation made, what it did not, and what that took."""

from typing import Literal

from trellis_contracts.recipe import Strict

#: Why a generation ended before it had what was wanted.
Stopped = Literal["cost_bound", "nothing_new"]


class GenerationProgress(Strict):
    """How far a generation has come."""

    #: Rows made, or seed rows that were passed, and of how many.
    done: int
    total: int
    rows: int
    calls: int
    cost: float
    max_cost: float


class GenerationReport(Strict):
    """What came of a generation."""

    name: str
    method: str
    model: str
    template_hash: str
    stopped: Stopped | None
    rows: int
    #: What did not become a row, by reason code.
    dropped: dict[str, int]
    seeds: int
    #: Questions that were needed, and how many of them this run had to ask: the others were paid for before.
    questions: int
    calls: int
    #: Questions without a reply, by reason code.
    problems: dict[str, int]
    #: Of all replies that were used.
    input_tokens: int
    output_tokens: int
    #: US dollars of all runs in the folder, and what calls of killed runs may have cost beyond.
    cost: float
    cost_unsettled: float
    max_cost: float
    #: US dollars that judges cost; they have bounds of their own.
    judge_cost: float = 0.0
    shards: list[str]
    seconds: float

    @property
    def is_complete(self) -> bool:
        """Whether another run would ask nothing more."""
        return self.stopped != "cost_bound" and not self.problems
