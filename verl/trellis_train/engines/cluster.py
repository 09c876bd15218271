"""Attaching a trainer to the platform's Ray cluster, or starting one that ends with it."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any, cast

from trellis_contracts.attempt import ISOLATION_FILE
from trellis_contracts.isolation import OFF, ON, STATE_VARIABLE, isolated_command
from trellis_contracts.spec import NICENESS_VARIABLE, JobSpec
from trellis_recipes.placement import MIN_HEAD_CPUS, process_demand

from trellis_train.compat import isolation, job
from trellis_train.compat.checking import ACCEPT_VARIABLE
from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE
from trellis_train.platform.activation import THREADS_VARIABLE, is_cpu_platform, threads_of_slot
from trellis_train.platform.layer import SWITCH_VARIABLE, Layer, load_layer

ADDRESS_VARIABLE = "RAY_ADDRESS"
#: Of the driver, which the processes of its run have to follow.
_FOLLOWED = (SWITCH_VARIABLE, ACCEPT_VARIABLE)
#: Ray's own nice value of workers: a driver that asks for resources has 0, which its workers would inherit.
_WORKER_NICENESS = "15"


def job_environment(spec: JobSpec) -> dict[str, str]:
    """Return the environment variables of all processes of the job, including the driver."""
    modules = [name for name in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(",") if name]
    modules += [job.MODULE_NAME] if job.MODULE_NAME not in modules else []
    return {
        **(_cpu_threads(spec.gpus) if spec.platform == "cpu" else {}),
        **{name: os.environ[name] for name in _FOLLOWED if name in os.environ},
        **spec.env,
        ATTEMPT_DIR_VARIABLE: spec.attempt_dir,
        isolation.RUN_VARIABLE: f"{spec.job_id}-{spec.attempt}",
        "VERL_USE_EXTERNAL_MODULES": ",".join(modules),
        "TRANSFER_QUEUE_ENABLE": "1",
        # Its default of 8 logs a warning at every operation on a machine with fewer cores.
        "TQ_NUM_THREADS": str(min(8, os.cpu_count() or 1)),
        # Ray merges this environment over that of the Ray job which started us.
        "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1",
    }


def worker_priority() -> dict[str, str]:
    """Return the variable with the nice value of Ray workers: what the run is told, or Ray's own."""
    return {"RAY_worker_niceness": os.environ.get(NICENESS_VARIABLE, _WORKER_NICENESS)}


def isolated_interpreter(spec: JobSpec) -> str | None:
    """Return the shell command with which Ray starts processes in the same isolation; None without it.

    Ray's node starts them, not this process, so that they begin outside its namespace. On this machine they
    share it, on others each has one of its own.
    """
    rules = Path(spec.attempt_dir) / ISOLATION_FILE
    if os.environ.get(STATE_VARIABLE, OFF) == OFF or not rules.exists():
        return None
    beside = os.getpid() if os.environ[STATE_VARIABLE] == ON else None
    command = isolated_command(sys.executable, rules, [sys.executable], beside=beside)
    return shlex.join(command)


def _cpu_threads(slots: int) -> dict[str, str]:
    """Give each process all cores, since they take turns on them; Ray gives an actor one thread."""
    waits = {name: os.environ.get(name, value) for name, value in load_layer().environment().items()}
    return {THREADS_VARIABLE: str(threads_of_slot(slots)), **waits}


def connect(config: Any, spec: JobSpec, layer: Layer) -> None:
    """Join the cluster at ``RAY_ADDRESS``; without one, start a local cluster with the job's slots.

    The job's processes are started by the interpreter of ``layer``, if it has one.
    """
    import ray
    from omegaconf import OmegaConf
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    runtime_env = get_ppo_ray_runtime_env(config)
    for name, value in runtime_env["env_vars"].items():
        os.environ.setdefault(name, value)  # the trainer runs here, not in a Ray worker
    runtime_env["env_vars"].update({**worker_priority(), **job_environment(spec)})
    options = cast("dict[str, Any]", OmegaConf.to_container(config.ray_kwargs.ray_init, resolve=True))
    asked = options.pop("runtime_env", None) or {}
    runtime_env = {**runtime_env, **asked, "env_vars": runtime_env["env_vars"] | asked.get("env_vars", {})}
    if (interpreter := layer.interpreter() or isolated_interpreter(spec)) is not None:
        runtime_env["py_executable"] = interpreter
    if os.environ.get(ADDRESS_VARIABLE):
        options = {"address": os.environ[ADDRESS_VARIABLE]}
    else:
        options["include_dashboard"] = False
        if options.get("num_cpus") is None:
            tree = cast("dict[str, Any]", OmegaConf.to_container(config))
            demand = process_demand(spec.engine, spec.gpus, tree)
            options["num_cpus"] = max(MIN_HEAD_CPUS, demand.cpus)
        if is_cpu_platform():
            options.setdefault("num_gpus", spec.gpus)
    ray.init(**options, runtime_env=runtime_env)
