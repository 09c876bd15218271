"""Looks into the folder of an adapter, as PEFT writes it, without loading it."""

from pathlib import Path

from trellis_api.models.fingerprint import fingerprint
from trellis_api.models.inspection import (
    ModelFacts,
    UnusableFolder,
    list_files,
    read_json,
    require_usable_templates,
)
from trellis_api.models.safetensors_header import DamagedWeights, read_header

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"


def inspect_adapter(folder: Path, *, root: Path) -> ModelFacts:
    """Return the adapter's facts; ``UnusableFolder`` if a part of it is missing."""
    if not folder.is_dir():
        raise UnusableFolder("folder_missing", "The export's folder is gone.")
    try:
        files = list(list_files(folder, root=root.resolve()))
        names = {path.relative_to(folder).as_posix() for path in files}
        for name in (CONFIG_FILE, WEIGHTS_FILE):
            if name not in names:
                raise UnusableFolder("weights_missing", f"The adapter is missing {name}.")
        config = read_json(folder / CONFIG_FILE, "config_invalid")
        weights = read_header(folder / WEIGHTS_FILE)
        sha256, sha256_kind = fingerprint(folder, files)
        size_bytes = sum(path.stat().st_size for path in files)
    except DamagedWeights as error:
        raise UnusableFolder("weights_damaged", f"The weights are corrupted: {error}.") from error
    except OSError as error:
        raise UnusableFolder(
            "folder_unreadable", f"A file of the folder cannot be read: {error.strerror}."
        ) from error
    require_usable_templates(folder)
    counts = weights.parameters_by_dtype
    if not counts:
        raise UnusableFolder("weights_missing", "The adapter contains no parameters.")
    return ModelFacts(
        architecture=str(config.get("peft_type") or "adapter")[:120],
        parameter_count=sum(counts.values()),
        dtype=max(counts, key=lambda dtype: counts[dtype]),
        context_length=None,
        vocabulary_size=None,
        has_chat_template="chat_template.jinja" in names,
        size_bytes=size_bytes,
        sha256=sha256,
        sha256_kind=sha256_kind,
        warnings=[
            {
                "code": "adapter_only",
                "message": "An adapter needs its base model; jobs can't start from it alone.",
            }
        ],
    )
