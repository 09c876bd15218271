"""What `trellis agent` is given: a model as a run left it, and rows by their place or by their name."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trellis_contracts.attempt import SPEC_FILE
from trellis_recipes.hub_models import fetch_model
from trellis_recipes.hub_names import MODELSCOPE, NoHubModel, is_hub_model

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err
from trellis_cli.resuming import find_newest
from trellis_cli.services.platform import python_command

#: Folder of `trellis agent generate` for rows that are given by name, and the variable that names another.
DATA_FOLDER, DATA_VARIABLE = Path("data/agent"), "TRELLIS_AGENT_DATA"
TOOLS_FILE = "agent_tools.jsonl"
_NAMED = re.compile(r"agent_(?:sft|benchmark|tools|retrieval)(?::(train|dev|test))?")
_MODELS = ("actor/huggingface", "huggingface")
_HUB_HINT = "check the name, the network and HF_TOKEN, set HF_ENDPOINT to a mirror, or name a folder"
_MODELSCOPE_HINT = "check the name, the network and MODELSCOPE_API_TOKEN, or name a folder"
_ADAPTERS = ("lora_adapter", "actor/lora_adapter")


@dataclass(frozen=True)
class NamedData:
    """A file of rows or a folder of generated data, and the split that was asked for."""

    path: Path
    split: str | None = None


def find_data(given: str) -> NamedData:
    """Find the rows at a path or under a name such as ``agent_sft:train``; raise ``Problem`` if missing."""
    path = Path(given).expanduser()
    if path.exists():
        return NamedData(path)
    named = _NAMED.fullmatch(given)
    if named is None:
        raise Problem(f"no such file or folder: {given}", exit_code=ExitCode.USAGE)
    folder = Path(os.environ.get(DATA_VARIABLE) or DATA_FOLDER)
    if not (folder / TOOLS_FILE).is_file():
        raise Problem(
            f"{given}: {folder} contains no generated data",
            hint=f"run trellis agent generate --output {folder}, or set {DATA_VARIABLE} to a folder",
            exit_code=ExitCode.USAGE,
        )
    return NamedData(folder, named[1])


def find_model(given: str, *, scratch: Path, has_weights: bool = True) -> str:
    """Find a folder with whole weights: ``given`` itself, or the newest checkpoint if it is a run.

    An adapter is folded into its base, in ``scratch``; a model of the hub is downloaded once. Without
    ``has_weights`` neither is done: of an adapter it is the base's folder, and of the hub's model the one of
    its configuration. Raises ``Problem`` where there is no model.
    """
    folder = Path(given).expanduser()
    state = find_newest(folder) or folder
    for place in _MODELS:
        if any((state / place).glob("*.safetensors")) and (state / place / "config.json").is_file():
            return str((state / place).resolve())
    has_adapter = (state / "adapter_config.json").is_file() or any(
        (state / each).is_dir() for each in _ADAPTERS
    )
    if has_adapter or (state / "actor" / "fsdp_config.json").is_file() or _is_sharded(state):
        return _merge(state, folder, scratch) if has_weights else _base_of(folder) or str(state.resolve())
    if (folder / "config.json").is_file():
        return str(folder.resolve())
    if not folder.exists() and is_hub_model(given):
        return fetch_hub_model(given, has_weights=has_weights)
    raise Problem(
        f"{given} is neither a model folder (with config.json) nor a run that produced a model",
        hint="name such a folder, or a model of a hub: owner/name or modelscope:owner/name[@revision]",
        exit_code=ExitCode.USAGE,
    )


def fetch_hub_model(name: str, *, has_weights: bool = True) -> str:
    """Download a model from the hub unless it is cached; return its folder. Raise ``Problem`` on failure."""
    err.print(f"looking for {name} in the hub's cache and on the hub", markup=False)
    try:
        return fetch_model(name, has_weights=has_weights)
    except NoHubModel as error:
        raise Problem(
            f"{name} is no folder here, and the hub does not give it: {error}",
            hint=_MODELSCOPE_HINT if name.startswith(MODELSCOPE) else _HUB_HINT,
            exit_code=ExitCode.USAGE,
        ) from error
    except ValueError as error:
        raise Problem(str(error), exit_code=ExitCode.USAGE) from error


def _is_sharded(state: Path) -> bool:
    return (state / "fsdp_config.json").is_file()


def _merge(state: Path, run: Path, scratch: Path) -> str:
    err.print(f"merging the adapter of {state} into its base", markup=False)
    shutil.rmtree(scratch, ignore_errors=True)
    base = _base_of(run)
    command = python_command(
        "-m", "trellis_train.export", str(state), str(scratch), *(["--base", base] if base else [])
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own module
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["the checkpoint is not usable"])[-1]
        raise Problem(reason, exit_code=ExitCode.USAGE)
    return str(scratch.resolve())


def _base_of(run: Path) -> str | None:
    """Return the model path that a run's newest attempt started from; None if the folder is not a run."""
    specs = sorted(run.glob(f"attempt-*/{SPEC_FILE}"), key=lambda each: each.stat().st_mtime)
    return str(json.loads(specs[-1].read_text())["model"]["path"]) if specs else None
