"""CONTRIBUTING.md, followed to the letter: what it tells to write works, and what it names is there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: Of a how-to, with its code.
MOST_LINES = 36
PACKAGES = ("contracts", "recipes", "factory", "verl")
#: A model as verl's workers read it before they load its weights.
TINY_MODEL = {
    "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 16, "intermediate_size": 16,
    "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 32,
}  # fmt: skip
#: Composes the recipe, then registers its algorithm as the trainer does, and anew as a worker does.
ALGORITHM = """
import sys
import torch
from omegaconf import OmegaConf
from trellis_recipes.compose import ComposeRequest, compose
from trellis_train.hooks.algorithms import correct_estimators
from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, get_adv_estimator_fn
from verl.workers.config.model import HFModelConfig

composed = compose(ComposeRequest(
    recipe="median", platform="cpu", gpus=1, model_path="/models/m", train_path="/job/train.parquet",
    checkpoint_dir="/job/checkpoints", seed=0,
))
assert composed.errors == [], composed.errors
alone = compose(ComposeRequest(
    recipe="median", platform="cpu", gpus=1, model_path="/models/m", train_path="/job/train.parquet",
    checkpoint_dir="/job/checkpoints", seed=0, params=dict(group_size=1),
))
assert [error.field for error in alone.errors] == ["params.group_size"], alone.errors
config = OmegaConf.create(composed.config)
correct_estimators(config)
estimate = get_adv_estimator_fn(config.algorithm.adv_estimator)
rewards = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 3.0]])
advantages, _ = estimate(token_level_rewards=rewards, response_mask=torch.ones(3, 2), index=["a"] * 3)
print(advantages[:, 0].tolist())

library = config.actor_rollout_ref.model.external_lib
del ADV_ESTIMATOR_REGISTRY["median"], sys.modules[library]
HFModelConfig(
    path="{model}", load_tokenizer=False, external_lib=library,
    override_config=dict(attn_implementation="eager"),
)
print("median" in ADV_ESTIMATOR_REGISTRY)
"""


def how_to(title: str) -> str:
    """The part of the page under a heading."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the packages to write in."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def write_what_it_says(house: Path, title: str) -> None:
    for path, content in re.findall(r"```\w+ (\S+)\n(.*?)```", how_to(title), re.S):
        (house / path).write_text(content, encoding="utf-8")


def python(house: Path, program: str) -> str:
    path = os.pathsep.join(str(house / name) for name in PACKAGES)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_recipe_is_in_the_catalogue_and_composes(house: Path) -> None:
    write_what_it_says(house, "Add a recipe")

    told = python(
        house,
        "from trellis_recipes.catalogue import get_recipe\n"
        "recipe = get_recipe('grpo_plain')\n"
        "print(recipe.engine, len(recipe.parameters) > 20, len(recipe.presets) > 3)",
    )

    assert told == "verl-ppo True True"


@pytest.mark.slow
def test_the_algorithm_is_used_by_the_trainer_and_known_to_the_workers(house: Path, tmp_path: Path) -> None:
    write_what_it_says(house, "Add an algorithm")
    (tmp_path / "config.json").write_text(json.dumps(TINY_MODEL))

    told = python(house, ALGORITHM.format(model=tmp_path))

    assert told.splitlines()[-2:] == ["[0.0, -1.0, 2.0]", "True"]


def test_the_operator_drops_the_rows_that_it_says(house: Path) -> None:
    write_what_it_says(house, "Add an operator")
    catalogue = house / "factory" / "trellis_data" / "catalogue.py"
    catalogue.write_text(
        catalogue.read_text().replace(
            '    "trellis_data.operators.html",\n',
            '    "trellis_data.operators.html",\n    "trellis_data.operators.shouting",\n',
        )
    )

    told = python(
        house,
        "import pyarrow as pa\n"
        "from trellis_data.catalogue import describe, find_operator\n"
        "from trellis_contracts.recipe import DataFormat\n"
        "from trellis_data.layout import Batch, Layout\n"
        "from trellis_data.operator import Context\n"
        "kind = find_operator('shouting')\n"
        "rows = pa.table({'text': ['BUY NOW', 'Good morning']})\n"
        "batch = Batch(rows, Layout(DataFormat.TEXT, {'text': 'text'}))\n"
        "outcome = kind(kind.Params(), Context()).apply(batch)\n"
        "print(outcome.keep.tolist(), describe(kind)['group'])",
    )

    assert told == "[False, True] clean"


@pytest.mark.parametrize(
    "title", ["Add a recipe", "Add an algorithm", "Add an operator", "Add a benchmark", "Add a page"]
)
def test_a_how_to_is_short_and_names_places_that_are_there(title: str) -> None:
    text = how_to(title)

    named = [path for path in re.findall(r"`([\w./-]+/[\w./-]+)`", text) if not path.startswith("locales/")]
    missing = [path for path in named if not (ROOT / path).exists()]
    assert len(text.splitlines()) <= MOST_LINES
    assert missing in ([], ["catalogue/shared"])
