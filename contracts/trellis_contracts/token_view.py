"""Rows as a model is trained on them: what its chat template makes of them, and which tokens are learned."""

from pydantic import Field

from trellis_contracts.recipe import Strict


class TokenSegment(Strict):
    """Consecutive tokens with the same role and loss mask."""

    text: str
    #: Of the turn that they belong to; None where rows have no turns.
    role: str | None
    token_count: int
    is_trained: bool


class TokenRow(Strict):
    """A row of the dataset as a sequence of tokens."""

    #: Position in the split.
    row: int
    segments: list[TokenSegment]
    token_count: int
    #: Of those that are kept.
    trained_count: int
    #: Longer than ``max_length``: training cuts it at the end.
    is_truncated: bool
    #: Why training cannot use the row, as a sentence and as a code; it has no segments then.
    problem: str | None = None
    problem_code: str | None = None


class TokenView(Strict):
    """The result of a task of kind ``tokens``."""

    rows: list[TokenRow] = Field(default_factory=list)
    #: Longest sequence that training keeps; None where nothing was said of it.
    max_length: int | None = None
    #: What is to be known of all rows, such as which of two answers is shown: a sentence and a code.
    note: str | None = None
    note_code: str | None = None
