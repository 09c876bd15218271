"""The engine settings that are known only when an attempt is launched; all others are decided at submission.

They say where files lie (the attempt's folder, the data root), what the attempt continues from, and how the
job's GPUs are spread over the nodes that there are. No person can change them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import VALIDATION_FILE
from trellis_contracts.recipe import Engine

from trellis_recipes.placement import Spread, find_spread
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import LaunchPart
from trellis_recipes.trl_schema import TRAIN_FILE_KEY, VALIDATION_FILE_KEY


def launch_settings(
    engine: Engine, part: LaunchPart, *, gpus: int, parameters: Mapping[str, Value]
) -> dict[str, Any]:
    """Return the settings of the launch part by dotted key; they apply after all others."""
    validation = validation_file(part, parameters)
    if engine is Engine.TRL:
        return {
            "model_name_or_path": part.model_path,
            TRAIN_FILE_KEY: part.train_path,
            VALIDATION_FILE_KEY: validation,
            "output_dir": part.checkpoint_dir,
            "resume_from_checkpoint": part.resume_from,
            # Measured once: a resumed run has its first point already.
            "eval_on_start": (
                validation is not None and bool(parameters["validate_before"]) and part.resume_from is None
            ),
        }
    if engine is Engine.RETRIEVAL:
        return {
            "model_path": part.model_path,
            "train_file": part.train_path,
            "validation_file": validation,
            "output_dir": part.checkpoint_dir,
            "resume_from": part.resume_from,
        }
    spread = _spread_of(part, gpus)
    settings: dict[str, Any] = {
        "data.train_files": part.train_path,
        "data.val_files": validation,
        "trainer.default_local_dir": part.checkpoint_dir,
        "trainer.n_gpus_per_node": spread.gpus_per_node,
        "trainer.nnodes": spread.nodes,
        "trainer.resume_from_path": part.resume_from,
        "trainer.resume_mode": "resume_path" if part.resume_from else "disable",
    }
    if engine is not Engine.VERL_PPO:
        return {"model.path": part.model_path, **settings}
    return {
        "actor_rollout_ref.model.path": part.model_path,
        # A critic, where there is one, starts from the policy's own weights.
        "critic.model.path": part.model_path,
        **settings,
        # The RL trainer always opens a validation file.
        "data.val_files": validation or part.train_path,
    }


def validation_file(part: LaunchPart, parameters: Mapping[str, Value]) -> str | None:
    """Return the validation file: the given one, else the rows held out of the training file."""
    if part.validation_path is not None:
        return part.validation_path
    if not parameters.get("validation_rows"):
        return None
    return str(Path(part.train_path).with_name(VALIDATION_FILE))


def _spread_of(part: LaunchPart, gpus: int) -> Spread:
    """Spread the job's GPUs over the nodes; if they do not fit, use one, which ``check_nodes`` refuses."""
    found = None if part.node_gpus is None else find_spread(gpus, part.node_gpus)
    return found or Spread(1, gpus)
