"""Supervised fine-tuning with verl's SFT trainer: ``python -m trellis_train.engines.sft <spec.json>``.

With one GPU the trainer runs in this process, which saves the start of torchrun and a
second import of everything; with more, this process starts itself under torchrun.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from trellis_contracts.events import ProgressEvent
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, EXIT_SUCCEEDED, JobSpec

from trellis_train.engines.hydra_config import compose_schema
from trellis_train.hooks.clock import now
from trellis_train.hooks.spool import ATTEMPT_DIR_VARIABLE, Spool, is_stop_requested
from trellis_train.platform.activation import assert_cpu_platform

PRODUCER = "trainer"
CONFIG_NAME = "sft_trainer_engine"
#: torchrun makes every exit code but 0 its own, so the ranks leave this file when they were stopped.
STOPPED_FILE = "stopped"
RANK_VARIABLE = "RANK"


def main(arguments: list[str]) -> int:
    """Run the job of the spec file named in ``arguments``; the exit code of the process."""
    if len(arguments) != 1:
        print("usage: python -m trellis_train.engines.sft <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = JobSpec.model_validate_json(Path(arguments[0]).read_text())
    # Before verl is imported: its plugins read the environment then.
    os.environ.update(spec.env)
    os.environ[ATTEMPT_DIR_VARIABLE] = spec.attempt_dir
    _forget_ray_driver()
    if RANK_VARIABLE in os.environ:
        return _run_rank(spec)
    stopped = Path(spec.attempt_dir) / STOPPED_FILE
    stopped.unlink(missing_ok=True)
    if spec.gpus == 1:
        _become_only_rank()
        exit_code = _run_rank(spec)
    else:
        exit_code = _run_under_torchrun(arguments[0], spec.gpus)
    return EXIT_STOPPED if exit_code == EXIT_SUCCEEDED and stopped.exists() else exit_code


def _forget_ray_driver() -> None:
    """Drop what Ray sets for a job's driver: verl would take this process for one of Ray's actors."""
    for name in list(os.environ):
        if name.startswith("RAY_EXPERIMENTAL_NOSET_"):
            del os.environ[name]


def _run_under_torchrun(spec_path: str, processes: int) -> int:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nnodes=1"]
    command += [f"--nproc-per-node={processes}", "-m", "trellis_train.engines.sft", spec_path]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - our own module


def _become_only_rank() -> None:
    """What torchrun would set for a single process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(
        RANK="0",
        LOCAL_RANK="0",
        WORLD_SIZE="1",
        LOCAL_WORLD_SIZE="1",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )


def _run_rank(spec: JobSpec) -> int:
    """Train in this process, which is one of the run's ranks."""
    is_first = os.environ[RANK_VARIABLE] == "0"
    spool = Spool(spec.attempt_dir, PRODUCER) if is_first else None
    if spool is not None:
        spool.write(ProgressEvent(time=now(), phase="loading", step=0))
    config = compose_schema(CONFIG_NAME, spec.engine_overrides)
    assert_cpu_platform()
    is_stopped = is_stop_requested() or _train(config, spool)
    if is_stopped and is_first:
        (Path(spec.attempt_dir) / STOPPED_FILE).touch()
    return EXIT_SUCCEEDED


def _train(config: Any, spool: Spool | None) -> bool:
    """Train to the end or to a stop; whether it was a stop."""
    from verl.utils.device import auto_set_device
    from verl.utils.distributed import destroy_global_process_group, initialize_global_process_group

    from trellis_train.engines.sft_trainer import ReportingSFTTrainer, perplexity_of
    from trellis_train.hooks.metrics import report_metrics

    auto_set_device(config)
    initialize_global_process_group()
    try:
        if spool is not None:
            report_metrics(spool, perplexity_of)
        trainer = ReportingSFTTrainer(config, spool)
        trainer.run()
        return trainer.is_stopping
    finally:
        destroy_global_process_group()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
