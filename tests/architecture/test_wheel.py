"""What a wheel holds: the product's packages with their data, and none of the checkout's tools."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = {
    "trellis", "trellis_api", "trellis_cli", "trellis_contracts", "trellis_data", "trellis_evaluation",
    "trellis_recipes", "trellis_train", "trellis_workers",
}  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that becomes a wheel's content; nothing is written into the checkout."""
    base = tmp_path_factory.mktemp("wheel")
    command = [
        "setup.py",
        "-q",
        "egg_info",
        "--egg-base",
        str(base),
        "build_py",
        "--build-lib",
        str(base / "lib"),
    ]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return base / "lib"


def test_a_wheel_has_the_products_packages_and_not_the_tools(wheel: Path) -> None:
    assert {path.name for path in wheel.iterdir()} == PRODUCT


def test_a_wheel_has_the_data_that_modules_read(wheel: Path) -> None:
    source = ROOT / "recipes" / "trellis_recipes"
    read = {path.relative_to(source) for path in source.rglob("*.yaml")}

    assert read
    assert {
        path.relative_to(wheel / "trellis_recipes") for path in (wheel / "trellis_recipes").rglob("*.yaml")
    } == read
    assert (wheel / "trellis_train" / "compat" / "records.json").is_file()


def test_an_editable_install_finds_the_tools() -> None:
    program = """
from setuptools import Distribution
found = Distribution()
found.parse_config_files()
found.set_defaults()
print("trellis_tools" in found.packages)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.stdout.strip() == "True", done.stderr
