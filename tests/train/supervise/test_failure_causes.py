"""Finding the cause of a failure in what a run printed last."""

import signal

import pytest
from trellis_train.supervise.failure_causes import KNOWN_CAUSES, Verdict, judge

TRACEBACK = ["Traceback (most recent call last):", '  File "x.py", line 3, in f', "    raise"]


@pytest.mark.parametrize(
    ("line", "outcome", "cause"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "failed",
            "cuda_out_of_memory",
        ),
        ("(WorkerDict pid=71) RuntimeError: CUDA error: out of memory", "failed", "cuda_out_of_memory"),
        ("ValueError: No available memory for the cache blocks.", "failed", "kv_cache_too_small"),
        (
            "ValueError: To serve at least one request with the models's max seq len (4096), (0.44 GiB "
            "KV cache is needed, which is larger than the available KV cache memory (0.1 GiB).",
            "failed",
            "kv_cache_too_small",
        ),
        ("RuntimeError: DataLoader worker (pid 12) is killed: Bus error.", "failed", "shared_memory_full"),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'", "failed", "shared_memory_full"),
        ("OSError: [Errno 28] No space left on device: '/data/ckpt'", "failed", "disk_full"),
        ("KeyError: 'reward_model'", "failed", "missing_column"),
        (
            "trellis_train.preference.model.NoChatTemplate: The tokenizer of /m has no chat template.",
            "failed",
            "chat_template_missing",
        ),
        (
            "trellis_train.preference.run.NoRowsLeft: No rows left to train on: all are longer than 8.",
            "failed",
            "no_rows_left",
        ),
        ("Could not override 'actor.lrr'.", "failed", "bad_configuration"),
        (
            "trellis_train.compat.change.EngineMoved: engine_moved: changed for another version: verl.a",
            "failed",
            "engine_moved",
        ),
        (
            "OSError: foo/bar is not a local folder and is not a valid model identifier listed on",
            "failed",
            "model_not_found",
        ),
        (
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
            "failed",
            "non_finite_loss",
        ),
        (
            "AssertionError: real_train_batch_size (30) must be divisible by minimal possible batch size (8)",
            "failed",
            "batch_size_mismatch",
        ),
        ("SamplingExhausted: Dynamic sampling gave up: step 3 has sampled 10 batches of 32 prompts and still",
         "failed", "sampling_exhausted"),
        ("ValueError: Total available GPUs 0 is less than total desired GPUs 1", "failed", "not_enough_gpus"),
        ("OSError: [Errno 98] Address already in use", "crashed", "port_in_use"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "crashed", "gpu_fault"),
        ("ray.exceptions.ActorDiedError: The actor died unexpectedly", "crashed", "worker_died"),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "crashed",
         "out_of_memory"),
        ("ModuleNotFoundError: No module named 'flash_attn'", "failed", "missing_package"),
    ],
)  # fmt: skip
def test_known_causes_are_recognised(line: str, outcome: str, cause: str) -> None:
    verdict = judge(1, ["step 4", *TRACEBACK, line, "cleaning up"])

    assert (verdict.outcome, verdict.cause) == (outcome, cause)
    assert verdict.reason


def test_the_cause_names_what_was_wrong() -> None:
    verdict = judge(1, ["Key 'lrr' is not in struct"])

    assert verdict.reason == "Unknown engine configuration key 'lrr'."


def test_an_unknown_failure_gives_its_last_error() -> None:
    verdict = judge(3, [*TRACEBACK, "ValueError: negative beta", "(TaskRunner pid=9) bye"])

    assert verdict == Verdict("failed", "ValueError: negative beta")


def test_a_silent_failure_gives_its_exit_code() -> None:
    assert judge(3, []).reason == "The training process exited with code 3."


def test_a_killed_process_is_a_crash() -> None:
    verdict = judge(-signal.SIGKILL, ["step 4"])

    assert (verdict.outcome, verdict.cause) == ("crashed", "killed")
    assert verdict.reason == "The training process was killed by SIGKILL (often out of memory)."


def test_a_process_killed_for_memory_is_told_apart() -> None:
    assert judge(-signal.SIGKILL, [], was_oom_kill=True).cause == "out_of_memory"


def test_a_run_that_solved_its_data_succeeds_and_says_so() -> None:
    verdict = judge(0, ["step 4", "PolicySolved: The policy solves nearly every prompt.", "cleaning up"])

    assert verdict == Verdict("succeeded", "The policy solves nearly every prompt.")


def test_giving_up_sampling_gives_the_shares() -> None:
    said = "SamplingExhausted: Dynamic sampling gave up: step 3 has sampled 2 batches: of 8 groups, 9 % wrong"

    verdict = judge(1, [said])

    assert verdict.cause == "sampling_exhausted"
    assert verdict.reason == said.removeprefix("SamplingExhausted: ")


@pytest.mark.parametrize(("exit_code", "outcome"), [(0, "succeeded"), (75, "stopped")])
def test_the_exit_code_decides_success(exit_code: int, outcome: str) -> None:
    assert judge(exit_code, ["CUDA out of memory"]).outcome == outcome


def test_a_run_that_was_ended_on_request_is_stopped() -> None:
    assert judge(-signal.SIGTERM, [], ended_for="stop").outcome == "stopped"


def test_a_run_that_was_ended_from_outside_is_a_crash() -> None:
    assert judge(-signal.SIGTERM, [], ended_for="signal").outcome == "crashed"


@pytest.mark.parametrize(
    "line",
    [
        "step:3 - actor/pg_loss:nan - actor/grad_norm:0.1",
        "INFO loading model from /models/a",
        "FutureWarning: torch.load with weights_only=False",
        "train_batch_size is 32",
    ],
)
def test_ordinary_lines_are_no_cause(line: str) -> None:
    assert not [known.code for known in KNOWN_CAUSES if known.pattern.search(line)]
