"""Classify why a run failed: known causes by what the last lines say, else the last error itself."""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trellis_contracts.events import Outcome
from trellis_contracts.spec import EXIT_STOPPED, EXIT_SUCCEEDED

#: Why we ended an engine: "stop" was asked for by the platform, "signal" came from outside.
EndedFor = Literal["stop", "signal", "disowned"]

_MAX_REASON_CHARS = 500


@dataclass(frozen=True)
class Verdict:
    """How an attempt ended, and why in one sentence."""

    outcome: Outcome
    reason: str | None = None
    cause: str | None = None


@dataclass(frozen=True)
class KnownCause:
    """A failure that is recognised by its message. ``{0}`` in the reason is the pattern's first group."""

    code: str
    pattern: re.Pattern[str]
    reason: str
    outcome: Literal["failed", "crashed"] = "failed"


def _known(
    code: str, pattern: str, reason: str, outcome: Literal["failed", "crashed"] = "failed"
) -> KnownCause:
    return KnownCause(code, re.compile(pattern), reason, outcome)


#: The specific before the general: the first that is found anywhere in the last lines counts.
KNOWN_CAUSES: Sequence[KnownCause] = (
    # Before all others: the workflow's own error is quoted after it, and would be taken for the engine's.
    _known(
        "sessions_failing",
        r"SessionsFailing: (.+)",
        "The workflow fails: {0}",
    ),
    _known(
        "engine_moved",
        r"EngineMoved: engine_moved: ([^\n]+)",
        "The installed engine versions are not supported: {0}",
    ),
    _known(
        "bad_configuration",
        r"Could not override '([^']+)'|Key '([^']+)' is not in struct"
        r"|Unknown TRL setting (\w+)",
        "Unknown engine configuration key '{0}'.",
    ),
    _known(
        "rewards_failing",
        r"RewardsFailing: (.+)",
        "Rewards failed: {0}",
    ),
    _known(
        "missing_column",
        r"Column '?([\w.]+)'? (?:not found|does not exist)"
        r"|KeyError: '(prompt|messages|data_source|reward_model|chosen|rejected|ground_truth)'",
        "The training data is missing the column '{0}'.",
    ),
    _known(
        "kv_cache_too_small",
        r"No available memory for the cache blocks|KV cache is needed, which is larger than"
        r"|larger than the maximum number of tokens that can be stored in KV cache",
        "vLLM's KV cache is too small for the maximum sequence length.",
    ),
    _known(
        "cuda_out_of_memory",
        r"CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED"
        r"|CUDA error: out of memory",
        "The GPU ran out of memory.",
    ),
    _known(
        "shared_memory_full",
        r"[Ii]nsufficient shared memory|/dev/shm.*No space left|No space left on device.*(?:/dev/shm|psm_)"
        r"|[Bb]us error|unable to (?:write to file|open shared memory object|resize).*(?:torch_|/torch)",
        "Shared memory (/dev/shm) is full or too small.",
    ),
    _known(
        "disk_full",
        r"No space left on device|Disk quota exceeded|\[Errno 28\]|\[Errno 122\]",
        "The disk is full.",
    ),
    _known(
        "model_not_found",
        r"is not a local folder and is not a valid model identifier|RepositoryNotFoundError"
        r"|Repository Not Found|does not appear to have a file named|Incorrect path_or_model_id"
        r"|Unrecognized model in",
        "The model was not found, or its folder is incomplete.",
    ),
    _known(
        "model_access_denied",
        r"GatedRepoError|Access to model .+ is restricted|You must have access to it",
        "Access to this model on the Hugging Face Hub was denied: it needs a token with access.",
    ),
    _known(
        "hub_unreachable",
        r"couldn't connect to '?https://huggingface|LocalEntryNotFoundError|OfflineModeIsEnabled",
        "The Hugging Face Hub could not be reached, and the model is not available locally.",
    ),
    _known(
        "batch_size_mismatch",
        r"((?:\S+batch_size\S*|batch size)[^\n]{0,80}(?:must be|is not|should be) "
        r"(?:divisible|a multiple)[^\n]{0,80})",
        "Incompatible batch sizes: {0}",
    ),
    _known(
        "prompt_too_long",
        r"[Pp]rompt length \(?\d+\)? (?:is longer than|exceeds)|Prompt length .* exceeds",
        "A prompt is longer than the maximum prompt length.",
    ),
    _known(
        "chat_template_missing",
        r"NoChatTemplate: |tokenizer\.chat_template is not set",
        "The model's tokenizer has no chat template.",
    ),
    _known(
        "no_rows_left",
        r"NoRowsLeft: ([^\n]*)",
        "{0}",
    ),
    _known(
        "non_finite_loss",
        r"probability tensor contains either `inf`, `nan`|non-finite (?:loss|grad)"
        r"|(?:loss|grad_norm|gradient norm|logits?) (?:is|are|became) (?:nan|inf|NaN|Inf)\b",
        "Training diverged: a value became NaN or infinite. A lower learning rate often helps.",
    ),
    _known(
        "sampling_exhausted",
        r"(Dynamic sampling gave up: [^\n]+)",
        "{0}",
    ),
    _known(
        "not_enough_gpus",
        r"(Total available GPUs [\d.]+ is less than total desired GPUs \d+)",
        "Not enough GPUs in the cluster: {0}.",
    ),
    _known(
        "no_gpu",
        r"No CUDA GPUs are available|Found no NVIDIA driver|CUDA driver version is insufficient",
        "No usable GPU was found on the machine.",
    ),
    _known(
        "gpu_fault",
        r"(CUDA error: (?!out of memory)[^\n]{0,100}|uncorrectable ECC error)",
        "The GPU reported an error: {0}",
        "crashed",
    ),
    _known(
        "worker_died",
        r"RankDied: (.+)",
        "A training process died unexpectedly (often out of memory): {0}.",
        "crashed",
    ),
    _known(
        "communication_failed",
        r"ncclSystemError|ncclUnhandledCudaError|ncclRemoteError|NCCL (?:error|timeout)|"
        r"Watchdog caught collective operation timeout|Connection closed by peer.*gloo",
        "Communication between the GPUs failed (NCCL).",
        "crashed",
    ),
    _known(
        "out_of_memory",
        r"node running low on memory|DefaultCPUAllocator: can't allocate memory"
        r"|Cannot allocate memory|^MemoryError",
        "The machine ran out of memory.",
        "crashed",
    ),
    _known(
        "worker_died",
        r"ActorDiedError|ActorUnavailableError|WorkerCrashedError|worker process has died|"
        r"The actor died unexpectedly",
        "A worker process of the run died unexpectedly (often out of memory).",
        "crashed",
    ),
    _known(
        "cluster_unreachable",
        r"[Ff]ailed to connect to GCS|Could not find any running Ray instance"
        r"|GCS .* is (?:dead|not available)",
        "The run lost its connection to the Ray cluster.",
        "crashed",
    ),
    _known(
        "port_in_use",
        r"[Aa]ddress already in use|EADDRINUSE|\[Errno 98\]",
        "A network port that the run needs is already in use.",
        "crashed",
    ),
    _known(
        "export_incomplete",
        r"CheckpointIncomplete: ([^\n]+)",
        "{0}",
    ),
    _known(
        "export_mismatch",
        r"CheckpointMismatch: ([^\n]+)",
        "{0}",
    ),
    _known(
        "export_invalid",
        r"ExportUnsound: ([^\n]+)",
        "{0}",
    ),
    _known(
        "benchmark_unusable",
        r"(?:BenchmarkUnusable|NoChatTemplate): ([^\n]+)",
        "{0}",
    ),
    _known(
        "engine_not_started",
        r"EngineNotStarted: ([^\n]+)",
        "The engine could not start: {0}",
    ),
    _known(
        "engine_died",
        r"EngineDied: ([^\n]+)",
        "{0}",
        "crashed",
    ),
    _known(
        "checkpoint_unreadable",
        r"PytorchStreamReader failed|Error\(s\) in loading state_dict|SafetensorError|invalid magic number",
        "The checkpoint or model weights could not be read.",
    ),
    _known(
        "missing_package",
        r"ModuleNotFoundError: No module named '([^']+)'",
        "The Python package '{0}' is not installed.",
    ),
    _known(
        "permission_denied",
        r"PermissionError: [^\n]*?'([^'\n]+)'|Permission denied: '([^'\n]+)'",
        "Permission denied: {0}.",
    ),
)

#: What a run says that ends early because there is nothing left to learn (``hooks.dynamic_sampling``).
_EARLY_END = re.compile(r"^PolicySolved: (.+)")
_ENDED: dict[EndedFor, Verdict] = {
    "stop": Verdict("stopped", "The run was killed before it reached a checkpoint.", "ended"),
    "signal": Verdict("crashed", "The run was terminated from outside the platform (SIGTERM).", "terminated"),
    "disowned": Verdict("stopped", "The platform no longer accepts this attempt.", "disowned"),
}
_SIGNAL_REASONS = {
    signal.SIGKILL: "The training process was killed by SIGKILL (often out of memory).",
    signal.SIGBUS: "The training process was killed by SIGBUS (often because shared memory is full).",
    signal.SIGSEGV: "The training process was killed by SIGSEGV (a crash in native code).",
    signal.SIGABRT: "The training process was killed by SIGABRT (a crash in native code).",
}
_SIGNAL_CAUSES = {signal.SIGKILL: "killed", signal.SIGBUS: "shared_memory_full"}
#: "(TaskRunner pid=123, ip=10.0.0.1) " in front of what Ray's actors print.
_ACTOR_PREFIX = re.compile(r"^\([\w.:<>]+(?:\([^)]*\))? pid=\d+(?:, ip=[\d.]+)?\)\s?")
_ERROR_LINE = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)(?:\(\w+\))?: ?.*|^AssertionError$"
)


def judge(
    exit_code: int,
    last_lines: Sequence[str],
    *,
    was_oom_kill: bool = False,
    ended_for: EndedFor | None = None,
) -> Verdict:
    """Return the verdict on an engine's exit.

    ``exit_code`` is negative for a signal; ``was_oom_kill``: the kernel killed a process for
    memory meanwhile; ``ended_for``: why we ended the engine ourselves, if we did.
    """
    if exit_code == EXIT_SUCCEEDED:
        return Verdict("succeeded", _find_note(last_lines))
    if exit_code == EXIT_STOPPED:
        return Verdict("stopped")
    if ended_for is not None:
        return _ENDED[ended_for]
    if exit_code < 0:
        return _judge_signal(-exit_code, last_lines, was_oom_kill)
    known = find_known_cause(last_lines)
    if known is not None:
        return known
    error = find_last_error(last_lines)
    return Verdict("failed", error or f"The training process exited with code {exit_code}.")


def _find_note(last_lines: Sequence[str]) -> str | None:
    """Find why a run that succeeded has ended before its last step, if its output says so."""
    found = (_EARLY_END.search(line) for line in reversed(last_lines))
    return next((_shorten(match.group(1)) for match in found if match), None)


def _judge_signal(number: int, last_lines: Sequence[str], was_oom_kill: bool) -> Verdict:
    if number == signal.SIGKILL and was_oom_kill:
        return Verdict(
            "crashed", "The machine ran out of memory and killed the training process.", "out_of_memory"
        )
    known = find_known_cause(last_lines)
    if known is not None:
        return Verdict("crashed", known.reason, known.cause)
    try:
        named = signal.Signals(number)
    except ValueError:
        return Verdict("crashed", f"The training process was killed by signal {number}.", "killed")
    reason = _SIGNAL_REASONS.get(named, f"The training process was killed by {named.name}.")
    return Verdict("crashed", reason, _SIGNAL_CAUSES.get(named, "native_crash"))


def find_known_cause(last_lines: Sequence[str]) -> Verdict | None:
    """Find the first known cause that matches one of the lines, or None."""
    lines = [_ACTOR_PREFIX.sub("", line) for line in last_lines]
    for known in KNOWN_CAUSES:
        for line in reversed(lines):
            match = known.pattern.search(line)
            if match:
                detail = next((group for group in match.groups() if group), "")
                return Verdict(known.outcome, _shorten(known.reason.format(detail)), known.code)
    return None


def find_last_error(last_lines: Sequence[str]) -> str | None:
    """Find the last line that looks like a Python error message."""
    for line in reversed(last_lines):
        text = _ACTOR_PREFIX.sub("", line).strip()
        if _ERROR_LINE.match(text):
            return _shorten(text)
    return None


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_REASON_CHARS else text[: _MAX_REASON_CHARS - 1] + "…"
