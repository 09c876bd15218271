"""Kinds of installed packages: the example of the page works; a wrong one is named and not offered."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.doctor import check_environment_plugins
from trellis_recipes import environment_plugins
from trellis_recipes.environments import environment_kinds
from trellis_train.supervise.manifest import find_versions

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"
PACKAGE, MODULE = "coin_games", "coin_games.coins"


def example(name: str) -> str:
    """The content of a file that the page shows."""
    (found,) = re.findall(rf"```\w+ {re.escape(name)}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Install a package with the kind of the page, and entry points of our choice."""

    def install(entries: dict[str, str]) -> Path:
        package = tmp_path / PACKAGE
        package.mkdir()
        (package / "__init__.py").write_text("")
        for name in ("coins.py", "coins.yaml"):
            (package / name).write_text(example(name), encoding="utf-8")
        facts = tmp_path / f"{PACKAGE}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
        (facts / "entry_points.txt").write_text(f"[{environment_plugins.GROUP}]\n{lines}")
        monkeypatch.syspath_prepend(str(tmp_path))
        environment_plugins.find_plugins.cache_clear()
        return package

    yield install
    monkeypatch.undo()
    sys.modules.pop(PACKAGE, None)
    environment_plugins.find_plugins.cache_clear()


def run_environments(root: Path, *arguments: str) -> Any:
    """What the command of the workers prints."""
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "trellis_train.agents.environments", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kind_of_an_installed_package_is_offered_made_and_called(
    install: Callable[..., Path], tmp_path: Path
) -> None:
    own_kinds = list(environment_kinds())
    install({"coins": MODULE})

    assert list(environment_kinds()) == [*own_kinds, "coins"]
    assert MODULE not in sys.modules
    assert [(check.state, check.detail) for check in check_environment_plugins()] == [
        ("ok", "from installed packages: coins")
    ]
    made = run_environments(tmp_path, "make", "coins", str(tmp_path / "made"), "--parameters", '{"games": 5}')
    assert made["counts"] == {"games": 5}
    assert made["parameters"] == {"games": 5, "seed": 42}
    row = json.loads((tmp_path / "made" / made["datasets"]["eval"]).read_text())
    answer = run_environments(tmp_path, "call", str(tmp_path / "made"), "count_heads", '{"game": 4}')
    assert (str(answer["result"]), answer["error"]) == (row["answer"], None)
    refused = run_environments(tmp_path, "call", str(tmp_path / "made"), "count_heads", '{"game": 9}')
    assert refused["error"] == "UNKNOWN_GAME"


@pytest.mark.parametrize(
    ("entries", "spoil", "problem"),
    [
        ({"toolbox": MODULE}, None, "another kind has this name"),
        ({"coins": f"{PACKAGE}.dice"}, None, "there is no such module"),
        ({"coins": "no_such_package.coins"}, None, "cannot be imported: ModuleNotFoundError"),
        ({"dice": MODULE}, None, "coins.yaml describes the kind 'coins'"),
        (
            {"coins": MODULE},
            lambda folder: (folder / "coins.yaml").unlink(),
            "coins.yaml is missing beside coins.py",
        ),
        (
            {"coins": MODULE},
            lambda folder: (folder / "coins.yaml").write_text("name: ["),
            "coins.yaml: while parsing",
        ),
        (
            {"coins": MODULE},
            lambda folder: (folder / "coins.yaml").write_text("name: coins"),
            "Field required",
        ),
        ({"coins": MODULE}, lambda folder: (folder / "__init__.py").write_text("1 / 0"), "ZeroDivisionError"),
    ],
    ids=["taken", "module", "package", "name", "no-description", "yaml", "fields", "import"],
)
def test_a_kind_that_cannot_be_used_is_named_and_not_offered(
    install: Callable[..., Path],
    entries: dict[str, str],
    spoil: Callable[[Path], Any] | None,
    problem: str,
) -> None:
    own_kinds = environment_kinds()
    package = install(entries)
    if spoil is not None:
        spoil(package)

    assert environment_kinds() == own_kinds
    (said,) = environment_plugins.find_plugins().problems
    assert problem in said
    (check,) = check_environment_plugins()
    assert (check.state, check.detail) == ("warning", said)


def test_the_manifest_of_a_run_has_the_versions_of_the_packages_that_bring_kinds(
    install: Callable[..., Path],
) -> None:
    before = find_versions()
    install({"coins": MODULE})

    assert find_versions() == {**before, PACKAGE: "1.0"}
