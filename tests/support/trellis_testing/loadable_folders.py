"""Every kind of folder that a command calls a checkpoint or a model, and how anybody loads it.

``load_folders`` walks what a run or a command left and what it said of it: each folder with weights, and
each folder that an answer names, must be of exactly one of ``KINDS`` and load. A folder of a new kind fails
whatever test meets it; ``WRITERS`` lists the code that writes weights, so that new code fails, too.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts.recipe import Engine

#: What weights that a program loads are called.
WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "adapter_model*.bin", "*.gguf")
#: Where runs and commands write folders that have no name of their own.
MODELS = "models"


@dataclass(frozen=True)
class FolderKind:
    """Folders of one layout."""

    name: str
    #: Matches the end of a folder's path, from a slash on.
    path: str
    load: Callable[[Path], None]
    #: The trainers that write it, and the commands besides.
    engines: tuple[Engine, ...] = ()
    commands: tuple[str, ...] = ()
    #: Tests that load one that was really written; their code names the kind.
    shown_by: tuple[str, ...] = ()

    def matches(self, folder: Path) -> bool:
        return re.search(rf"/{self.path}$", folder.as_posix()) is not None


def load_model(folder: Path) -> None:
    """Load the weights by the class that the configuration names, none missing, and the tokenizer."""
    from transformers import AutoConfig, AutoTokenizer
    from trellis_train.export.writing import choose_auto_class

    tokenizer, config = AutoTokenizer.from_pretrained(folder), AutoConfig.from_pretrained(folder)
    model, told = choose_auto_class(config).from_pretrained(folder, output_loading_info=True)
    assert not told["missing_keys"], f"{folder}: {told['missing_keys']} are missing"
    assert model.config.vocab_size >= len(tokenizer), folder


def load_adapter(folder: Path) -> None:
    """Load the adapter on the base that its configuration names, and the tokenizer beside it."""
    import peft
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

    config = peft.PeftConfig.from_pretrained(folder)
    base, scores = str(config.base_model_name_or_path), config.task_type == "SEQ_CLS"
    model: Any = (
        AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
        if scores
        else AutoModelForCausalLM.from_pretrained(base)
    )
    adapted = peft.PeftModel.from_pretrained(model, folder)
    # What is not found stays as it was initialized: without an error, and at zero where it matters.
    loaded, stored = peft.get_peft_model_state_dict(adapted), load_file(folder / "adapter_model.safetensors")
    assert loaded.keys() == stored.keys(), folder
    for name, value in stored.items():
        assert torch.equal(loaded[name].float(), value.float()), f"{folder}: {name}"
    assert len(AutoTokenizer.from_pretrained(folder)) <= model.config.vocab_size


def load_adapted(folder: Path) -> None:
    """Load an adapter beside its base's weights as a model, with the adapter active."""
    from transformers import AutoModelForCausalLM

    load_model(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert any("lora_" in name for name, _ in model.named_parameters()), folder


def load_exported(folder: Path) -> None:
    """Export a training state with the base of its run, and load the resulting model."""
    from trellis_train.export.gathering import gather_model

    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "model"
        gather_model(
            folder, base=_find_base(folder), output=output, scratch=Path(scratch), leave_if_asked=lambda: None
        )
        load_model(output)


def load_gguf(folder: Path) -> None:
    """Load each GGUF file by its name."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    for file in folder.glob("*.gguf"):
        AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name)
        AutoTokenizer.from_pretrained(folder, gguf_file=file.name)


_STEP = r"checkpoints/(?:best/)?global_step_\d+"
_EXPORTING = "tests/train/export/test_loadable_folders.py::"
_AGENTS = "tests/proof/test_agent_commands.py::"
_LAYING = "tests/train/agents/test_linksearch_checkpoints.py::"
_SEARCH = "tests/proof/test_linksearch_runs.py::"

KINDS = (
    FolderKind(
        "training state",
        _STEP,
        load_exported,
        engines=(Engine.VERL_PPO, Engine.VERL_SFT, Engine.TRL, Engine.RETRIEVAL),
        commands=("agent train", "linksearch train", "tune run", "tune search"),
        shown_by=(
            f"{_EXPORTING}test_what_verl_sft_leaves_loads",
            f"{_EXPORTING}test_what_trl_leaves_loads",
            f"{_AGENTS}test_reinforcement_goes_on_from_it",
            f"{_AGENTS}test_a_retriever_is_trained_and_its_checkpoint_becomes_a_model",
        ),
    ),
    FolderKind(
        "model of a checkpoint",
        f"{_STEP}/huggingface",
        load_model,
        engines=(Engine.VERL_SFT, Engine.TRL, Engine.RETRIEVAL),
        commands=("agent train sft", "agent train dpo", "agent train retrieval"),
        shown_by=(
            f"{_EXPORTING}test_what_verl_sft_leaves_loads",
            f"{_EXPORTING}test_what_trl_leaves_loads",
            f"{_AGENTS}test_dpo_samples_the_pairs_that_it_trains_on",
            f"{_AGENTS}test_a_retriever_is_trained_and_its_checkpoint_becomes_a_model",
        ),
    ),
    FolderKind(
        "policy of a checkpoint",
        f"{_STEP}/actor/huggingface",
        load_model,
        engines=(Engine.VERL_PPO,),
        commands=("agent train ppo", "agent train grpo", "linksearch train", "tune run", "tune search"),
        shown_by=(
            f"{_AGENTS}test_reinforcement_goes_on_from_it",
            f"{_SEARCH}test_a_target_of_zero_ends_after_the_first_evaluation_with_a_checkpoint",
            "tests/proof/test_tune_commands.py::test_the_example_acts_and_is_trained",
            "tests/proof/test_tune_commands.py::"
            "test_a_search_trains_its_trials_and_one_that_fails_harms_no_other",
        ),
    ),
    FolderKind(
        "adapter of a checkpoint",
        rf"{_STEP}/(?:actor/)?lora_adapter",
        load_adapter,
        engines=(Engine.TRL, Engine.VERL_PPO),
        commands=("agent train sft", "agent train dpo", "linksearch train"),
        shown_by=(
            f"{_EXPORTING}test_what_trl_leaves_loads",
            f"{_SEARCH}test_a_checkpoint_of_an_adapter_is_measured_with_its_base",
        ),
    ),
    FolderKind(
        "Link Search checkpoint",
        r"checkpoints/(?:checkpoint-\d+|final)",
        load_model,
        commands=("linksearch train",),
        shown_by=(
            f"{_LAYING}test_weights_in_several_files_are_all_there",
            f"{_SEARCH}test_a_target_of_zero_ends_after_the_first_evaluation_with_a_checkpoint",
        ),
    ),
    FolderKind(
        "Link Search checkpoint with an adapter",
        r"checkpoints/(?:checkpoint-\d+|final)",
        load_adapted,
        commands=("linksearch train",),
        shown_by=(
            f"{_LAYING}test_an_adapter_is_loaded_with_its_base",
            f"{_SEARCH}test_a_checkpoint_of_an_adapter_is_measured_with_its_base",
        ),
    ),
    FolderKind(
        "exported model",
        rf"{MODELS}/[^/]+",
        load_model,
        engines=(Engine.EXPORT,),
        commands=("jobs export", "agent export", "models add", "models install", "starter"),
        shown_by=(
            f"{_EXPORTING}test_what_verl_sft_leaves_loads",
            f"{_EXPORTING}test_what_trl_leaves_loads",
            f"{_EXPORTING}test_a_starter_and_a_converted_gguf_file_load",
            f"{_AGENTS}test_a_retriever_is_trained_and_its_checkpoint_becomes_a_model",
        ),
    ),
    FolderKind(
        "exported adapter",
        rf"{MODELS}/[^/]+",
        load_adapter,
        engines=(Engine.EXPORT,),
        commands=("jobs export --form adapter",),
        shown_by=(
            f"{_EXPORTING}test_what_verl_sft_leaves_loads",
            f"{_EXPORTING}test_what_trl_leaves_loads",
        ),
    ),
    FolderKind(
        "merged model that a run begins with",
        "(?:base-model|evaluations/model)",
        load_model,
        commands=("agent train", "linksearch evaluate"),
        shown_by=(f"{_SEARCH}test_a_checkpoint_of_an_adapter_is_measured_with_its_base",),
    ),
    FolderKind(
        "GGUF file",
        rf"{MODELS}/[^/]+",
        load_gguf,
        commands=("transfers export",),
        shown_by=(f"{_EXPORTING}test_a_starter_and_a_converted_gguf_file_load",),
    ),
)

#: Code that writes weights, and the kinds of folders that they end up in.
WRITERS = {
    "trellis_train/starter/model.py": ("exported model",),
    "trellis_train/agents/tooluse/retrieval/encoder.py": ("model of a checkpoint",),
    "trellis_train/agents/tooluse/retrieval/training.py": ("training state",),
    "trellis_train/export/writing.py": ("exported model",),
    "trellis_train/export/adapters.py": (
        "exported model",
        "exported adapter",
        "adapter of a checkpoint",
        "merged model that a run begins with",
    ),
    "trellis_train/gguf_import.py": ("exported model",),
    "trellis_train/gguf_export.py": ("GGUF file",),
    "trellis_train/preference/reporting.py": ("model of a checkpoint", "adapter of a checkpoint"),
    "trellis_train/engines/sft_trainer.py": ("training state", "model of a checkpoint"),
    "trellis_train/hooks/accuracy_stop.py": ("training state", "policy of a checkpoint"),
    "trellis_train/agents/linksearch/checkpoints.py": (
        "Link Search checkpoint",
        "Link Search checkpoint with an adapter",
    ),
}


def load_folders(root: Path, *answers: Any) -> set[str]:
    """Load every folder of weights below ``root`` and every one that ``answers`` name; the kinds met.

    ``answers`` are what commands print as JSON, and events. Folders of runs are no models.
    """
    said = {folder for answer in answers for folder in _named_folders(answer) if not _is_run(folder)}
    found = {
        path.parent.resolve() for pattern in WEIGHTS for path in root.rglob(pattern) if not path.is_symlink()
    }
    assert said | found, f"{root}: nothing was written"
    kinds = set()
    for folder in sorted(said | found):
        kind = find_kind(folder)
        kind.load(folder)
        kinds.add(kind.name)
    return kinds


def find_kind(folder: Path) -> FolderKind:
    """Find the one kind that a folder is of; fail if no listed kind matches."""
    matching = [kind for kind in KINDS if kind.matches(folder) and _has_form(folder, kind)]
    assert len(matching) == 1, (
        f"{folder} is of {len(matching)} kinds: list what a command calls a checkpoint or a model in"
        f" {Path(__file__).name}, with a test that loads it"
    )
    return matching[0]


def _has_form(folder: Path, kind: FolderKind) -> bool:
    """Distinguish kinds of folders that occur in the same places."""
    has_adapter, has_config = ((folder / name).is_file() for name in ("adapter_config.json", "config.json"))
    forms = {
        load_adapter: has_adapter and not has_config,
        load_adapted: has_adapter and has_config,
        load_model: has_config and not has_adapter,
        load_gguf: any(folder.glob("*.gguf")),
    }
    return forms.get(kind.load, True)


def _named_folders(answer: Any) -> Iterator[Path]:
    """Yield the absolute folders among the values of a command's output."""
    if isinstance(answer, dict):
        for value in answer.values():
            yield from _named_folders(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _named_folders(value)
    elif isinstance(answer, str) and answer.startswith("/") and Path(answer).is_dir():
        yield Path(answer).resolve()


def _is_run(folder: Path) -> bool:
    return any(folder.glob("attempt-*/spec.json"))


def _find_base(state: Path) -> Path:
    """Find the model that the newest attempt of the run around a training state started from."""
    run = next(each for each in state.parents if _is_run(each))
    specs = sorted(run.glob("attempt-*/spec.json"), key=lambda each: each.stat().st_mtime)
    return Path(json.loads(specs[-1].read_text())["model"]["path"])
