"""What an operator is: a named step of a pipeline with parameters that describe themselves.

There are two kinds. A ``RowOperator`` looks at one batch at a time. A ``GlobalOperator`` must have
seen every row before it decides on one: it scans shard by shard, reduces once, and applies what
was reduced shard by shard. Shards are worked on in separate processes and a run may be interrupted
between any two of them, so what passes from one phase to the next lies in files.

Parameters must be importable without anything heavy (the API shows their schema): an operator's
module imports lingua, tokenizers and the like inside functions.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field
from pydantic.fields import FieldInfo
from trellis_contracts.parameter_schema import annotate
from trellis_contracts.recipe import Strict, Text
from trellis_contracts.renamed import Renamed

from trellis_data.layout import Batch, Layout
from trellis_data.outcome import Outcome
from trellis_data.row_texts import Where

if TYPE_CHECKING:
    from trellis_data.scoring.scorer import Scorer

Group = Literal["clean", "deduplicate", "score", "filter", "convert", "split"]


def parameter(default: Any, *, title: Text, help: Text, unit: str | None = None, **bounds: Any) -> Any:
    """Declare a parameter with its texts in both languages; ``bounds`` are those of ``pydantic.Field``."""
    extra = annotate(title=title, help=help, unit=unit)
    info: FieldInfo = Field(default, json_schema_extra=extra, **bounds)
    return info


class Params(Strict, Renamed):
    """Base of every operator's parameters; old names of renamed ones are accepted."""


class TextParams(Params):
    """Parameters of an operator that works on texts."""

    where: Where = parameter(
        "all",
        title=Text(en="Texts", zh="文本范围"),
        help=Text(
            en="Which texts to process.",
            zh="对一行中的哪些文本生效。",
        ),
    )
    columns: list[str] | None = parameter(
        None,
        title=Text(en="Columns", zh="列"),
        help=Text(
            en="Only these columns. Defaults to the columns used by the dataset's format.",
            zh="仅限这些列；默认为在数据格式中有角色的列。",
        ),
    )


@dataclass(frozen=True)
class Context:
    """What an operator may know beside its parameters and rows."""

    seed: int = 0
    #: Folder of a tokenizer (Hugging Face's files); None where a pipeline names no model.
    tokenizer: Path | None = None
    #: Further files by name, such as a benchmark to stay clear of or a word list.
    resources: dict[str, Path] = field(default_factory=dict)
    #: Judges by name (``scoring.scorer``); they are sent to other processes.
    scorers: Mapping[str, "Scorer"] = field(default_factory=dict)
    #: Whether an address in a pipeline may be of this machine or of a private network. A platform that
    #: others reach says no; who runs a pipeline by hand may open what they like.
    allows_local_addresses: bool = True


class OperatorProblem(ValueError):
    """An operator cannot work on these rows with these parameters; says what to change."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Operator(ABC):
    """A step of a pipeline."""

    id: ClassVar[str]
    title: ClassVar[Text]
    help: ClassVar[Text]
    group: ClassVar[Group]
    Params: ClassVar[type[Params]]

    def __init__(self, params: Any, context: Context) -> None:
        """Read the models and lists that batches need; called once in every process."""
        self.params = params
        self.context = context

    @classmethod
    def outline(cls, params: Any, context: Context) -> Self:
        """Create the operator without what its constructor reads: cheap, and enough to check a pipeline.

        ``check``, ``schema_after`` and ``layout_after`` are called on it, so they go by ``params`` and
        ``context`` alone.
        """
        outlined = cls.__new__(cls)
        Operator.__init__(outlined, params, context)
        return outlined

    def check(self, schema: pa.Schema, layout: Layout) -> None:  # noqa: B027 - most have nothing to say
        """Raise ``OperatorProblem`` where the rows lack what is needed; called before any row is read."""

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns afterwards; steps that add or remove some override it, for later checks."""
        return schema

    def layout_after(self, layout: Layout) -> Layout:
        """Return what the columns mean afterwards."""
        return layout


class RowOperator(Operator):
    """Decides on a row by that row alone."""

    @abstractmethod
    def apply(self, batch: Batch) -> Outcome:
        """Process the batch and return the outcome."""


class GlobalOperator(Operator):
    """Decides on a row by all rows."""

    @abstractmethod
    def scan(self, batches: Iterator[Batch], folder: Path) -> None:
        """Write to ``folder`` (empty, of this shard alone) what reducing needs of these rows."""

    @abstractmethod
    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        """Decide from all shards' folders, in order; write to ``folder``; the report's findings."""

    @abstractmethod
    def apply(self, batch: Batch, reduced: Path) -> Outcome:
        """Process the batch, which starts at row ``batch.start``, using the result of ``reduce``."""
