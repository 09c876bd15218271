"""Borders between the packages, in fresh processes and in the sources."""

import json
import re
import subprocess
import sys
from pathlib import Path

from trellis_tools.ci.packages import ROOTS

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ["torch", "ray", "verl", "vllm", "trl", "transformers", "trellis_workers", "trellis_train"]


def run_fresh(code: str) -> str:
    """What a fresh interpreter prints, started where nothing of ours is on the path by accident."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_the_api_imports_nothing_heavy() -> None:
    loaded = json.loads(
        run_fresh(
            "import trellis_api.main, json, sys;"
            "trellis_api.main.create_app();"
            "print(json.dumps([name for name in sys.modules if '.' not in name]))"
        )
    )

    assert "fastapi" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_sdk_loads_no_engine_before_it_is_used() -> None:
    loaded = json.loads(run_fresh("import trellis, json, sys; print(json.dumps(list(sys.modules)))"))

    assert "trellis.tuning" in loaded
    assert not set(HEAVY) & set(loaded)


def test_upstream_verl_is_not_hidden_by_our_folder_of_that_name() -> None:
    place = run_fresh("import importlib.util as u; print(u.find_spec('verl').origin)").strip()

    assert "site-packages" in place
    assert not list((ROOT / "verl").glob("__init__.py"))
    assert not list((ROOT / "tests").rglob("verl/__init__.py"))


def test_only_the_session_boundary_commits() -> None:
    boundary = ROOT / "backend" / "trellis_api" / "core" / "database.py"
    places = [
        path
        for folder in ("backend", "workers")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"\.commit\(", path.read_text())
    ]

    assert places == [boundary]


def test_no_module_is_a_drawer_for_everything() -> None:
    forbidden = re.compile(r"(^|_)(utils?|helpers?|managers?|common|misc)\.py$")

    drawers = [
        path
        for folder in ROOTS.values()
        for path in (ROOT / folder).rglob("*.py")
        if forbidden.search(path.name)
    ]

    assert drawers == []
