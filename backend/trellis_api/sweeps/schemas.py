"""Sweeps as clients ask for them and see them."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator
from trellis_contracts.states import JobState

from trellis_api.core.references import NamedReference
from trellis_api.core.texts import NO_NUL, Name
from trellis_api.jobs.schemas import JobCreate, MetricKeyText, Mode, Progress
from trellis_api.sweeps.states import RunState, SweepState

MAX_RUNS = 1000
MAX_PARAMETERS = 20
MAX_SLOT_HOURS = 1_000_000
MAX_VALUES = 100
MAX_TEXT_CHARACTERS = 200_000
#: Names of population-based training.
_POPULATIONS = frozenset({"pbt", "pb2", "population", "population_based_training"})
Number = int | float
Value = bool | int | float | str
#: A parameter of the recipe, or ``overrides.`` and an engine key.
ParameterName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=NO_NUL)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Variation(BaseModel):
    """Values of one parameter: a list or a range."""

    model_config = ConfigDict(extra="forbid")

    values: list[Value] | None = Field(default=None, min_length=1, max_length=MAX_VALUES)
    min: Number | None = Field(default=None, description="Least value of a range.")
    max: Number | None = Field(default=None, description="Greatest value of a range.")
    scale: Literal["linear", "log"] = Field(
        default="linear", description="log: as many draws from 1e-6 to 1e-5 as from 1e-5 to 1e-4."
    )
    step: Number | None = Field(default=None, gt=0, description="Distance of the values of a linear range.")
    count: int | None = Field(
        default=None,
        ge=2,
        le=MAX_VALUES,
        description="Points of a range in a grid, evenly spaced on its scale.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        has_range = self.min is not None or self.max is not None
        if (self.values is not None) == has_range:
            raise ValueError("give values, or min and max")
        if self.values is not None:
            if self.step is not None or self.count is not None or self.scale != "linear":
                raise ValueError("scale, step and count belong to a range")
            if len({(type(value), value) for value in self.values}) < len(self.values):
                raise ValueError("a value is given twice")
            return self
        if self.min is None or self.max is None or not self.min < self.max:
            raise ValueError("min has to be less than max")
        if self.scale == "log" and (self.min <= 0 or self.step is not None):
            raise ValueError("a log range begins above 0 and has no step")
        if self.step is not None and (self.max - self.min) / self.step > 10_000:
            raise ValueError("the step is too small for the range")
        return self


class Search(BaseModel):
    """How runs are chosen."""

    model_config = ConfigDict(extra="forbid")

    method: Literal["grid", "random", "bayesian", "asha"] = Field(
        default="random",
        description="grid: all combinations; random: independent draws; bayesian: draws where earlier runs "
        "were good (TPE, by Optuna); asha: random draws, of which most are stopped early.",
    )
    seed: Seed = Field(default=0, description="Of the draws.")

    @field_validator("method", mode="before")
    @classmethod
    def _refuse_populations(cls, method: Any) -> Any:
        """Say why, since other tools have it: a value that is merely unknown would look like a typo."""
        if isinstance(method, str) and method.lower() in _POPULATIONS:
            raise ValueError(
                f"{method} is not supported: it changes parameters in the middle of a run and copies weights "
                "between runs, while each run here is a job of its own with one configuration that can be "
                "reproduced; use asha, or bayesian"
            )
        return method


class Budget(BaseModel):
    """When no more runs are started."""

    model_config = ConfigDict(extra="forbid")

    runs: int | None = Field(
        default=None, ge=1, le=MAX_RUNS, description="Runs in all; default the whole grid. Others need it."
    )
    hours: float | None = Field(
        default=None,
        gt=0,
        le=10_000,
        description="Maximum hours. After that no run starts, queued runs are stopped, running ones finish.",
    )
    slot_hours: float | None = Field(
        default=None,
        gt=0,
        le=MAX_SLOT_HOURS,
        description="Hours times slots of all runs: GPU-hours on a GPU platform. As for hours when used up.",
    )
    cost: float | None = Field(
        default=None,
        gt=0,
        le=1e12,
        description="Maximum cost of all runs in the platform's currency; sets slot_hours, at the price at "
        "the time of the request.",
    )


class Objective(BaseModel):
    """The metric by which runs are compared."""

    model_config = ConfigDict(extra="forbid")

    metric: MetricKeyText | None = Field(
        default=None, description="Default the recipe's first validation metric, else its first metric."
    )
    mode: Mode | None = Field(default=None, description="Default depends on the metric; min for a loss.")
    take: Literal["last", "best"] | None = Field(
        default=None, description="Of a run's values; default best for validation metrics, else last."
    )


class StopRule(BaseModel):
    """Stop runs that are worse than others at the same step."""

    model_config = ConfigDict(extra="forbid")

    rule: Literal["asha", "median"] = Field(
        description="asha: at min_steps and each time `factor` times later, the best 1/factor go on; median: "
        "every min_steps, a run whose best value is worse than the median of the others' means is stopped."
    )
    min_steps: int = Field(ge=1, le=2**31, description="No run is stopped before this step.")
    factor: int = Field(default=3, ge=2, le=10, description="Of asha.")
    min_runs: int = Field(
        default=3, ge=2, le=100, description="Runs measured at a step before any is stopped there."
    )


class SweepCreate(BaseModel):
    """A training job and its search space."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    job: JobCreate = Field(description="As for `POST /jobs`; its name may be left out.")
    parameters: dict[ParameterName, Variation] = Field(
        default_factory=dict,
        max_length=MAX_PARAMETERS,
        description="By name: a parameter of the recipe, or overrides. and an engine key. None: only seeds.",
    )
    seeds: list[Seed] = Field(
        default_factory=list,
        max_length=50,
        description="Each combination is run once per seed and judged by the mean; default the job's seed.",
    )
    search: Search = Field(default_factory=Search)
    objective: Objective = Field(default_factory=Objective)
    budget: Budget = Field(default_factory=Budget)
    parallel: int | None = Field(
        default=None, ge=1, le=64, description="Runs at a time; default as many as there are slots."
    )
    early_stop: StopRule | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_job(cls, data: Any) -> Any:
        """Name the job after its sweep: runs are named after the sweep and their number."""
        if isinstance(data, dict) and isinstance(job := data.get("job"), dict) and "name" not in job:
            return {**data, "job": {**job, "name": data.get("name")}}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.parameters and len(self.seeds) < 2:
            raise ValueError("nothing varies: give parameters, or two seeds or more")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("a seed is given twice")
        if self.job.export_as is not None:
            raise ValueError("export_as: runs would share one model name; export the best run afterwards")
        return self


class SweepIssue(BaseModel):
    """An error or warning."""

    code: str
    field: str = Field(description="Such as parameters.learning_rate; empty for the whole.")
    message: str


class SweepPreview(BaseModel):
    """Preview of a sweep; nothing is saved."""

    runs: int | None = Field(description="Total runs; null if there are errors.")
    trials: int | None = Field(description="Combinations of values; each has one run per seed.")
    parallel: int
    objective: Objective
    examples: list[dict[str, Any]] = Field(description="Values of the first runs.")
    errors: list[SweepIssue]
    warnings: list[SweepIssue]


class SweepText(BaseModel):
    """A sweep as `trellis sweeps submit` takes it: models and datasets by id or name."""

    model_config = ConfigDict(extra="forbid")

    yaml: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARACTERS, pattern=NO_NUL)] = Field(
        description="YAML or JSON."
    )


class SweepProblem(SweepIssue):
    """A problem in a text."""

    line: int | None = Field(description="From 1; null where it has none.")


class SweepChecked(BaseModel):
    """The parsed text: `document` can be created; null if there are problems."""

    document: SweepCreate | None
    problems: list[SweepProblem]


class SweepRunRead(BaseModel):
    """One run of a sweep."""

    index: int
    trial: int = Field(description="Runs of one trial differ only in the seed.")
    seed: int
    values: dict[str, Any]
    state: RunState
    job: NamedReference | None = Field(
        description="Null where none was written; its name is null once deleted."
    )
    job_state: JobState | None
    progress: Progress | None
    value: float | None = Field(description="The objective so far.")
    value_step: int | None
    duration_s: float | None
    pruned_at: datetime | None
    problem: str | None = Field(description="Why it was refused or failed.")
    prune_reason: str | None = Field(description="Why it was stopped early; null once its job is deleted.")


class TrialRead(BaseModel):
    """Runs with the same values."""

    trial: int
    values: dict[str, Any]
    run_count: int = Field(description="Runs that the mean takes: finished ones, where there are any.")
    finished_seeds: int = Field(description="Runs that have finished with a value.")
    planned_seeds: int = Field(description="Trials with fewer finished runs rank below complete ones.")
    mean: float
    spread: float | None = Field(description="Standard deviation over seeds; null for one run.")


class ParameterImportance(BaseModel):
    """Importance of a parameter for the objective."""

    parameter: str
    importance: float = Field(description="0 to 1.")
    p_value: float = Field(description="p-value from random permutations of the runs.")
    correlation: float | None = Field(description="Spearman correlation, for numeric parameters.")


class Importance(BaseModel):
    """Importance of all parameters."""

    method: Literal["rank_variance"] = Field(
        description="Share of the variance of the runs' ranks that the thirds of a parameter explain, "
        "corrected for chance (epsilon squared); each parameter by itself."
    )
    run_count: int
    min_runs: int = Field(description="With fewer runs nothing is computed.")
    parameters: list[ParameterImportance]


class SweepSummary(BaseModel):
    """A sweep in a list."""

    id: str
    name: str
    recipe: str
    state: SweepState
    objective: Objective
    search: Search
    parameters: list[str]
    planned_runs: int
    counts: dict[RunState, int] = Field(description="Runs by state, without runs that have not started.")
    best: TrialRead | None
    reason: str | None
    cause: str | None
    created_at: datetime
    finished_at: datetime | None
    can_stop: bool
    can_resume: bool
    can_delete: bool


class SweepRead(SweepSummary):
    """A sweep with its runs."""

    request: SweepCreate
    parallel: int
    model: NamedReference
    dataset: NamedReference
    runs: list[SweepRunRead]
    trials: list[TrialRead] = Field(description="Best first, without trials that have no value.")
    best_run: int | None = Field(description="Index of the best run of the best trial.")
    importance: Importance
    elapsed_s: float = Field(description="Elapsed hours, without stops.")
    slot_hours: float = Field(description="Slot-hours used by its runs.")
