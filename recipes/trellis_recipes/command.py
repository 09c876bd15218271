"""The command that runs a composition with bare verl, to copy and paste."""

import shlex
from collections.abc import Mapping, Sequence

from trellis_contracts.recipe import Engine


def replay_command(engine: Engine, overrides: Sequence[str], env: Mapping[str, str], *, gpus: int) -> str:
    """Environment, module and overrides, one to a line."""
    if engine is Engine.VERL_PPO:
        program = "python -m verl.trainer.main_ppo"
    else:
        program = f"torchrun --standalone --nnodes=1 --nproc-per-node={gpus} -m verl.trainer.sft_trainer"
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())]
    return " \\\n  ".join([*variables, program, *(shlex.quote(item) for item in overrides)])
