"""Every folder that a command calls a checkpoint or a model is listed, and loads as anybody would load it."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import EXIT_SUCCEEDED
from trellis_recipes.catalogue import list_recipes
from trellis_testing import loadable_folders
from trellis_testing.gguf_files import write_gguf
from trellis_testing.loadable_folders import KINDS, MODELS, WRITERS, find_kind, load_folders
from trellis_testing.model_folders import write_model_folder

ROOT = Path(__file__).parents[3]
#: What writes weights, or puts files of weights under another name.
WRITES = {"save_pretrained", "save_file", "save_model", "save_checkpoint", "GGUFWriter", "link_or_copy"}
TRAINERS = {Engine.VERL_PPO, Engine.VERL_SFT, Engine.TRL, Engine.RETRIEVAL, Engine.EXPORT}
LORA = {"lora_rank": 4, "lora_alpha": 12}


def test_all_code_that_writes_weights_is_listed() -> None:
    found = set()
    for package in ("verl", "workers", "backend", "cli", "sdk", "factory", "evaluation"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            # Most files need no parsing to see that they name none of them.
            if any(name in text for name in (*WRITES, "torch.save")) and writes_weights(ast.parse(text)):
                found.add(path.relative_to(ROOT / package).as_posix())

    assert found == WRITERS.keys()
    assert {kind for kinds in WRITERS.values() for kind in kinds} == {kind.name for kind in KINDS}


def writes_weights(tree: ast.Module) -> bool:
    """Whether code refers to one of ``WRITES``, or to ``torch.save``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in WRITES:
            return True
        if isinstance(node, ast.Attribute) and (node.attr in WRITES or ast.unparse(node) == "torch.save"):
            return True
    return False


def test_every_trainer_is_listed() -> None:
    listed = {engine for kind in KINDS for engine in kind.engines}

    assert listed == TRAINERS == set(Engine) - {Engine.EVALUATE, Engine.SERVE}
    assert {recipe.engine for recipe in list_recipes()} <= listed


def test_every_kind_is_loaded_by_a_test_that_names_it() -> None:
    for kind in KINDS:
        assert kind.shown_by, kind.name
        for test in kind.shown_by:
            path, _, name = test.partition("::")
            source = (ROOT / path).read_text(encoding="utf-8")
            functions = {
                node.name: ast.get_source_segment(source, node) or ""
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.FunctionDef)
            }
            assert f'"{kind.name}"' in functions.get(name, ""), f"{test} does not load: {kind.name}"


@pytest.mark.parametrize("place", ["checkpoints/epoch-1", "checkpoints/global_step_2/merged", "weights"])
def test_a_folder_that_nobody_listed_is_found(place: str, tmp_path: Path) -> None:
    write_model_folder(tmp_path / place)

    with pytest.raises(AssertionError, match="is of 0 kinds"):
        load_folders(tmp_path)


def test_a_folder_that_an_answer_names_is_found_without_weights(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "epoch-1").mkdir(parents=True)

    with pytest.raises(AssertionError, match="is of 0 kinds"):
        load_folders(tmp_path, {"outcome": "succeeded", "checkpoint": str(tmp_path / "checkpoints/epoch-1")})


def test_the_table_says_how_each_form_of_a_place_loads(tmp_path: Path) -> None:
    whole = write_model_folder(tmp_path / MODELS / "whole")
    (tmp_path / MODELS / "adapter").mkdir()
    (tmp_path / MODELS / "adapter" / "adapter_config.json").touch()

    assert find_kind(whole).load is loadable_folders.load_model
    assert find_kind(tmp_path / MODELS / "adapter").load is loadable_folders.load_adapter
    assert all(inspect.getdoc(kind.load) for kind in KINDS)


@pytest.mark.training
@pytest.mark.timeout(600)
def test_what_verl_sft_leaves_loads(whole: Any, with_adapter: Any, export: Any, tmp_path: Path) -> None:
    met = set()
    for trained, forms in ((whole, ["merged"]), (with_adapter, ["merged", "adapter"])):
        run = trained.run
        met |= load_folders(Path(run.spec.checkpoint_dir).parent, run.events("checkpoint"))
        for form in forms:
            done = export(trained.checkpoint, base=trained.base, form=form)
            assert done.exit_code == EXIT_SUCCEEDED, done.log
            met |= load_folders(tmp_path / MODELS)

    assert met == {"training state", "model of a checkpoint", "exported model", "exported adapter"}


@pytest.mark.training
@pytest.mark.timeout(600)
@pytest.mark.parametrize("recipe", ["dpo", "reward_model"])
def test_what_trl_leaves_loads(recipe: str, prefer: Any, base: Path, export: Any, tmp_path: Path) -> None:
    met = set()
    for adapter in ({}, LORA):
        run = prefer(recipe, adapter)
        met |= load_folders(Path(run.spec.checkpoint_dir).parent, run.events("checkpoint"))
        for form in ["merged", "adapter"] if adapter else ["merged"]:
            done = export(Path(run.checkpoint()["path"]), base=base, form=form, engine=Engine.TRL)
            assert done.exit_code == EXIT_SUCCEEDED, done.log
            met |= load_folders(tmp_path / MODELS)

    assert met == {
        "training state",
        "model of a checkpoint",
        "adapter of a checkpoint",
        "exported model",
        "exported adapter",
    }


@pytest.mark.slow
def test_a_starter_and_a_converted_gguf_file_load(base: Path, tmp_path: Path) -> None:
    from trellis_train.gguf_export import export as export_gguf
    from trellis_train.gguf_import import convert
    from trellis_train.starter.model import write_model

    models = tmp_path / MODELS
    write_model(models / "starter", seed=3)
    write_gguf(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", models / "imported")
    (models / "exported").mkdir()
    export_gguf(models / "imported", models / "exported" / "imported.gguf", "f16", name="imported")

    assert load_folders(models) == {"exported model", "GGUF file"}
