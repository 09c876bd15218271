"""Which checkpoint a run of Link Search goes on from."""

import json
import shutil
from pathlib import Path

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.local_job import locate_checkpoints
from trellis_cli.resuming import ask, check_checkpoint, refuse_second_run, require_newest

RECIPE = "linksearch"
BEST_FILE, STATE_FILE = "best_checkpoint.json", "training_state.json"
_HINT = "Use --resume, --resume_best or --resume_from_checkpoint, or choose another folder."
_HUGGING_FACE = "actor/huggingface"
#: Where an adapter may lie: in a folder of our own form (``checkpoint-N``, ``final``), or in verl's.
_ADAPTERS = ("adapter_config.json", "actor/lora_adapter/adapter_config.json")


def choose_checkpoint(
    output: Path, *, resume: bool, resume_from: Path | None, resume_best: bool
) -> Path | None:
    """Choose the checkpoint to resume from; None for a new run, whose folder must have no checkpoints."""
    if sum([resume, resume_from is not None, resume_best]) > 1:
        message = "--resume, --resume_from_checkpoint and --resume_best are mutually exclusive"
        raise Problem(message, exit_code=ExitCode.USAGE)
    if resume_from is not None:
        return check_checkpoint(locate_state(resume_from), RECIPE)
    if resume_best:
        return check_checkpoint(_read_best(output), RECIPE)
    if resume:
        return check_checkpoint(require_newest(output), RECIPE)
    refuse_second_run(output, _HINT)
    return None


def locate_state(path: Path) -> Path:
    """Return the folder to resume from: ``path`` itself, or the one that a ``checkpoint-N`` folder names."""
    state = path / STATE_FILE
    if not state.is_file():
        return path
    try:
        return Path(json.loads(state.read_text())["checkpoint"])
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(f"{state} cannot be read: {error}", exit_code=ExitCode.USAGE) from None


def locate_model(path: str, *, scratch: Path) -> str:
    """Return a folder with the whole model for ``path``; ``checkpoint-N`` and ``final`` already are such.

    An adapter is folded into its base model, in ``scratch``.
    """
    folder = Path(path)
    if not folder.is_dir():
        return path
    for place in _ADAPTERS:
        if (folder / place).is_file():
            shutil.rmtree(scratch, ignore_errors=True)
            ask("trellis_train.export", str(folder), str(scratch))
            return str(scratch)
    return str(folder / _HUGGING_FACE) if (folder / _HUGGING_FACE).is_dir() else path


def _read_best(output: Path) -> Path:
    file = locate_checkpoints(output) / BEST_FILE
    try:
        return Path(json.loads(file.read_text())["path"])
    except OSError:
        message = f"{output} has no best checkpoint yet: none is known before the first evaluation"
        raise Problem(message, exit_code=ExitCode.USAGE) from None
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(f"{file} cannot be read: {error}", exit_code=ExitCode.USAGE) from None
