"""The job spec: all that a job's process is told, written as JSON before Ray starts it."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from trellis_contracts.agents import AgentTask
from trellis_contracts.evaluation import CheckpointSource, EvaluationTask
from trellis_contracts.recipe import DataFormat, Engine, Strict
from trellis_contracts.renamed import Renamed

SPEC_VERSION = 1
#: Exit codes of the entrypoint. Anything else non-zero is a failure of the run.
EXIT_SUCCEEDED = 0
EXIT_STOPPED = 75  # EX_TEMPFAIL: left at a checkpoint because it was asked to
EXIT_CRASHED = 70  # EX_SOFTWARE: the trainer was killed by a signal (the machine's fault)
EXIT_BAD_SPEC = 78  # EX_CONFIG
#: Environment variable with the nice value (0 to 19) of a run's processes.
NICENESS_VARIABLE = "TRELLIS_NICENESS"


class DataSource(Strict):
    """Training rows: one split of a version of a dataset."""

    dataset_id: str
    #: The version and split; None for files that belong to no dataset of the platform.
    version: str | None = None
    split: str | None = None
    #: Parquet files in the order of the rows. They may name the same columns in another order, and a column
    #: without any value in one of them has no type there.
    paths: list[str]
    #: What the rows are read as.
    format: DataFormat
    #: The column that plays each of the format's roles (``{"prompt": "question"}``); roles that are
    #: not named are looked for under their usual names.
    columns: dict[str, str] = Field(default_factory=dict)
    #: Of the rows: that of the version's tree, or of the one file.
    sha256: str
    row_count: int = Field(ge=0)


class ModelSource(Strict):
    """The weights that a job starts from: a local folder, or a hub id with its revision."""

    model_id: str
    path: str
    sha256: str | None = None
    revision: str | None = None


ExportForm = Literal["merged", "adapter"]


class ExportTask(Strict):
    """A checkpoint to write as a Hugging Face folder."""

    #: The job that made the checkpoint, the engine that wrote it, and its folder (``.../global_step_N``).
    job_id: str
    engine: Engine
    step: int = Field(ge=0)
    checkpoint_path: str
    #: ``merged``: a whole model, an adapter folded into its base; ``adapter``: the PEFT adapter alone.
    form: ExportForm = "merged"
    #: The folder to make; it appears complete or not at all.
    output_path: str


class ServeTask(Strict):
    """A model or checkpoint to answer requests with."""

    endpoint_id: str
    #: By which requests name it.
    served_name: str
    #: None: the spec's model itself.
    checkpoint: CheckpointSource | None = None
    #: GPUs that the model is spread over.
    tensor_parallel: int = Field(default=1, ge=1)
    #: Tokens of prompt and answer together; None: what the model reads, as far as the memory goes.
    max_model_len: int | None = Field(default=None, ge=1)
    #: Tokens of one answer, at most.
    max_tokens: int = Field(ge=1)
    #: Adapters up to this rank can be loaded later; None: none can.
    max_lora_rank: int | None = Field(default=None, ge=1)
    #: Different adapters in one batch.
    max_loras: int = Field(default=1, ge=1)
    #: An encoder: it answers with vectors.
    is_encoder: bool = False
    #: Whether a newer checkpoint of the same job may take the place of the weights while the engine runs.
    is_replaceable: bool = False


class JobSpec(Strict, Renamed):
    """Read by ``python -m trellis_train.entrypoint <spec.json>``.

    The ingest token is not in here: it lies beside the spec in ``token`` (mode 600).
    """

    old_names: ClassVar = {"trains_on": "row_format"}

    version: int = SPEC_VERSION
    job_id: str
    attempt: int = Field(ge=1)
    name: str
    recipe: str
    engine: Engine
    platform: str = Field(pattern="^(cpu|cuda)$")
    #: 0 for a job that needs no slot (an export).
    gpus: int = Field(ge=0)
    seed: int
    params: dict[str, Any]
    #: Hydra overrides for the engine, in the order in which they apply.
    engine_overrides: list[str]
    #: Environment that the engine's processes need (no secrets).
    env: dict[str, str] = Field(default_factory=dict)
    model: ModelSource
    #: The form that the data is brought into; None for a job that does not train, as is ``train_data``.
    row_format: DataFormat | None = None
    train_data: DataSource | None = None
    validation_data: DataSource | None = None
    #: Folder of this attempt: spec, token, event spool, stop file.
    attempt_dir: str
    #: Folder of the job's checkpoints, shared by its attempts.
    checkpoint_dir: str
    #: Checkpoint folder to continue from (``.../global_step_N``), or None.
    resume_from: str | None = None
    #: What is to be exported, where the engine is ``EXPORT``.
    export: ExportTask | None = None
    #: How episodes are made, of a recipe that trains an agent.
    agent: AgentTask | None = None
    #: What is to be measured, where the engine is ``EVALUATE``.
    evaluation: EvaluationTask | None = None
    #: What is to be served, where the engine is ``SERVE``.
    serve: ServeTask | None = None
    #: Base address of the API, without a trailing slash.
    ingest_url: str
    heartbeat_interval_s: float = 5.0
