"""CONTRIBUTING.md, followed to the letter: what it tells to write works, and what it names is there."""

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
MOST_LINES = 30
PACKAGES = ("contracts", "recipes", "factory")


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


@pytest.mark.parametrize("title", ["Add a recipe", "Add an operator", "Add a benchmark", "Add a page"])
def test_a_how_to_is_short_and_names_places_that_are_there(title: str) -> None:
    text = how_to(title)

    named = [path for path in re.findall(r"`([\w./-]+/[\w./-]+)`", text) if not path.startswith("locales/")]
    missing = [path for path in named if not (ROOT / path).exists()]
    assert len(text.splitlines()) <= MOST_LINES
    assert missing in ([], ["catalogue/shared"])
