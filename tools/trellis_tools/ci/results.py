"""Where test runs keep their results: `.test-results` in the checkout, outside git."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from trellis_cli.errors import Problem
from trellis_cli.services.platform import REPOSITORY_ROOT

FOLDER = REPOSITORY_ROOT / ".test-results"
FAST_FOLDER = FOLDER / "fast"
COMPLETE_FOLDER = FOLDER / "all"
#: Commits that `test --all` passed on, the newest last.
PASSED = FOLDER / "passed.json"


def git(*arguments: str) -> str:
    """Run git in this checkout and return its output.

    Raises:
        Problem: git refuses, for instance a commit that it does not know.
    """
    done = subprocess.run(  # noqa: S603 - git with arguments, no shell
        ["git", *arguments],  # noqa: S607
        cwd=REPOSITORY_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Problem(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def identify_tree() -> str:
    """Name the exact content of the checkout: commit, plus a hash of what is not committed."""
    commit = git("rev-parse", "HEAD").strip()
    changes = git("diff", "--binary", "HEAD")
    untracked = git("ls-files", "--others", "--exclude-standard", "-z").split("\0")[:-1]
    if not changes and not untracked:
        return commit
    digest = hashlib.sha256(changes.encode())
    for name in untracked:
        path = REPOSITORY_ROOT / name
        digest.update(name.encode() + b"\0" + (path.read_bytes() if path.is_file() else b""))
    return f"{commit}+{digest.hexdigest()[:12]}"


def read_json(path: Path) -> Any:
    """Read a JSON file; None if it does not exist."""
    return json.loads(path.read_text()) if path.exists() else None


def note_passed(commit: str) -> None:
    """Remember that all tests passed on a commit."""
    found = [each for each in read_json(PASSED) or [] if each != commit]
    write_json(PASSED, [*found, commit])


def find_base() -> str:
    """Find the newest commit of this branch on which all tests passed in this checkout; else its parent."""
    for commit in reversed(read_json(PASSED) or []):
        done = subprocess.run(  # noqa: S603
            ["git", "merge-base", "--is-ancestor", commit, "HEAD"],  # noqa: S607
            cwd=REPOSITORY_ROOT,
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            return str(commit)
    try:
        return git("rev-parse", "--verify", "--quiet", "HEAD~1").strip()
    except Problem:
        raise Problem("HEAD has no parent to compare with", hint="specify a commit with --base") from None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file at once: a run that is interrupted leaves the old one or the new one."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value))
    partial.replace(path)
