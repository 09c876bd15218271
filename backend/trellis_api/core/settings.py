"""Every setting of the platform, read from ``TRELLIS_*`` at start-up by the API and the workers."""

import importlib.util
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from trellis_contracts.attempt import locate_attempt, locate_checkpoints, locate_job
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.gpu_devices import count_gpus

from trellis_api.core.pricing import SlotPrice

GIB = 1024**3
#: Which endpoints trainings may stop: none, those without requests, or any.
EndpointPreemption = Literal["off", "idle", "any"]
REPOSITORY_ROOT = Path(__file__).resolve().parents[3]


class Settings(BaseSettings):
    """Settings by environment; a wrong value stops the start with the variable's name."""

    model_config = SettingsConfigDict(env_prefix="TRELLIS_", extra="ignore")

    data_root: Path = Field(Path("data"), description="Data root: folder for all platform data.")
    host: str = Field("127.0.0.1", description="Address that the API binds to.")
    port: int = Field(8001, ge=1, le=65535, description="Port of the API and the dashboard.")
    public_url: str | None = Field(
        None, description="Base URL for jobs and login links; default: http://127.0.0.1:<port>."
    )
    database_url: str | None = Field(
        None, description="SQLAlchemy URL; default: SQLite at <data_root>/trellis.db."
    )
    redis_url: str | None = Field(None, description="Broker and cache, e.g. redis://127.0.0.1:6379/0.")
    ray_address: str | None = Field(None, description="GCS address host:port of the Ray head.")
    ray_dashboard_url: str | None = Field(None, description="Address of Ray's Jobs API.")
    platform: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Device jobs run on; auto selects cuda if this machine has NVIDIA GPUs."
    )
    slots: int | None = Field(
        None, ge=1, description="Number of GPU slots; default: the number of GPUs, or 1 on CPU."
    )
    frontend_dist: Path | None = Field(
        None, description="Folder of the built dashboard; default: <repository>/frontend/dist."
    )
    max_upload_bytes: int = Field(2 * GIB, ge=1, description="Max upload size.")
    max_batch_bytes: int = Field(
        8 * 1024**2, ge=1024, description="Max ingest batch size, before and after decompression."
    )
    max_request_bytes: int = Field(
        16 * 1024**2, ge=1024, description="Max JSON request body size; use uploads for files."
    )
    min_free_disk_bytes: int = Field(
        GIB, ge=0, description="Jobs don't launch if less than this is free in the data root."
    )
    stop_grace_s: float = Field(
        120, ge=0, description="Grace period for a run to save a checkpoint after a stop."
    )
    heartbeat_timeout_s: float = Field(
        45, gt=0, description="Time without a heartbeat after which a run counts as lost."
    )
    launch_timeout_s: float = Field(
        20, gt=0, description="Time after which a launch that Ray does not know counts as lost."
    )
    job_python: Path | None = Field(
        None, description="Python executable for jobs on the cluster; default: the platform's own."
    )
    job_isolation: Literal["auto", "required", "off"] | None = Field(
        None,
        description="Whether jobs and dry runs see only the files they use. `auto`: if the machine permits "
        "it; `required`: otherwise they fail with isolation_unavailable; `off`: never. Default: `auto` on a "
        "CPU, `off` with GPUs, where it has not been tried.",
    )
    sweep_interval_s: float = Field(2, gt=0, description="Polling interval of the workers.")
    max_exports: int = Field(
        1, ge=1, description="Max concurrent exports. Each needs memory for a full model, but no slot."
    )
    max_evaluations: int = Field(
        1, ge=1, description="Max concurrent evaluations on CPU, where they take no slot."
    )
    evaluation_nice: int = Field(10, ge=0, le=19, description="Nice value (0–19) of evaluations on CPU.")
    max_endpoints: int = Field(
        2,
        ge=1,
        description="Max concurrent endpoints on CPU, where they take no slot. Each holds a model in memory.",
    )
    endpoint_idle_s: float = Field(600, ge=10, description="Default idle time after which an endpoint stops.")
    endpoint_preemption: EndpointPreemption = Field(
        "idle",
        description="Endpoints stopped to make room for a queued training job on GPUs, or for a queued "
        "endpoint. `idle`: those without a request for 60 s; `any`: for a training job also those in use, "
        "unless they have a higher priority; `off`: none. Endpoints with `preemptible: false` are always "
        "kept.",
    )
    #: With the two retries of official clients, what a model may need to load on a slow CPU.
    endpoint_wait_s: float = Field(
        150,
        ge=0,
        description="Time a request waits for its endpoint to start before it gets a 503. Proxies in front "
        "of the platform need a longer time-out.",
    )
    endpoint_answer_s: float = Field(
        600, gt=0, description="Time without output from the engine after which a request is aborted."
    )
    endpoint_max_tokens: int = Field(4096, ge=1, description="Max (and default) tokens per response.")
    endpoint_max_requests: int = Field(
        64,
        ge=1,
        description="Max concurrent endpoint requests; more get a 429. At most a quarter may wait for one "
        "model that isn't loaded; more get a 503.",
    )
    endpoint_max_adapters: int = Field(
        0,
        ge=0,
        le=64,
        description="Experimental. Max adapters of one base model per engine; 0: each adapter gets its own "
        "engine, merged into its base.",
    )
    endpoint_replace_weights: bool | None = Field(
        None,
        description="A newer checkpoint of a job replaces the weights of the older one in the running engine "
        "instead of getting its own. Unset: on a CPU only; it has not been tested on GPUs.",
    )
    wandb_api_key: SecretStr | None = Field(
        None,
        description="Weights & Biases key for jobs with `report_to` and fine-tuning jobs with a `wandb` "
        "integration, for the API and workers. Set WANDB_BASE_URL if you host your own server.",
    )
    wandb_offline: bool = Field(
        False,
        description="Without a network: keep the W&B runs of finished jobs in `wandb/JOB` in the data root, "
        "for `wandb sync`. No key is needed, and nothing is sent. For the API and workers.",
    )
    benchmark_mirror: Path | None = Field(
        None,
        description="Folder with benchmark files, used instead of the Hub: gsm8k/test.jsonl, "
        "gsm8k/train.jsonl, math/test.jsonl, math/math500.jsonl, mmlu/stem_test.jsonl, "
        "humaneval/HumanEval.jsonl.gz.",
    )
    event_poll_interval_s: float = Field(
        0.2, gt=0, description="Polling interval for events streamed to browsers."
    )
    session_lifetime_s: int = Field(7 * 24 * 3600, ge=60, description="Lifetime of a browser session.")
    login_link_lifetime_s: int = Field(900, ge=10, description="Lifetime of a one-time login link.")
    secure_cookies: bool = Field(
        False, description="Send the session cookie over HTTPS only; set it behind a TLS proxy."
    )

    flash_attention: bool | None = Field(
        None,
        description="Whether flash-attn is installed where GPU jobs run; default: whether it is installed "
        "here. Without it, jobs use PyTorch's attention without packing.",
    )
    judges: dict[str, JudgeEndpoint] = Field(
        {},
        description='Endpoints of LLM judges, as JSON: {"name": {"base_url": "https://...", '
        '"model": "...", "key_variable": "NAME_OF_A_VARIABLE", "requests_per_minute": 60, '
        '"input_price": 0.1, "output_price": 0.4}}; prices in US dollars per million tokens.',
    )
    dry_run_timeout_s: float = Field(600, gt=0, description="Time limit of a reward dry run.")

    environment_timeout_s: float = Field(
        1800, gt=0, description="Time limit for creating an agent environment."
    )
    tool_call_timeout_s: float = Field(20, gt=0, description="Time limit of a tool call in an environment.")

    workflow_install_timeout_s: float = Field(
        900, gt=0, description="Time limit for installing a workflow's requirements."
    )
    workflow_packages_bytes: int = Field(
        4 * GIB, gt=0, description="Max disk space for a workflow's requirements."
    )
    workflow_hosts: list[str] = Field(
        [],
        description='Hosts that workflows can reach with model.fetch, as JSON: ["api.example.com", '
        '"search.internal:8443"]. Their sandbox has no other network access.',
    )

    allow_local_addresses: bool | None = Field(
        None,
        description="Whether data pipelines can access addresses of this machine and of private networks; "
        "default: only if TRELLIS_HOST is a loopback address. Link-local addresses never. `true` also allows "
        "redirects of model hubs and S3 to such addresses.",
    )
    data_processes: int | None = Field(
        None, ge=1, description="Processes per pipeline run; default: one per core."
    )
    data_nice: int = Field(10, ge=0, le=19, description="Nice value (0–19) of data workers.")
    preview_timeout_s: float = Field(
        120, gt=0, description="Time limit of a preview, including tokenized rows."
    )
    preview_memory_bytes: int = Field(
        4 * 1024**3,
        ge=512 * 1024**2,
        description="Memory limit of an import, and of a preview, including tokenized rows.",
    )
    gpu_hour_price: float | None = Field(
        None, gt=0, le=1e9, description="Price of a GPU-hour; jobs and launches then show their cost."
    )
    cpu_hour_price: float | None = Field(
        None, gt=0, le=1e9, description="Price of a slot-hour on a CPU platform; as for gpu_hour_price."
    )
    currency: str = Field(
        "USD", pattern="^[A-Z]{3}$", description="Currency of the prices, as an ISO 4217 code."
    )

    @field_validator("data_root")
    @classmethod
    def _make_absolute(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    @field_validator("public_url", "ray_dashboard_url")
    @classmethod
    def _strip_slash(cls, value: str | None) -> str | None:
        return value.rstrip("/") if value else None

    @property
    def effective_database_url(self) -> str:
        """The database address, with the embedded default filled in."""
        return self.database_url or f"sqlite:///{self.data_root / 'trellis.db'}"

    @property
    def base_url(self) -> str:
        """Where jobs and browsers on this machine reach the API, without a trailing slash."""
        return self.public_url or f"http://127.0.0.1:{self.port}"

    @cached_property
    def has_flash_attention(self) -> bool:
        """``flash_attention``, or whether the package is beside this one."""
        if self.flash_attention is not None:
            return self.flash_attention
        return importlib.util.find_spec("flash_attn") is not None

    @property
    def allows_local_addresses(self) -> bool:
        """``allow_local_addresses``, or whether only this machine's own users reach the platform."""
        if self.allow_local_addresses is not None:
            return self.allow_local_addresses
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @cached_property
    def gpu_count(self) -> int:
        """NVIDIA devices of this machine, counted without loading a CUDA library."""
        return count_gpus()

    @property
    def resolved_platform(self) -> Literal["cpu", "cuda"]:
        """``platform`` with auto decided."""
        if self.platform == "auto":
            return "cuda" if self.gpu_count else "cpu"
        return self.platform

    @property
    def replaces_weights(self) -> bool:
        """``endpoint_replace_weights`` with the default decided."""
        is_cpu = self.resolved_platform == "cpu"
        return is_cpu if self.endpoint_replace_weights is None else self.endpoint_replace_weights

    @property
    def resolved_job_isolation(self) -> Literal["auto", "required", "off"]:
        """``job_isolation`` with the default decided."""
        return self.job_isolation or ("auto" if self.resolved_platform == "cpu" else "off")

    @property
    def slot_price(self) -> SlotPrice | None:
        """What an hour of a slot of this platform costs; None where no price is set."""
        price = self.gpu_hour_price if self.resolved_platform == "cuda" else self.cpu_hour_price
        return None if price is None else SlotPrice(price, self.currency)

    @property
    def total_slots(self) -> int:
        """Slots that jobs share."""
        if self.slots is not None:
            return self.slots
        return max(1, self.gpu_count) if self.resolved_platform == "cuda" else 1

    @property
    def admin_token_path(self) -> Path:
        """File of the admin token (mode 600)."""
        return self.data_root / "admin.token"

    @property
    def frontend_path(self) -> Path | None:
        """The built dashboard, or None where it was not built."""
        path = self.frontend_dist or REPOSITORY_ROOT / "frontend" / "dist"
        return path if (path / "index.html").is_file() else None

    def data_task_dir(self, task_id: str) -> Path:
        """Return the folder of a data task: its request, its work so far, and its results."""
        return self.data_root / "data-tasks" / task_id

    def job_dir(self, job_id: str) -> Path:
        """Return the folder of a job: its attempts and checkpoints."""
        return locate_job(self.data_root, job_id)

    def attempt_dir(self, job_id: str, attempt: int) -> Path:
        """Return the folder of one attempt: spec, token, event spool, prepared data."""
        return locate_attempt(self.data_root, job_id, attempt)

    def checkpoint_dir(self, job_id: str) -> Path:
        """Return the folder of a job's checkpoints, shared by its attempts."""
        return locate_checkpoints(self.data_root, job_id)
