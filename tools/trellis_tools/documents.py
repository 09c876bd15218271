"""Files that must agree with the code: ``python -m trellis_tools.documents WHAT [--write]``.

WHAT is configuration, data, openapi, preset-sizes, recipes, sdk-types or migrations.
"""

import difflib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.documentation import render
from trellis_recipes.preset_sizes import render_sizes

from trellis_tools.operator_docs import render_operators
from trellis_tools.sdk_types import render_types

CONFIGURATION = REPOSITORY_ROOT / "docs" / "configuration.md"
OPENAPI = REPOSITORY_ROOT / "frontend" / "openapi.json"
RECIPES = REPOSITORY_ROOT / "docs" / "recipes.md"
PRESET_SIZES = REPOSITORY_ROOT / "recipes" / "trellis_recipes" / "preset_sizes.yaml"
SDK_TYPES = REPOSITORY_ROOT / "sdk" / "trellis" / "types.py"
DATA = REPOSITORY_ROOT / "docs" / "data.md"

HEADER = """# Settings

Every setting is an environment variable. An invalid value aborts start-up and names the variable.
Generated from `backend/trellis_api/core/settings.py`
by `python -m trellis_tools.documents configuration --write`.

| variable | default | meaning |
|---|---|---|
"""
FOOTER = """
## Set-up

Read by `init.sh` and the command line before the platform starts.

| variable | default | meaning |
|---|---|---|
| `TRELLIS_PYTHON` | the first one found | Python 3.11 or 3.12 for the virtual environment. |
| `TRELLIS_TORCH_INDEX_URL` | configured index, then PyTorch's own | Package index with PyTorch's CPU wheel. |
| `TRELLIS_URL` | from `trellis login`, else from the data root | Platform for the CLI and the SDK. |
| `TRELLIS_TOKEN` | from `trellis login`, else `<data_root>/admin.token` | Bearer token for that platform. |
| `TRELLIS_TRACEBACK` | none | If set, CLI errors show a traceback. |

If the database, broker or Ray addresses are not set, the platform runs its own: SQLite, a Redis server and
a Ray head on free local ports, which are stored in `<data_root>/run/services.json`.
"""


def render_configuration() -> str:
    """Render the text of docs/configuration.md."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = "none" if field.default is None else str(field.default)
        rows.append(f"| `TRELLIS_{name.upper()}` | `{default}` | {field.description} |")
    return HEADER + "\n".join(rows) + "\n" + FOOTER


def render_openapi() -> str:
    """Render the API's current schema in a subprocess, because this package may not import the API."""
    done = subprocess.run(  # noqa: S603 - a fixed command
        python_command("-m", "trellis_api.openapi"), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def compare(path: Path, text: str, command: str) -> bool:
    """Compare a file with this text; if it differs, print the first differences."""
    found = path.read_text() if path.exists() else ""
    if found.strip() == text.strip():
        return True
    difference = difflib.unified_diff(
        found.splitlines(), text.splitlines(), str(path), "expected", lineterm=""
    )
    sys.stderr.write("\n".join(list(difference)[:40]) + f"\n{path.name} is stale: run {command}\n")
    return False


def check_migrations() -> bool:
    """Upgrade an empty database, then ask Alembic whether the models say anything else."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TRELLIS_DATA_ROOT": folder}
        env.pop("TRELLIS_DATABASE_URL", None)
        for arguments in (["-m", "trellis_api.migrate"], ["-m", "alembic", "check"]):
            done = subprocess.run(  # noqa: S603 - fixed commands
                python_command(*arguments),
                cwd=REPOSITORY_ROOT / "backend",
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                sys.stderr.write(done.stdout + done.stderr)
                return False
    return True


def main(arguments: list[str]) -> int:
    """Check one document, or write it."""
    what, is_writing = arguments[0], "--write" in arguments
    command = f"python -m trellis_tools.documents {what} --write"
    if what == "migrations":
        return 0 if check_migrations() else 1
    path, text = {
        "configuration": (CONFIGURATION, render_configuration),
        "openapi": (OPENAPI, render_openapi),
        "data": (DATA, lambda: render_operators(DATA.read_text())),
        "preset-sizes": (PRESET_SIZES, lambda: render_sizes(list_recipes())),
        "sdk-types": (SDK_TYPES, lambda: render_types(json.loads(OPENAPI.read_text()))),
        "recipes": (RECIPES, lambda: render(list_recipes())),
    }[what]
    if is_writing:
        path.write_text(text())
        return 0
    return 0 if compare(path, text(), command) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
