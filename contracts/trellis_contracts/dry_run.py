"""A dry run of rewards: what the child process that scores is asked, and what it answers."""

from enum import StrEnum

from pydantic import Field

from trellis_contracts.recipe import Strict, Text
from trellis_contracts.rewards import RewardResources, RewardTerm
from trellis_contracts.spec import DataSource

#: Files in the folder of a dry run.
REQUEST_FILE = "request.json"
PROGRESS_FILE = "progress.json"
RESULT_FILE = "result.json"
#: Of the child, for a request that cannot be carried out: its last line of standard error is for the person.
EXIT_BAD_REQUEST = 65  # EX_DATAERR
MAX_ROWS = 256


class DryRunState(StrEnum):
    """State of a dry run."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Probe(StrEnum):
    """A probe: text scored instead of a model's response."""

    #: The reference solution as it is written in the dataset.
    GOLD = "gold"
    #: The reference answer alone, without a way to it.
    ANSWER = "answer"
    EMPTY = "empty"
    #: The first half of the reference solution.
    TRUNCATED = "truncated"
    #: The reference solution three times over.
    REPEATED = "repeated"
    #: Thinking tags around a phrase, and no answer.
    FORMAT_ONLY = "format_only"
    #: The reference answer of another row.
    WRONG = "wrong"
    #: Responses that a job's policy really wrote.
    ROLLOUTS = "rollouts"


class RecordedRollout(Strict):
    """A response that a job reported."""

    prompt: str
    response: str
    answer: str = ""


class DryRunTask(Strict):
    """Read by ``python -m trellis_train.rewards.dry_run <folder>``."""

    rewards: list[RewardTerm]
    resources: RewardResources
    data: DataSource
    row_count: int = Field(ge=1, le=MAX_ROWS)
    seed: int
    rollouts: list[RecordedRollout] = Field(default_factory=list)


class DryRunProgress(Strict):
    """Progress of the scoring."""

    done: int = 0
    total: int = 0


class Latency(Strict):
    """Duration of scoring one response."""

    p50_ms: float
    p95_ms: float
    max_ms: float


class ScoringError(Strict):
    """A response on which a reward failed; it scores 0 there."""

    row: int
    term: str
    message: str


class ScoredExample(Strict):
    """A response and its reward."""

    row: int
    prompt: str
    response: str
    answer: str
    score: float
    #: What every term returned, before weighting.
    parts: dict[str, float]


class ProbeResult(Strict):
    """The scores of one probe over all sampled rows."""

    probe: Probe
    title: Text
    count: int
    mean: float
    minimum: float
    maximum: float
    #: Share of the responses that count as correct (the first term is full).
    correct_share: float
    #: Counts between the edges of the result's ``edges``.
    histogram: list[int]
    #: Mean of every term, before weighting.
    term_means: dict[str, float]
    error_count: int
    errors: list[ScoringError]
    latency: Latency
    is_deterministic: bool
    #: Rows whose score changed when it was scored again.
    changed_rows: list[int]
    examples: list[ScoredExample]


class DryRunWarning(Strict):
    """A problem in the scores that will hurt training."""

    code: str
    probe: Probe | None = None
    message: Text


class DryRunResult(Strict):
    """Results of the rewards on real rows."""

    row_count: int
    #: Edges of the histograms' bins, one more than bins.
    edges: list[float]
    probes: list[ProbeResult]
    warnings: list[DryRunWarning]
    error_count: int
    is_deterministic: bool
    latency: Latency
    #: What judges cost, in US dollars.
    cost: float = 0.0
