"""What can be asked of an evaluation, by a person or for the checkpoints of a training."""

from collections.abc import Callable
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from trellis_contracts.evaluation import LABEL, AnyOrder, EngineSettings, HarnessOrder

from trellis_api.core.redaction import has_secret
from trellis_api.core.texts import NO_NUL, storable_tree

MAX_BENCHMARKS = 20
#: Of numbers that a database keeps in 64 bits and a browser exactly.
MAX_SEED = 2**31
Asked = TypeVar("Asked", bound=BaseModel)


def _check_storable(asked: Asked) -> Asked:
    """Refuse what can't be stored and what must not be, as orders are shown to everybody."""
    tree = asked.model_dump(mode="json")
    if storable_tree(tree) != tree:
        raise ValueError("contains characters or numbers that can't be stored")
    if has_secret(tree):
        raise ValueError("contains what looks like a token or password")
    return asked


def _default_label(order: AnyOrder) -> str:
    if isinstance(order, HarnessOrder):
        return order.task.lower()[:64]
    return order.benchmark


def _label_all(orders: list[AnyOrder]) -> list[AnyOrder]:
    """Label every order uniquely: an unnamed one whose label is taken gets a number behind it."""
    given = [order.label for order in orders if order.label]
    if twice := {label for label in given if given.count(label) > 1}:
        raise ValueError(f"several benchmarks share the label {', '.join(sorted(twice))}")
    taken, labelled = set(given), []
    for order in orders:
        label, number = order.label or _default_label(order), 1
        while order.label is None and label in taken:
            number += 1
            label = f"{_default_label(order)[:60]}-{number}"
        taken.add(label)
        labelled.append(order.model_copy(update={"label": label}))
    return labelled


_storable: Callable[[AnyOrder], AnyOrder] = _check_storable
Orders = Annotated[
    list[Annotated[AnyOrder, AfterValidator(_storable)]],
    Field(min_length=1, max_length=MAX_BENCHMARKS, description="Labels must be unique, if given."),
    AfterValidator(_label_all),
]
MetricName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]
Label = Annotated[str, StringConstraints(pattern=LABEL)]


class EvaluationRequest(BaseModel):
    """What one evaluation runs, as it stands in its row: labels and versions are named."""

    benchmarks: Orders
    engine: EngineSettings = Field(default_factory=EngineSettings)
    seed: int = Field(default=0, ge=0, lt=MAX_SEED)


class EarlyStop(BaseModel):
    """End the training when a score no longer rises."""

    model_config = ConfigDict(extra="forbid")

    label: Label
    metric: MetricName | None = Field(default=None, description="Default the benchmark's headline.")
    patience: int = Field(default=3, ge=1, le=1000, description="Evaluations without a gain.")
    min_delta: float = Field(default=0.0, ge=0, le=1e9, description="Smaller gains do not count.")
    mode: Literal["max", "min"] = Field(default="max", description="Whether higher is better.")


class BestByBenchmark(BaseModel):
    """The score that selects the best checkpoint."""

    model_config = ConfigDict(extra="forbid")

    label: Label
    metric: MetricName | None = Field(default=None, description="Default the benchmark's headline.")
    mode: Literal["max", "min"] = "max"


class EvaluateWhileTraining(BaseModel):
    """Benchmarks for evaluating a training job's checkpoints."""

    model_config = ConfigDict(extra="forbid")

    benchmarks: Orders
    every_steps: int | None = Field(
        default=None, ge=1, le=2**31, description="The first checkpoint at or after each multiple."
    )
    every_minutes: float | None = Field(default=None, gt=0, le=100_000)
    at_end: bool = Field(default=True, description="The last checkpoint too.")
    engine: EngineSettings = Field(default_factory=EngineSettings)
    seed: int = Field(default=0, ge=0, lt=MAX_SEED)
    best_by: BestByBenchmark | None = None
    early_stop: EarlyStop | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.every_steps is not None and self.every_minutes is not None:
            raise ValueError("set every_steps or every_minutes, not both")
        if self.every_steps is None and self.every_minutes is None and not self.at_end:
            raise ValueError("no evaluations are scheduled: set every_steps, every_minutes or at_end")
        labels = {order.label for order in self.benchmarks}
        for field, rule in (("best_by", self.best_by), ("early_stop", self.early_stop)):
            if rule is not None and rule.label not in labels:
                raise ValueError(f"{field}: no benchmark has the label {rule.label}")
        if self.early_stop is not None and not (self.every_steps or self.every_minutes):
            raise ValueError("early_stop requires every_steps or every_minutes")
        return self
