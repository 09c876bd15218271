"""One process for each slot of a job: a single one is this process, several are started as torchrun does.

Ranks and the process that starts them share what an exit code cannot say through files of the attempt.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, EXIT_SUCCEEDED, JobSpec

from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE, Spool
from trellis_train.platform.activation import THREADS_VARIABLE, threads_of_slot

PRODUCER = "trainer"
#: Set by torchrun; without it, this process is the only one or the one that starts the others.
RANK_VARIABLE = "RANK"
#: Left by the first rank (number 0) when the run was stopped.
STOPPED_FILE = "stopped"
#: Left by the rank that failed first; the others fail in its wake, for want of its answers.
FAILED_FILE = "failed"
EXIT_RANK_FAILED = 1

#: Trains in this process, reporting to the spool (on the first rank; None elsewhere); whether it was stopped.
RunRank = Callable[[JobSpec, Spool | None], bool]


class RankDied(RuntimeError):
    """One of the run's processes was killed; the others cannot go on without it."""


def run_ranks(arguments: list[str], module: str, run_rank: RunRank) -> int:
    """Run the job of the spec file named in ``arguments``; the exit code of the process.

    ``module`` is the engine's own: each of several ranks is started with it, and comes here again.
    """
    if len(arguments) != 1:
        print(f"usage: python -m {module} <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = JobSpec.model_validate_json(Path(arguments[0]).read_text())
    # Before an engine's libraries are imported: they read the environment then.
    os.environ.update(spec.env)
    os.environ[ATTEMPT_DIR_VARIABLE] = spec.attempt_dir
    if RANK_VARIABLE in os.environ:
        return _run_one_of_several(spec, run_rank)
    if spec.gpus == 1:
        return EXIT_STOPPED if run_rank(spec, Spool(spec.attempt_dir, PRODUCER)) else EXIT_SUCCEEDED
    stopped, failed = (Path(spec.attempt_dir) / name for name in (STOPPED_FILE, FAILED_FILE))
    stopped.unlink(missing_ok=True)
    failed.unlink(missing_ok=True)
    exit_code = _launch(spec, [module, arguments[0]])
    return EXIT_STOPPED if exit_code == EXIT_SUCCEEDED and stopped.exists() else exit_code


def _run_one_of_several(spec: JobSpec, run_rank: RunRank) -> int:
    rank = os.environ[RANK_VARIABLE]
    spool = Spool(spec.attempt_dir, PRODUCER) if rank == "0" else None
    try:
        is_stopped = run_rank(spec, spool)
    except Exception as error:
        try:
            (Path(spec.attempt_dir) / FAILED_FILE).touch(exist_ok=False)
        except FileExistsError:
            # A lost connection, as a rule: told in full, it would hide the cause.
            print(f"Rank {rank} exits because another rank failed ({type(error).__name__}).", file=sys.stderr)
            return EXIT_RANK_FAILED
        raise
    if is_stopped and spool is not None:
        (Path(spec.attempt_dir) / STOPPED_FILE).touch()
    return EXIT_SUCCEEDED


def _launch(spec: JobSpec, command: list[str]) -> int:
    """Start the ranks and wait for them; when one fails, the others are ended."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    if spec.platform == "cpu":
        os.environ.setdefault(THREADS_VARIABLE, str(threads_of_slot(spec.gpus)))
    options = ["--standalone", "--nnodes=1", f"--nproc-per-node={spec.gpus}", "-m"]
    try:
        run(parse_args([*options, *command]))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        rank, first = error.get_first_failure()
        if first.exitcode < 0:
            name = signal.Signals(-first.exitcode).name
            raise RankDied(f"rank {rank} of {spec.gpus} was killed by {name}") from None
        return EXIT_RANK_FAILED
    return EXIT_SUCCEEDED
