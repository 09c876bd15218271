"""Preference training with TRL: ``python -m trellis_train.engines.trl <spec.json>``.

With one GPU, or on one CPU slot, the trainer runs in this process; with more, this process
starts itself under torchrun, one process for each.
"""

import os
import subprocess
import sys
from pathlib import Path

from trellis_contracts.events import ProgressEvent
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, EXIT_SUCCEEDED, JobSpec

from trellis_train.hooks.checkpoints import find_step
from trellis_train.hooks.clock import now
from trellis_train.hooks.spool import ATTEMPT_DIR_VARIABLE, Spool, is_stop_requested

PRODUCER = "trainer"
#: torchrun makes every exit code but 0 its own, so the ranks leave this file when they were stopped.
STOPPED_FILE = "stopped"
RANK_VARIABLE = "RANK"


def main(arguments: list[str]) -> int:
    """Run the job of the spec file named in ``arguments``; the exit code of the process."""
    if len(arguments) != 1:
        print("usage: python -m trellis_train.engines.trl <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = JobSpec.model_validate_json(Path(arguments[0]).read_text())
    # Before TRL is imported: Hugging Face's libraries read the environment then.
    os.environ.update(spec.env)
    os.environ[ATTEMPT_DIR_VARIABLE] = spec.attempt_dir
    if RANK_VARIABLE in os.environ:
        return run_rank(spec)
    stopped = Path(spec.attempt_dir) / STOPPED_FILE
    stopped.unlink(missing_ok=True)
    if spec.gpus == 1:
        if spec.platform == "cuda":
            # transformers would spread one process over every GPU that it sees.
            os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        exit_code = run_rank(spec)
    else:
        exit_code = _run_under_torchrun(arguments[0], spec.gpus)
    return EXIT_STOPPED if exit_code == EXIT_SUCCEEDED and stopped.exists() else exit_code


def run_rank(spec: JobSpec) -> int:
    """Train in this process, which is one of the run's ranks."""
    is_first = os.environ.get(RANK_VARIABLE, "0") == "0"
    spool = Spool(spec.attempt_dir, PRODUCER) if is_first else None
    if spool is not None:
        spool.write(ProgressEvent(time=now(), phase="loading", step=find_step(spec.resume_from)))
    is_stopped = is_stop_requested() or _train(spec, spool)
    if is_stopped and is_first:
        (Path(spec.attempt_dir) / STOPPED_FILE).touch()
    return EXIT_SUCCEEDED


def _train(spec: JobSpec, spool: Spool | None) -> bool:
    """Train to the end or to a stop; whether it was a stop."""
    import torch

    from trellis_train.preference.run import run
    from trellis_train.preference.settings import make_settings, parse_overrides

    try:
        settings = make_settings(spec.recipe, parse_overrides(spec.engine_overrides))
        return run(settings, spool, spec.attempt_dir)
    finally:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _run_under_torchrun(spec_path: str, processes: int) -> int:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nnodes=1"]
    command += [f"--nproc-per-node={processes}", "-m", "trellis_train.engines.trl", spec_path]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - our own module


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
