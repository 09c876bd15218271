"""Rows of jobs: the intent, its attempts, and what they left behind."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Integer, Text
from sqlalchemy import Enum as SqlEnum
from sqlalchemy import false as sa_false
from sqlmodel import Field, SQLModel
from trellis_contracts.states import JobState

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now

#: Kept as its value ("queued"), as plain text: a new state needs no migration.
StateColumn: Any = SqlEnum(
    JobState,
    native_enum=False,
    create_constraint=False,
    length=16,
    values_callable=lambda states: [state.value for state in states],
)


TRAIN, EXPORT, EVALUATE, SERVE = "train", "export", "evaluate", "serve"


class Job(SQLModel, table=True):
    """One job. The row is the intent: workers act on what stands here."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_newest", "created_at", "id"),
        Index("ix_jobs_queue", "state", "priority", "queued_at"),
    )

    id: str = Field(primary_key=True)
    name: str
    state: JobState = Field(default=JobState.QUEUED, sa_type=StateColumn)
    recipe: str = Field(index=True)
    preset: str | None = None
    model_id: str = Field(index=True)
    #: "train"; "export": a checkpoint written as a model, which needs no dataset and no slot; "evaluate": a
    #: model measured on benchmarks, which needs no dataset, and slots only where there are GPUs; "serve": a
    #: model that answers requests, with slots as an evaluation.
    kind: str = Field(default=TRAIN, max_length=16, sa_column_kwargs={"server_default": TRAIN})
    dataset_id: str | None = Field(default=None, index=True)
    validation_dataset_id: str | None = Field(default=None, index=True)
    #: Version and split of each, as they stood when the job was asked for.
    dataset_version: str | None = Field(default=None, max_length=64)
    dataset_split: str | None = Field(default=None, max_length=100)
    validation_version: str | None = Field(default=None, max_length=64)
    validation_split: str | None = Field(default=None, max_length=100)
    #: What the training rows are read as, and which column plays which role, where a person said so.
    data_format: str | None = Field(default=None, max_length=32)
    data_columns: dict[str, str] = Field(
        default_factory=dict, sa_type=JsonColumn, sa_column_kwargs={"server_default": "{}"}
    )
    #: The same of the validation's rows; where nobody said so, as the training rows.
    validation_data_format: str | None = Field(default=None, max_length=32)
    validation_columns: dict[str, str] = Field(
        default_factory=dict, sa_type=JsonColumn, sa_column_kwargs={"server_default": "{}"}
    )
    #: Parameters and engine keys as they were asked for; what they came to is in ``JobConfiguration``.
    params: dict[str, Any] = Field(default_factory=dict, sa_type=JsonColumn)
    overrides: dict[str, Any] = Field(default_factory=dict, sa_type=JsonColumn)
    seed: int = Field(default=1, sa_type=BigInteger)
    gpus: int = 1
    #: Of the smallest GPU, or of the machine on a CPU platform, at submission: passes are sized by it.
    device_memory_bytes: int | None = Field(default=None, sa_type=BigInteger)
    priority: int = 0
    cloned_from: str | None = None
    #: The sweep that it is a run of.
    sweep_id: str | None = Field(default=None, max_length=32, index=True)
    #: Runs that belong together, such as the seeds of one configuration.
    group: str | None = Field(default=None, max_length=200, index=True)
    #: What a person wrote about it, as Markdown.
    notes: str = Field(default="", sa_type=Text, sa_column_kwargs={"server_default": ""})
    is_starred: bool = Field(default=False, sa_column_kwargs={"server_default": sa_false()})
    #: What an export job writes: an ``ExportOrder``.
    export: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)
    #: What a training job exports when it has succeeded (``ExportAs``), and what became of that.
    export_as: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)
    #: What a training job measures its checkpoints on (``EvaluateWhileTraining``).
    evaluate: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)
    #: The evaluation that a job of kind "evaluate" carries out.
    evaluation_id: str | None = Field(default=None, max_length=32)
    #: The metric by which the best checkpoint is told (``BestBy``); None: the recipe's own.
    keep_best_by: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)

    #: Number of the attempt that runs or is to run next: 1, 2, 3 ...
    attempt: int = 1
    #: Checkpoint folder that this attempt continues from, and its step.
    resume_from: str | None = None
    resume_step: int | None = Field(default=None, sa_type=BigInteger)

    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    queued_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    #: Where it stands among jobs of its priority, where a person moved it; None: as of ``queued_at``.
    ordered_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    launched_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    stop_requested_at: datetime | None = Field(default=None, sa_type=UtcDateTime)

    phase: str | None = None
    step: int = Field(default=0, sa_type=BigInteger)
    total_steps: int | None = Field(default=None, sa_type=BigInteger)
    #: Highest step with metrics; rollups exist for every bucket before the one it lies in.
    metric_step: int = Field(default=-1, sa_type=BigInteger)
    #: Where the measurement of speed began: the first step that this attempt reported.
    first_step: int | None = Field(default=None, sa_type=BigInteger)
    first_step_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    last_step_at: datetime | None = Field(default=None, sa_type=UtcDateTime)

    exit_code: int | None = None
    reason: str | None = None
    cause: str | None = None

    #: Counters that are advanced under this row's lock, so that what they number never has a gap
    #: that is filled later: a reader who has seen n will find everything new behind n.
    event_count: int = Field(default=0, sa_type=BigInteger)
    line_count: int = Field(default=0, sa_type=BigInteger)


class JobConfiguration(SQLModel, table=True):
    """What a training job runs with, as it was composed when the job was submitted.

    Beside the job's row, since lists of jobs have no use for it. Jobs from before have none.
    """

    __tablename__ = "job_configurations"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    #: A ``Configuration``. The order of its keys counts, which PostgreSQL would not keep in parsed JSON.
    document: dict[str, Any] = Field(sa_type=JSON)


class Purge(SQLModel, table=True):
    """The tombstone of a deleted job: its files are to be removed, however long that takes to happen."""

    __tablename__ = "purges"

    job_id: str = Field(primary_key=True)
    requested_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class ExportLeftover(SQLModel, table=True):
    """Folders of an export that did not succeed, which are to be removed: no model stands for them."""

    __tablename__ = "export_leftovers"

    job_id: str = Field(primary_key=True)
    model_id: str = Field(max_length=32)
    requested_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class JobTag(SQLModel, table=True):
    """A label that a person gave to a job."""

    __tablename__ = "job_tags"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    tag: str = Field(primary_key=True, index=True)


class Attempt(SQLModel, table=True):
    """One launch of a job."""

    __tablename__ = "job_attempts"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    number: int = Field(primary_key=True)
    #: SHA-256 of the ingest token; None once the attempt may not report any more.
    token_hash: str | None = Field(default=None, index=True, unique=True)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Last sign of life: a batch or a heartbeat.
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Sequence number of the batch that is expected next.
    next_sequence: int = Field(default=1, sa_type=BigInteger)
    resume_from: str | None = None
    #: What the attempt said of itself in its last event; the exit code decides.
    outcome: str | None = None
    exit_code: int | None = None
    reason: str | None = None
    cause: str | None = None
    manifest: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)
    #: What the rules of alarms remember of the metrics so far (``alarms/watch.py``).
    watch: dict[str, Any] | None = Field(default=None, sa_type=JSON)


class Checkpoint(SQLModel, table=True):
    """A checkpoint that is complete on disk."""

    __tablename__ = "checkpoints"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    step: int = Field(primary_key=True, sa_type=BigInteger)
    attempt: int
    path: str
    hf_path: str | None = None
    size_bytes: int = Field(sa_type=BigInteger)
    #: What the run said of it, and what its metrics were when their points were about to go.
    metrics: dict[str, Any] = Field(default_factory=dict, sa_type=JsonColumn)
    #: By key, the step and value reported last before it, when their points were about to go (a resume from
    #: before the checkpoint). None while the points of its own attempt are there to be read.
    earlier: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)
    created_at: datetime = Field(sa_type=UtcDateTime)
    #: Pinned by a person.
    is_kept: bool = Field(default=False, sa_column_kwargs={"server_default": sa_false()})
    #: Given up; then its files are removed, by a worker, and that is noted too.
    pruned_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    removed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class JobEvent(SQLModel, table=True):
    """What the page is told, in order: ``sequence`` is 1, 2, 3 ... within the job."""

    __tablename__ = "job_events"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    sequence: int = Field(primary_key=True, sa_type=BigInteger)
    kind: str
    #: Only read as a whole, so PostgreSQL need not take it apart.
    payload: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class LogLine(SQLModel, table=True):
    """One line of output; ``line`` is 1, 2, 3 ... within the job, over all attempts."""

    __tablename__ = "log_lines"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    line: int = Field(primary_key=True, sa_type=BigInteger)
    attempt: int
    stream: str
    time: datetime = Field(sa_type=UtcDateTime)
    text: str


class RolloutGroup(SQLModel, table=True):
    """The sampled responses to one prompt at one step in numbers: what is read of many steps at once."""

    __tablename__ = "rollout_groups"
    __table_args__ = (Index("ix_rollout_groups_prompt", "job_id", "split", "prompt_key", "step"),)

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    split: str = Field(primary_key=True)
    step: int = Field(primary_key=True, sa_type=BigInteger)
    group: str = Field(primary_key=True)
    attempt: int
    #: Same for the same prompt at every step.
    prompt_key: str = Field(max_length=64)
    #: Beginning of the prompt.
    excerpt: str
    #: The prompt as a conversation, where the run said so.
    messages: list[dict[str, str]] | None = Field(default=None, sa_type=JSON)
    count: int
    scored: int
    #: Mean, lowest and highest score; None without a score.
    mean: float | None = None
    lowest: float | None = None
    highest: float | None = None
    #: Responses that are right; None where the rewards do not say.
    correct: int | None = None
    #: Whether several responses all have the same score.
    is_uniform: bool
    tokens: int = Field(sa_type=BigInteger)


class RolloutTokens(SQLModel, table=True):
    """What was measured of the tokens of one sampled response; few responses have it."""

    __tablename__ = "rollout_tokens"
    __table_args__ = (Index("ix_rollout_tokens_step", "job_id", "split", "step"),)

    rollout_id: int = Field(
        primary_key=True,
        foreign_key="rollouts.id",
        ondelete="CASCADE",
        sa_type=BigInteger().with_variant(Integer, "sqlite"),
        sa_column_kwargs={"autoincrement": False},
    )
    job_id: str
    split: str
    step: int = Field(sa_type=BigInteger)
    #: A ``TokenTrace``.
    trace: dict[str, Any] = Field(sa_type=JSON)


class RolloutSample(SQLModel, table=True):
    """One sampled response of the policy at one step."""

    __tablename__ = "rollouts"
    __table_args__ = (Index("ix_rollouts_step", "job_id", "split", "step", "id"),)

    id: int | None = Field(
        default=None, primary_key=True, sa_type=BigInteger().with_variant(Integer, "sqlite")
    )
    job_id: str = Field(foreign_key="jobs.id", ondelete="CASCADE")
    attempt: int
    step: int = Field(sa_type=BigInteger)
    split: str
    group: str
    prompt: str
    response: str
    ground_truth: str | None = None
    score: float | None = None
    reward_parts: dict[str, Any] = Field(default_factory=dict, sa_type=JsonColumn)
    response_tokens: int = Field(sa_type=BigInteger)
    advantage: float | None = None
    is_truncated: bool = False
    #: A ``Trajectory``, where the response is an episode of an agent. Only read as a whole, one at a time.
    trajectory: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    #: Of the trajectory, for lists.
    stop_reason: str | None = Field(default=None, max_length=64)
    turn_count: int | None = None
