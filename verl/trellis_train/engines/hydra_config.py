"""verl's configuration, composed from its own Hydra schema and the overrides of a job spec."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trellis_contracts.spec import JobSpec
from trellis_recipes.hydra_text import text

from trellis_train.agents.wiring import loop_overrides

CONFIG_NAME = "ppo_trainer"
AGENT_LOOP_MANAGER = "actor_rollout_ref.rollout.agent.agent_loop_manager_class"
#: vLLM's CPU build asks for a worker process beside the engine's, to bind its threads. Without it a run
#: starts seconds sooner, the threads are not bound here anyhow, and it would spin for a second after each
#: answer while others need the core.
EXECUTOR = "distributed_executor_backend"
SINGLE_PROCESS = "vllm.v1.executor.uniproc_executor.UniProcExecutor"


def platform_overrides(spec: JobSpec) -> list[str]:
    """Return the overrides set by the platform after the job's own, such as checkpoint paths."""
    overrides = [f"trainer.default_local_dir={text(spec.checkpoint_dir)}"]
    if not any(AGENT_LOOP_MANAGER in override for override in spec.engine_overrides):
        overrides.append(f"++{AGENT_LOOP_MANAGER}=trellis_train.rollout.worker.AgentLoopManager")
    if spec.resume_from is None:
        # A first attempt never picks up what an earlier job left in the folder.
        return [*overrides, "trainer.resume_mode=disable"]
    return [
        *overrides,
        "trainer.resume_mode=resume_path",
        f"trainer.resume_from_path={text(spec.resume_from)}",
    ]


def compose_config(spec: JobSpec) -> Any:
    """Compose this reinforcement-learning job's configuration; also writes its agent loop's file."""
    overrides = [*spec.engine_overrides, *platform_overrides(spec), *loop_overrides(spec)]
    config = compose_schema(CONFIG_NAME, overrides)
    if spec.platform == "cpu":
        _sample_in_one_process(config.actor_rollout_ref.rollout)
    return config


def _sample_in_one_process(rollout: Any) -> None:
    """Choose the executor of rollout engines that are not split, unless the job names one."""
    from omegaconf import open_dict

    if count_rollout_slots(rollout) != 1:
        return
    with open_dict(rollout):
        settings = rollout.engine_kwargs.get("vllm") or {}
        rollout.engine_kwargs.vllm = {EXECUTOR: SINGLE_PROCESS, **settings}


def count_rollout_slots(rollout: Any) -> int:
    """Return over how many slots verl splits each rollout engine."""
    size: int = (
        rollout.tensor_model_parallel_size * rollout.data_parallel_size * rollout.pipeline_model_parallel_size
    )
    return size


def compose_schema(name: str, overrides: list[str]) -> Any:
    """Compose one of verl's schemas with overrides applied, as an OmegaConf ``DictConfig``."""
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(config_dir=str(_config_folder()), version_base=None):
        return compose(config_name=name, overrides=overrides)


def _config_folder() -> Path:
    """Return the ``trainer/config`` folder of the installed verl."""
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("verl is not installed")
    return Path(spec.submodule_search_locations[0], "trainer", "config")
