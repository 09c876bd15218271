"""The examples in the source distribution of the official OpenAI client: fetched, and never kept."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

#: The client's version in the locks. Another version has another hash, and may have other examples.
VERSION = "3.52.0"
SHA256 = "258a4fec3e40b412c58672526ed33f20738c2e4ea27601792e73843af62466af"
_TIMEOUT_S = 300
#: What pip says where it got no answer, or where the index has no source distributions.
_NO_ANSWER = re.compile(r"No matching distribution|Could not find a version|Connection|Timeout|resolve host")


class NoAnswer(Exception):
    """The package index that pip is configured with does not give the package."""


def read_locked_version(lock: Path) -> str:
    """Read the client's version in a file of locked requirements."""
    found = re.search(r"^openai==(\S+)", lock.read_text(), re.MULTILINE)
    assert found is not None, f"{lock} has no openai"
    return found.group(1)


def fetch_examples(folder: Path) -> Path:
    """Download the source distribution, whose hash pip checks, and return the folder of its examples.

    Raises ``NoAnswer`` where there is none to be had; any other failure is one of the caller's test.
    """
    wanted = folder / "requirement.txt"
    wanted.write_text(f"openai=={VERSION} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", "openai", "--no-cache-dir", "--require-hashes"]
    ended = subprocess.run(
        [*command, "--dest", str(folder), "--requirement", str(wanted)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        timeout=_TIMEOUT_S,
        check=False,
    )
    if ended.returncode and _NO_ANSWER.search(ended.stderr):
        raise NoAnswer(f"pip's index does not give the sources of openai {VERSION}")
    assert not ended.returncode, ended.stderr[-2000:]
    (archive,) = folder.glob("openai-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / f"openai-{VERSION}" / "examples"


def list_examples(folder: Path) -> set[str]:
    """List the examples: scripts by their path, and those with a folder of their own by its name."""
    scripts = {path.name for path in folder.glob("*.py")}
    scripts |= {
        f"responses/{path.name}" for path in (folder / "responses").glob("*.py") if path.stat().st_size
    }
    folders = {path.name for path in folder.iterdir() if path.is_dir()} - {"responses"}
    return scripts | {f"{name}/" for name in folders}
