"""A tiny GRPO job: a model with random weights, one-digit sums, a reward function."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.engine_runs import outside_clusters
from trellis_testing.processes import list_attempt, read_stacks

REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    exact = solution_str.strip() == ground_truth
    return {"score": float(exact), "exact": float(exact)}
"""
A = "actor_rollout_ref"
OVERRIDES = [
    "algorithm.adv_estimator=grpo",
    "data.train_batch_size=4",
    "data.max_prompt_length=64",
    "data.max_response_length=8",
    "data.dataloader_num_workers=0",
    f"{A}.model.use_remove_padding=False",
    f"+{A}.model.override_config.attn_implementation=sdpa",
    f"{A}.actor.strategy=fsdp2",
    f"{A}.actor.ppo_mini_batch_size=4",
    f"{A}.actor.ppo_micro_batch_size_per_gpu=8",
    f"{A}.actor.use_kl_loss=False",
    f"{A}.actor.fsdp_config.model_dtype=fp32",
    f"{A}.actor.use_torch_compile=False",
    f"{A}.actor.checkpoint.save_contents=[model,optimizer,extra,hf_model]",
    f"{A}.rollout.name=vllm",
    f"{A}.rollout.n=2",
    f"{A}.rollout.tensor_model_parallel_size=1",
    f"{A}.rollout.dtype=float32",
    f"{A}.rollout.enforce_eager=True",
    f"{A}.rollout.free_cache_engine=False",
    f"+{A}.rollout.enable_sleep_mode=False",
    f"{A}.rollout.max_model_len=96",
    f"{A}.rollout.log_prob_micro_batch_size_per_gpu=8",
    f"{A}.rollout.agent.num_workers=1",
    f"{A}.rollout.checkpoint_engine.update_weights_bucket_megabytes=64",
    "reward.custom_reward_function.name=compute_score",
    "reward.num_workers=1",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    "trainer.device=cpu",
    "trainer.n_gpus_per_node=1",
    "trainer.nnodes=1",
    "trainer.logger=[console]",
    "trainer.save_freq=-1",
]
ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass
class Run:
    """One attempt of a job, as the engine runs it."""

    folder: Path
    attempt: int
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def attempt_dir(self) -> Path:
        return self.folder / f"attempt-{self.attempt}"

    @property
    def log(self) -> str:
        return (self.attempt_dir / "log").read_text(errors="replace")

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines: list[bytes] = []
        for file in sorted((self.attempt_dir / "events").glob("*.jsonl")):
            lines += file.read_bytes().splitlines()
        return [event for line in lines if (event := json.loads(line))["kind"] == kind]

    def wait_for(self, is_reached: Callable[[], bool], timeout_s: float = 480) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_reached():
            assert self.process.poll() is None, self.log[-4000:]
            assert time.monotonic() < deadline, f"{self.log[-4000:]}\n{read_stacks(self.attempt_dir)}"
            time.sleep(0.2)

    def processes(self) -> list[int]:
        """Every live process of this attempt."""
        return [pid for pid in list_attempt(self.attempt_dir) if pid != os.getpid()]


@pytest.fixture(scope="module")
def job_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from trellis_train.starter.model import write_model

    folder = tmp_path_factory.mktemp("job")
    write_model(folder / "model", 0)
    rows = [
        {
            "data_source": "addition",
            "prompt": [{"role": "user", "content": f"{number % 10}+{number // 10}="}],
            "reward_model": {"style": "rule", "ground_truth": str(number % 10 + number // 10)},
            "extra_info": {"index": number},
        }
        for number in range(40)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")
    pq.write_table(pa.Table.from_pylist(rows[:4]), folder / "validation.parquet")
    (folder / "reward.py").write_text(REWARD)
    return folder


@pytest.fixture(scope="module")
def start_run(job_folder: Path) -> Iterator[Callable[..., Run]]:
    """Start an attempt of the job; what is left of it is ended with the tests."""
    runs: list[Run] = []

    def start(
        *overrides: str,
        attempt: int = 1,
        resume_from: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        attempt_dir = job_folder / f"attempt-{attempt}"
        attempt_dir.mkdir()
        spec = {
            "job_id": "job_test",
            "attempt": attempt,
            "name": "test",
            "recipe": "grpo",
            "engine": "verl-ppo",
            "platform": "cpu",
            "gpus": 1,
            "seed": 0,
            "params": {},
            "engine_overrides": [
                *OVERRIDES,
                f"data.train_files={job_folder}/train.parquet",
                f"data.val_files={job_folder}/validation.parquet",
                f"{A}.model.path={job_folder}/model",
                f"reward.custom_reward_function.path={job_folder}/reward.py",
                *overrides,
            ],
            "env": ENVIRONMENT,
            "model": {"model_id": "m", "path": str(job_folder / "model")},
            "row_format": "verl-rl",
            "train_data": {
                "dataset_id": "d",
                "paths": [str(job_folder / "train.parquet")],
                "format": "verl-rl",
                "sha256": "0",
                "row_count": 40,
            },
            "attempt_dir": str(attempt_dir),
            "checkpoint_dir": str(job_folder / "checkpoints"),
            "resume_from": resume_from,
            "ingest_url": "http://127.0.0.1:1",
        }
        (attempt_dir / "spec.json").write_text(json.dumps(spec))
        with (attempt_dir / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trellis_train.engines.ppo", str(attempt_dir / "spec.json")],
                env=outside_clusters() | {"TRELLIS_ATTEMPT_DIR": str(attempt_dir)} | dict(environment or {}),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        runs.append(Run(job_folder, attempt, process))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.wait()
