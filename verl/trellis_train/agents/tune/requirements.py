"""Packages that workflows need, installed from pip's configured index into folders of their own.

``python -m trellis_train.agents.tune.requirements install FILE CACHE``, run by a worker and by ``trellis
tune``, prints ``{"path", "packages"}``. The same requirements are installed once: a folder is named by their
hash and appears when it is whole. Only wheels are taken, so that nothing of a package runs while it is
installed; what was installed is imported in the sandbox alone. Leaves with 65 and a sentence on standard
error where that cannot be done.
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from trellis_recipes.workflows.package import MIB, BadPackage, read_requirements

EXIT_BAD_REQUEST = 65
#: Where packages of workflows of this machine's own lie (on a platform: in its data root).
CACHE_VARIABLE = "TRELLIS_WORKFLOW_PACKAGES"
TIMEOUT_S = 900.0
MAX_BYTES = 4096 * MIB
LOG_FILE, LIST_FILE, SITE_FOLDER = "pip.log", "installed.json", "site"
_POLL_S = 0.5
#: Summing up thousands of files takes a while.
_MEASURE_S = 5.0
_SHOWN_CHARACTERS = 700


class NotInstalled(RuntimeError):
    """Packages are not there, or cannot be installed; the message says why."""


def cache_folder() -> Path:
    """Return the cache folder of this machine."""
    chosen = os.environ.get(CACHE_VARIABLE)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else home / "trellis" / "workflow-packages"


def hash_requirements(requirements: Sequence[str]) -> str:
    """Return the folder name: a hash of the requirements, the Python version and the machine type."""
    kind = [f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine(), sys.platform]
    text = json.dumps([sorted(requirements), kind])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def find_installed(requirements: Sequence[str], cache: Path | None = None) -> Path | None:
    """Return the folder to import from, or None without requirements; ``NotInstalled`` if missing."""
    if not requirements:
        return None
    place = (cache or cache_folder()) / hash_requirements(requirements)
    if not (place / LIST_FILE).is_file():
        raise NotInstalled(
            f"The workflow's {len(requirements)} requirements are not installed yet;"
            " trellis tune validate or trellis tune run installs them."
        )
    return place / SITE_FOLDER


def install(
    requirements: Sequence[str], cache: Path, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_BYTES
) -> Path | None:
    """Install what is not there yet; the folder to import from. ``NotInstalled`` says what is in the way."""
    if not requirements:
        return None
    if find_spec("pip") is None:
        raise NotInstalled(f"The jobs' Python ({sys.executable}) has no pip to install requirements with.")
    cache.mkdir(parents=True, exist_ok=True)
    key = hash_requirements(requirements)
    place = cache / key
    with _locked(cache / f".{key}.lock"):
        if not (place / LIST_FILE).is_file():
            draft = cache / f".{key}.partial"
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            try:
                _install(requirements, draft, timeout_s, max_bytes)
                shutil.rmtree(place, ignore_errors=True)
                draft.rename(place)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
    return place / SITE_FOLDER


def _install(requirements: Sequence[str], draft: Path, timeout_s: float, max_bytes: int) -> None:
    site, log, temporary = draft / SITE_FOLDER, draft / LOG_FILE, draft / "tmp"
    temporary.mkdir()
    command = [
        sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check",
        "--progress-bar", "off",
        # Builds of source packages would run their code here.
        "--only-binary", ":all:", "--target", str(site),
        # As arguments: in a file pip would look for options and variables.
        "--", *requirements,
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(temporary), "PIP_NO_CACHE_DIR": "1"},
            start_new_session=True,
        )
        try:
            _wait(process, draft, timeout_s, max_bytes)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode:
        raise NotInstalled(
            f"The requirements could not be installed: {explain(log.read_text(errors='replace'))}"
        )
    shutil.rmtree(temporary, ignore_errors=True)
    listed = {"requirements": sorted(requirements), "packages": _list_packages(site)}
    (draft / LIST_FILE).write_text(json.dumps(listed, indent=2))


def _wait(process: "subprocess.Popen[bytes]", draft: Path, timeout_s: float, max_bytes: int) -> None:
    deadline = time.monotonic() + timeout_s
    measure_at = time.monotonic() + _MEASURE_S
    while True:
        try:
            process.wait(_POLL_S)
            break
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now > deadline:
                raise NotInstalled(f"Installing the requirements took longer than {timeout_s:g} s.") from None
            if now > measure_at:
                _check_size(draft, max_bytes)
                measure_at = time.monotonic() + _MEASURE_S
    _check_size(draft, max_bytes)


def _check_size(folder: Path, max_bytes: int) -> None:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(root, name)
            total += os.lstat(path).st_size if os.path.lexists(path) else 0
    if total > max_bytes:
        raise NotInstalled(f"The requirements are larger than {max_bytes // MIB} MiB.")


def explain(log: str) -> str:
    """Return the reason why pip failed: its errors, else its last lines."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return " ".join(errors or lines[-3:])[-_SHOWN_CHARACTERS:] or "pip says nothing"


def _list_packages(site: Path) -> list[str]:
    """List the packages as ``name-version``."""
    return sorted(path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tune.requirements")
    parser.add_argument("command", choices=("install",))
    parser.add_argument("file", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S)
    parser.add_argument("--max-bytes", type=int, default=MAX_BYTES)
    given = parser.parse_args(arguments)
    # pip is ended together with its parent's time, not left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        requirements = read_requirements(given.file.read_text(encoding="utf-8"))
        site = install(requirements, given.cache, timeout_s=given.timeout, max_bytes=given.max_bytes)
    except (BadPackage, NotInstalled, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    packages = json.loads((site.parent / LIST_FILE).read_text())["packages"] if site else []
    print(json.dumps({"path": str(site) if site else None, "packages": packages}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
