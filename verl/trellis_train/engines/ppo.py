"""Reinforcement learning with verl's V1 trainers: ``python -m trellis_train.engines.ppo <spec.json>``.

verl's own ``main_ppo`` runs its task runner in a Ray actor, a second process that
imports everything again; here it runs in the driver. The trainer is verl's, with
our hooks mixed in.
"""

import os
import sys
from pathlib import Path
from typing import Any

from trellis_contracts.events import ProgressEvent
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, EXIT_SUCCEEDED, JobSpec

from trellis_train.compat import isolation, job, trainer_methods
from trellis_train.compat.applying import require_group
from trellis_train.engines.cluster import connect, job_environment
from trellis_train.engines.hydra_config import compose_config
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.resuming import check_resumable
from trellis_train.hooks.stop import StoppedByRequest
from trellis_train.platform.activation import assert_cpu_platform
from trellis_train.platform.layer import Layer, load_layer

PRODUCER = "trainer"


def main(arguments: list[str]) -> int:
    """Run the job of the spec file named in ``arguments``; the exit code of the process."""
    if len(arguments) != 1:
        print("usage: python -m trellis_train.engines.ppo <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = JobSpec.model_validate_json(Path(arguments[0]).read_text())
    if spec.resume_from is not None:
        check_resumable(Path(spec.resume_from))
    # First: it says which platform this is, and so whether there is a layer.
    os.environ.update(spec.env)
    # Before verl is imported: its plugins read the environment then.
    os.environ.update(job_environment(spec))
    layer = load_layer()
    # It imports on another core while this process does.
    layer.prepare()
    # Here and not in the run's processes, where it would end them one by one.
    require_group(isolation.GROUP, trainer_methods.GROUP)
    job.install()
    spool = Spool(spec.attempt_dir, PRODUCER)
    spool.write(ProgressEvent(time=now(), phase="loading", step=0))
    config = compose_config(spec)
    assert_cpu_platform()
    _check(config)
    trainer = _train(config, spec, spool, layer)
    return EXIT_STOPPED if trainer is None or trainer.is_stopping else EXIT_SUCCEEDED


def _check(config: Any) -> None:
    """Run verl's own checks, as its ``main`` does, and set the environment that determinism needs."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config
    from verl.utils.device import auto_set_device

    auto_set_device(config)
    validate_config(
        config=config,
        use_reference_policy=need_reference_policy(config),
        use_critic=need_critic(config),
    )
    if config.actor_rollout_ref.rollout.full_determinism:
        os.environ["VERL_FULL_DETERMINISM"] = "1"
        os.environ["VLLM_BATCH_INVARIANT"] = "1"
        os.environ["PYTHONHASHSEED"] = str(config.actor_rollout_ref.rollout.seed)


def _train(config: Any, spec: JobSpec, spool: Spool, layer: Layer) -> Any:
    """Train to the end or to a stop; the trainer, or None where it was stopped before it began."""
    import ray

    connect(config, spec, layer)
    try:
        # Before the trainer is imported: its server imports meanwhile on another core.
        layer.start_servers(config)
        runner = _make_runner(config, spec, spool, layer)
        layer.start_workers()
        try:
            runner.run(config)
        except StoppedByRequest:
            return None
        if not runner.trainer.is_stopping:
            runner.trainer.report_progress("finished", step=runner.trainer.total_training_steps)
        return runner.trainer
    finally:
        ray.shutdown()


def _make_runner(config: Any, spec: JobSpec, spool: Spool, layer: Layer) -> Any:
    """Create verl's task runner, with what we change in its trainer."""
    from verl.trainer.main_ppo import TaskRunnerV1
    from verl.trainer.ppo.v1 import trainer_base

    from trellis_train.compat import trainer
    from trellis_train.compat.applying import apply_now
    from trellis_train.hooks.agent_metrics import derive_agent_metrics
    from trellis_train.hooks.algorithms import correct_estimators, mixins_for
    from trellis_train.hooks.metrics import report_metrics
    from trellis_train.hooks.trainer import with_hooks
    from trellis_train.rollout.worker import AgentLoopManager

    report_metrics(spool, derive_agent_metrics if spec.agent else None)
    mode = config.trainer.v1.trainer_mode
    trainers = trainer_base.TRAINER_REGISTRY
    mixins = (*mixins_for(config), *_agent_mixins(spec))
    trainers[mode] = with_hooks(trainer_base.get_trainer_cls(mode), spool, mixins)
    correct_estimators(config)
    apply_now(trainer.GROUP)
    AgentLoopManager.layer = layer
    layer.change_driver()
    return TaskRunnerV1.__ray_metadata__.modified_class()


def _agent_mixins(spec: JobSpec) -> tuple[type[Any], ...]:
    """Return mixins for an agent's trainer: its metrics, and stopping by accuracy if requested."""
    from trellis_train.hooks.accuracy_stop import ending_by_accuracy
    from trellis_train.hooks.agent_metrics import MeasuresEpisodes

    if spec.agent is None:
        return ()
    if "patience" not in spec.params:
        return (MeasuresEpisodes,)
    target, patience = spec.params["target_accuracy"], int(spec.params["patience"])
    return (MeasuresEpisodes, ending_by_accuracy(target=target, patience=patience, params=spec.params))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
