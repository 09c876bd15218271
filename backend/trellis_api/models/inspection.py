"""Looks into a model folder without loading it: configuration, tokenizer, weights, chat template."""

import json
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trellis_api.models import chat_templates
from trellis_api.models.chat_templates import MAX_TEMPLATE_BYTES, Refusal, RunawayTemplate, find_problem
from trellis_api.models.fingerprint import fingerprint
from trellis_api.models.safetensors_header import DamagedWeights, read_header

_MAX_FILES = 10_000
_MAX_JSON_BYTES = 64 * 1024**2
#: Any of these sets is a complete tokenizer.
_TOKENIZERS = (
    {"tokenizer.json"},
    {"tokenizer.model"},
    {"vocab.json", "merges.txt"},
    {"vocab.txt"},
    {"tiktoken.model"},
)
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx")
_INDEX = "model.safetensors.index.json"
GGUF_SUFFIX = ".gguf"
_TEMPLATE_FILE = "chat_template.jinja"
#: With templates in an entry of their own.
_TEMPLATE_CONFIGS = ("chat_template.json", "tokenizer_config.json")
#: Where transformers looks for those with a name.
_TEMPLATE_FOLDER = "additional_chat_templates"
_MAX_TEMPLATES = 16
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


class UnusableFolder(Exception):
    """The folder cannot be trained from."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class OutsideRoot(Exception):
    """A path, or a link behind it, leads out of the data root."""


@dataclass
class ModelFacts:
    """What the folder says of itself."""

    architecture: str | None
    parameter_count: int
    dtype: str
    context_length: int | None
    vocabulary_size: int | None
    has_chat_template: bool
    size_bytes: int
    sha256: str
    sha256_kind: Literal["content", "sampled"]
    warnings: list[dict[str, str]] = field(default_factory=list)


def resolve_folder(root: Path, relative: str) -> Path:
    """Return the folder that a client named, with links resolved; refuses everything outside ``root``."""
    root = root.resolve()
    if Path(relative).is_absolute():
        raise OutsideRoot(f"The path '{relative}' is absolute; give it relative to the data root.")
    try:
        folder = (root / relative).resolve()
        is_inside = folder.is_relative_to(root)
        is_folder = is_inside and folder.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise UnusableFolder("folder_missing", f"The path '{relative[:200]}' can't be resolved.") from error
    if not is_inside:
        raise OutsideRoot(f"The path '{relative}' points outside the data root.")
    if not is_folder:
        raise UnusableFolder("folder_missing", f"Folder '{relative}' not found in the data root.")
    return folder


def find_gguf(root: Path, relative: str) -> Path | None:
    """Return the GGUF file that a client named, itself or by its folder; None if a folder holds none.

    A folder with safetensors is taken as it is. Raises ``OutsideRoot``, and ``UnusableFolder`` for a
    folder with several GGUF files.
    """
    if relative.endswith(GGUF_SUFFIX):
        folder = resolve_folder(root, Path(relative).parent.as_posix())
        file = (folder / Path(relative).name).resolve()
        if not file.is_relative_to(root.resolve()):
            raise OutsideRoot(f"The path '{relative}' points outside the data root.")
        if not file.is_file():
            raise UnusableFolder("file_missing", f"File '{relative}' not found in the data root.")
        return file
    folder = resolve_folder(root, relative)
    names = {path.name for path in folder.iterdir()}
    found = sorted(name for name in names if name.endswith(GGUF_SUFFIX))
    if not found or "config.json" in names:
        return None
    if len(found) > 1:
        raise UnusableFolder(
            "several_gguf_files",
            f"The folder contains {len(found)} GGUF files. Specify one, e.g. '{found[0]}'.",
        )
    return folder / found[0]


def inspect_folder(folder: Path, *, root: Path) -> ModelFacts:
    """Check the folder and collect its facts. Raises UnusableFolder and OutsideRoot."""
    try:
        return _inspect(folder, root.resolve())
    except OSError as error:
        message = f"A file of the folder cannot be read: {error.strerror}."
        raise UnusableFolder("folder_unreadable", message) from error


def _inspect(folder: Path, root: Path) -> ModelFacts:
    files = list(list_files(folder, root=root))
    names = {path.relative_to(folder).as_posix() for path in files}
    if "config.json" not in names:
        hint = (
            " It is an adapter; merge it into its base model first." if "adapter_config.json" in names else ""
        )
        raise UnusableFolder("config_missing", f"The folder has no config.json.{hint}")
    config = read_json(folder / "config.json", "config_invalid")
    architecture = _architecture(config)
    if not any(tokenizer <= names for tokenizer in _TOKENIZERS):
        raise UnusableFolder(
            "tokenizer_missing",
            "The folder has no tokenizer (tokenizer.json, tokenizer.model or a vocabulary).",
        )
    parameters = _count_parameters(folder, names)
    templates = _read_templates(folder, names)
    has_chat_template = bool(templates)
    templates = _read_all_templates(folder, names)
    sha256, sha256_kind = fingerprint(folder, files)
    return ModelFacts(
        architecture=architecture,
        parameter_count=sum(parameters.values()),
        dtype=max(parameters, key=lambda dtype: parameters[dtype]),
        context_length=_number(config, *_CONTEXT_KEYS),
        vocabulary_size=_number(config, "vocab_size"),
        has_chat_template=has_chat_template,
        size_bytes=sum(path.stat().st_size for path in files),
        sha256=sha256,
        sha256_kind=sha256_kind,
        warnings=_collect_warnings(config, templates, names),
    )


def list_files(folder: Path, *, root: Path) -> Iterator[Path]:
    """Yield the regular files of the folder, without hidden ones; refuses a link out of the root."""
    root = root.resolve()
    pending = [folder]
    count = 0
    while pending:
        for path in sorted(pending.pop().iterdir()):
            if path.name.startswith("."):
                continue
            count += 1
            if count > _MAX_FILES:
                raise UnusableFolder("too_many_files", f"The folder has more than {_MAX_FILES} files.")
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise OutsideRoot(f"The link '{path.relative_to(folder)}' leads out of the data root.")
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                if path.is_symlink():
                    raise UnusableFolder(
                        "linked_folder", f"'{path.relative_to(folder)}' is a link to a folder."
                    )
                pending.append(path)
            elif stat.S_ISREG(mode):
                yield path
            else:
                raise UnusableFolder("special_file", f"'{path.relative_to(folder)}' is not a regular file.")


def read_json(path: Path, code: str) -> dict[str, Any]:
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise UnusableFolder(code, f"{path.name} is too large.")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UnusableFolder(code, f"{path.name} is not valid JSON.") from error
    if not isinstance(value, dict):
        raise UnusableFolder(code, f"{path.name} is not a JSON object.")
    return value


def _architecture(config: dict[str, Any]) -> str:
    architectures = config.get("architectures")
    named = (
        architectures[0] if isinstance(architectures, list) and architectures else config.get("model_type")
    )
    if not isinstance(named, str) or not named:
        raise UnusableFolder("config_invalid", "config.json contains neither architectures nor model_type.")
    return named[:120]


def _number(config: dict[str, Any], *keys: str) -> int | None:
    """Return the first of the keys with a valid number, at the top or in a multimodal model's text part."""
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        for key in keys:
            value = part.get(key)
            if type(value) is int and 0 < value < 2**62:
                return value
    return None


def _count_parameters(folder: Path, names: set[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    tensors: set[str] = set()
    shards = _weight_files(folder, names)
    for name in shards:
        try:
            weights = read_header(folder / name)
        except DamagedWeights as error:
            raise UnusableFolder("weights_damaged", f"The weights are corrupted: {error}.") from error
        if repeated := tensors & weights.tensor_names:
            raise UnusableFolder("weights_damaged", f"Two files contain the tensor '{min(repeated)[:120]}'.")
        tensors |= weights.tensor_names
        for dtype, count in weights.parameters_by_dtype.items():
            counts[dtype] = counts.get(dtype, 0) + count
    if not sum(counts.values()):
        raise UnusableFolder("weights_missing", "The weight files contain no parameters.")
    return counts


def _weight_files(folder: Path, names: set[str]) -> list[str]:
    if _INDEX in names:
        mapping = read_json(folder / _INDEX, "weights_damaged").get("weight_map")
        shards = sorted({str(shard) for shard in mapping.values()}) if isinstance(mapping, dict) else []
        missing = [shard for shard in shards if shard not in names]
        if missing or not shards:
            what = f"lists {missing[0][:120]}, which is not there" if missing else "lists no files"
            raise UnusableFolder("weights_missing", f"{_INDEX} {what}.")
        return shards
    if "model.safetensors" in names:
        return ["model.safetensors"]
    found = sorted(name for name in names if name.endswith(".safetensors") and "/" not in name)
    if found:
        return found
    pickled = [name for name in names if name.endswith(_PICKLES)]
    hint = " Pickled weights can execute code when loaded; convert them to safetensors." if pickled else ""
    raise UnusableFolder("weights_missing", f"The folder has no safetensors weights.{hint}")


def shows_tools(folder: Path) -> bool:
    """Tell whether any chat template of a model's folder renders the tools of a conversation.

    transformers takes the template named ``tool_use`` where there are several and tools.
    """
    names = _list_names(folder)
    try:
        return any(chat_templates.shows_tools(template) for template in _read_templates(folder, names))
    except RunawayTemplate:
        return False


def find_refusal(folder: Path, conversations: Sequence[Sequence[dict[str, Any]]]) -> Refusal | None:
    """Return the first conversation that the chat template refuses; of several templates, all must refuse."""
    names = _list_names(folder)
    found = [chat_templates.find_refusal(each, conversations) for each in _read_templates(folder, names)]
    refused = [each for each in found if each is not None]
    return refused[0] if refused and len(refused) == len(found) else None


def require_usable_templates(folder: Path) -> None:
    """Raise ``UnusableFolder`` where a chat template would hang a run, or cannot be read.

    The files of a folder that was registered where it lies may have changed since.
    """
    if not folder.is_dir():
        return  # weights that are not here are told of elsewhere
    try:
        names = _list_names(folder)
        templates = _read_all_templates(folder, names)
    except OSError as error:
        message = f"A chat template of the folder cannot be read: {error.strerror}."
        raise UnusableFolder("folder_unreadable", message) from error
    list(try_templates(templates))


def _list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file()}


def _read_templates(folder: Path, names: set[str]) -> list[str]:
    """Read the chat templates in use, from their own file or else from the tokenizer's configuration."""
    if _TEMPLATE_FILE in names:
        return [_read_template(folder / _TEMPLATE_FILE), *_read_named_templates(folder)]
    for name in _TEMPLATE_CONFIGS:
        if found := _read_configured(folder, names, name):
            return [*found, *_read_named_templates(folder)]
    return _read_named_templates(folder)


def _read_all_templates(folder: Path, names: set[str]) -> list[str]:
    """Read every distinct chat template of the folder: which one is used differs between libraries."""
    found = [_read_template(folder / _TEMPLATE_FILE)] if _TEMPLATE_FILE in names else []
    for name in _TEMPLATE_CONFIGS:
        found += _read_configured(folder, names, name)
    return list(dict.fromkeys([*found, *_read_named_templates(folder)]))


def _read_template(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_TEMPLATE_BYTES + 1).decode("utf-8", "replace")


def _read_named_templates(folder: Path) -> list[str]:
    """Read the templates for a purpose, such as ``tool_use``, which transformers reads as well."""
    paths = sorted((folder / _TEMPLATE_FOLDER).glob("*.jinja"))
    if len(paths) > _MAX_TEMPLATES:
        raise UnusableFolder("too_many_files", f"The model has more than {_MAX_TEMPLATES} chat templates.")
    return [_read_template(path) for path in paths]


def _read_configured(folder: Path, names: set[str], name: str) -> list[str]:
    found = read_json(folder / name, "tokenizer_invalid").get("chat_template") if name in names else None
    if not found:
        return []
    several = found if isinstance(found, list) else [{"template": found}]
    if isinstance(found, dict):
        several = [{"template": each} for each in found.values()]
    if len(several) > _MAX_TEMPLATES:
        raise UnusableFolder("tokenizer_invalid", f"{name} has more than {_MAX_TEMPLATES} chat templates.")
    return [str(each.get("template", "")) for each in several if isinstance(each, dict)]


def try_templates(templates: list[str]) -> Iterator[dict[str, str]]:
    """Yield the problems of templates; refuses one that would hang a run."""
    for template in templates:
        try:
            problem = find_problem(template)
        except RunawayTemplate as error:
            message = f"The chat template cannot be used: {error}."
            raise UnusableFolder("chat_template_runaway", message) from error
        if problem is not None:
            message = f"The chat template fails on a regular conversation: {problem}"
            yield {"code": "chat_template_fails", "message": message}


def _collect_warnings(config: dict[str, Any], templates: list[str], names: set[str]) -> list[dict[str, str]]:
    warnings = list(try_templates(templates))
    if not templates:
        message = "The tokenizer has no chat template, so messages can't be formatted."
        warnings.append({"code": "chat_template_missing", "message": message})
    if config.get("auto_map"):
        message = "The model requires custom Python code, which the platform doesn't run."
        warnings.append({"code": "custom_code", "message": message})
    if pickled := sorted(name for name in names if name.endswith(_PICKLES) and "/" not in name):
        message = (
            f"'{pickled[0][:120]}' can execute code when unpickled; the safetensors files are used instead."
        )
        warnings.append({"code": "pickled_files", "message": message})
    return warnings
