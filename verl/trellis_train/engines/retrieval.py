"""Training of an encoder that finds tools: ``python -m trellis_train.engines.retrieval <spec.json>``."""

import sys

from trellis_contracts.events import ProgressEvent
from trellis_contracts.spec import JobSpec

from trellis_train.engines.ranks import run_ranks
from trellis_train.hooks.checkpoints import find_step
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool, is_stop_requested


def main(arguments: list[str]) -> int:
    """Run the job of the spec file named in ``arguments``; the exit code of the process."""
    return run_ranks(arguments, "trellis_train.engines.retrieval", run_rank)


def run_rank(spec: JobSpec, spool: Spool | None) -> bool:
    """Train in this process, the only one; whether it was stopped."""
    if spool is not None:
        spool.write(ProgressEvent(time=now(), phase="loading", step=find_step(spec.resume_from)))
    if is_stop_requested(spec.attempt_dir):
        return True
    # Imported here: both bring torch, which reads the environment that the job sets.
    from trellis_train.agents.tooluse.retrieval.run import RetrievalRun, RunSettings
    from trellis_train.preference.settings import parse_overrides

    settings = RunSettings.from_values(parse_overrides(spec.engine_overrides))
    return RetrievalRun(settings, spool, spec.attempt_dir).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
