"""The folder of an attempt: what lies where, for the workers that make it and the run that lives in it."""

from pathlib import Path
from urllib.parse import urlsplit

#: The ``JobSpec`` that the run is started with.
SPEC_FILE = "spec.json"
#: The ingest token (mode 600).
TOKEN_FILE = "token"  # noqa: S105 - a file name
#: Where the API is now; a run that cannot reach it at the ``ingest_url`` of its spec looks here.
ADDRESS_FILE = "address"
_MAX_ADDRESS_BYTES = 2_048
#: Of an endpoint: the key that its engine wants to see from the API (mode 600).
ENGINE_KEY_FILE = "engine-key"
#: The ``RewardResources`` of a run whose rewards need files, models or judges.
REWARDS_FILE = "rewards.json"
#: Keys of the judges, by name (mode 600).
REWARD_KEYS_FILE = "reward-keys"
#: Keys of a workflow's auxiliary models, by its names for them (mode 600).
AUXILIARY_KEYS_FILE = "auxiliary-keys"
#: Keys that a run is handed: they do not outlive it.
KEY_FILES = (ENGINE_KEY_FILE, REWARD_KEYS_FILE, AUXILIARY_KEYS_FILE)
#: Copies of persons' own reward functions.
REWARD_FILES_FOLDER = "rewards"
#: A person's own workflow, where the run trains one.
WORKFLOW_FILE = "workflow.py"
#: How the sessions of an agent went, a line a batch: ``{"step", "split", "sessions", "failed", "first"}``,
#: with ``failed`` by kind of error.
SESSIONS_FILE = "sessions.jsonl"
#: Of an endpoint: the adapters that its engine shall serve beside its model, as the platform last said.
ADAPTERS_FILE = "adapters.json"
#: ... and those adapters in PEFT's format, one folder each, named by the id of their endpoint.
ADAPTERS_FOLDER = "adapters"
#: For so long an engine is waited for that takes other weights in place of its own: requests in flight end
#: first, and large weights come slowly from a cold disk.
REPLACE_TIMEOUT_S = 1800.0
#: Created to ask the run to checkpoint and leave.
STOP_FILE = "stop"
#: Touched by the run before each heartbeat, whether or not the API hears that: it lives.
BEAT_FILE = "beat"
#: Written by the workers: for how long they have seen that file stand still.
SILENCE_FILE = "silence.json"
#: The ``Rules`` of what the run's processes may see.
ISOLATION_FILE = "isolation.json"
#: The run's temporary files, where its processes see this folder in place of that of all runs.
TEMPORARY_FOLDER = "tmp"
#: The event spool: one or more ``<producer>.<segment>.jsonl`` a producer.
EVENTS_FOLDER = "events"
#: How far the spool has been sent.
CURSOR_FILE = "cursor.json"
#: Resolved engine configuration and replay command (``{"config", "command"}``), for the manifest.
COMPOSITION_FILE = "composition.json"
#: Training and validation rows in the engine's own format.
PREPARED_FOLDER = "prepared"
#: In that folder; the second only where the job validates.
TRAIN_FILE = "train.parquet"
VALIDATION_FILE = "validation.parquet"
#: ... and where a recipe chooses its rows: ``{"rows", "dataset_rows", "left_out_rows", "replayed_rows",
#: "task_types"}``, the last with the rows of each kind.
MIX_FILE = "mix.json"


def read_address(file: Path) -> str | None:
    """Read the API's address from an ``ADDRESS_FILE``; None if it is missing or has no http address.

    Raises ``OSError`` and ``ValueError`` where it cannot be read.
    """
    try:
        with file.open("rb") as opened:
            url = opened.read(_MAX_ADDRESS_BYTES).decode().strip()
    except FileNotFoundError:
        return None  # of a platform that does not move
    return url if urlsplit(url).scheme in ("http", "https") else None


def locate_job(data_root: Path, job_id: str) -> Path:
    """Return the folder with everything that a job writes."""
    return data_root / "jobs" / job_id


def locate_attempt(data_root: Path, job_id: str, attempt: int) -> Path:
    """Return the folder of one attempt of a job."""
    return locate_job(data_root, job_id) / f"attempt-{attempt}"


def locate_checkpoints(data_root: Path, job_id: str) -> Path:
    """Return the folder with a job's checkpoints, which its attempts share."""
    return locate_job(data_root, job_id) / "checkpoints"


def locate_replay(data_root: Path) -> Path:
    """Return the folder with rows that jobs keep for later jobs; all such jobs write to it."""
    return data_root / "jobs" / "replay"


def locate_staging(output: Path) -> Path:
    """Return where an export writes what will be renamed to ``output`` when complete."""
    return output.with_name(f".{output.name}.partial")
