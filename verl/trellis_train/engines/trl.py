"""Preference training with TRL: ``python -m trellis_train.engines.trl <spec.json>``."""

import os
import sys

from trellis_contracts.events import ProgressEvent
from trellis_contracts.spec import JobSpec

from trellis_train.compat import other_methods
from trellis_train.compat.applying import require_group
from trellis_train.engines.ranks import RANK_VARIABLE, run_ranks
from trellis_train.hooks.checkpoints import find_step
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool, is_stop_requested


def main(arguments: list[str]) -> int:
    """Run the job of the spec file named in ``arguments``; the exit code of the process."""
    return run_ranks(arguments, "trellis_train.engines.trl", run_rank)


def run_rank(spec: JobSpec, spool: Spool | None) -> bool:
    """Train in this process, which is one of the run's ranks; whether it was stopped."""
    if RANK_VARIABLE not in os.environ and spec.platform == "cuda":
        # transformers would spread one process over every GPU that it sees.
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    if spool is not None:
        spool.write(ProgressEvent(time=now(), phase="loading", step=find_step(spec.resume_from)))
    return is_stop_requested() or _train(spec, spool)


def _train(spec: JobSpec, spool: Spool | None) -> bool:
    """Train to the end or to a stop; whether it was a stop."""
    require_group(other_methods.PREFERENCE)
    import torch

    from trellis_train.preference.run import run
    from trellis_train.preference.settings import make_settings, parse_overrides

    settings = make_settings(spec.recipe, parse_overrides(spec.engine_overrides))
    is_stopped = run(settings, spool, spec.attempt_dir)
    # Not after a failure: the other ranks would fail for it before this one has said why.
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return is_stopped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
