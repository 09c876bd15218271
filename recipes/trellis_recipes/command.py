"""The command that runs a composition without the platform, to copy and paste."""

import shlex
from collections.abc import Mapping, Sequence

from trellis_contracts.recipe import Engine


def replay_command(
    engine: Engine, overrides: Sequence[str], env: Mapping[str, str], *, gpus: int, recipe: str
) -> str:
    """Return the command with environment, module and overrides, one to a line."""
    torchrun = f"torchrun --standalone --nnodes=1 --nproc-per-node={gpus}"
    if engine is Engine.VERL_PPO:
        program = "python -m verl.trainer.main_ppo"
    elif engine is Engine.TRL:
        # TRL's own commands cover some of its trainers only.
        program = f"{'python' if gpus == 1 else torchrun} -m trellis_train.preference {recipe}"
    elif engine is Engine.RETRIEVAL:
        program = "python -m trellis_train.agents.tooluse.retrieval"
    else:
        program = f"{torchrun} -m verl.trainer.sft_trainer"
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())]
    return " \\\n  ".join([*variables, program, *(shlex.quote(item) for item in overrides)])
