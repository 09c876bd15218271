"""Supervised fine-tuning with verl's SFT trainer: ``python -m trellis_train.engines.sft <spec.json>``."""

import os
import socket
import sys
from typing import Any

from trellis_contracts.events import ProgressEvent
from trellis_contracts.spec import JobSpec

from trellis_train.compat import other_methods
from trellis_train.compat.applying import require_group
from trellis_train.engines.hydra_config import compose_schema
from trellis_train.engines.ranks import RANK_VARIABLE, run_ranks
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool, is_stop_requested
from trellis_train.platform.activation import assert_cpu_platform
from trellis_train.platform.layer import load_layer

CONFIG_NAME = "sft_trainer_engine"


def main(arguments: list[str]) -> int:
    """Run the job of the spec file named in ``arguments``; the exit code of the process."""
    return run_ranks(arguments, "trellis_train.engines.sft", run_rank)


def run_rank(spec: JobSpec, spool: Spool | None) -> bool:
    """Train in this process, which is one of the run's ranks; whether it was stopped."""
    _forget_ray_driver()
    if RANK_VARIABLE not in os.environ:
        _become_only_rank()
    if spool is not None:
        spool.write(ProgressEvent(time=now(), phase="loading", step=0))
    config = compose_schema(CONFIG_NAME, spec.engine_overrides)
    assert_cpu_platform()
    require_group(other_methods.SFT)
    _heed_weights(config.data)
    return is_stop_requested() or _train(config, spool)


def _heed_weights(data: Any) -> None:
    """Have verl read conversations by a class that knows turns which are not learned."""
    if data.custom_cls.path is None:
        data.custom_cls.path = "pkg://trellis_train.data.weighed_dataset"
        data.custom_cls.name = "WeighedDataset"


def _forget_ray_driver() -> None:
    """Drop what Ray sets for a job's driver: verl would take this process for one of Ray's actors."""
    for name in list(os.environ):
        if name.startswith("RAY_EXPERIMENTAL_NOSET_"):
            del os.environ[name]


def _become_only_rank() -> None:
    """Set the variables that torchrun would set for one process, without importing everything again."""
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


def _train(config: Any, spool: Spool | None) -> bool:
    """Train to the end or to a stop; whether it was a stop."""
    from verl.utils.device import auto_set_device
    from verl.utils.distributed import destroy_global_process_group, initialize_global_process_group

    from trellis_train.engines.sft_trainer import ReportingSFTTrainer, perplexity_of, timing_of
    from trellis_train.hooks.metrics import report_metrics
    from trellis_train.hooks.timeline import PhaseTimes

    load_layer().change_models()
    auto_set_device(config)
    initialize_global_process_group()
    times = PhaseTimes()
    if spool is not None:
        report_metrics(spool, lambda values, _step: perplexity_of(values) | timing_of(times, values))
    trainer = ReportingSFTTrainer(config, spool, times)
    trainer.run()
    # Not after a failure: the other ranks would fail for it before this one has said why.
    destroy_global_process_group()
    return trainer.is_stopping


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
