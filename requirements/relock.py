"""Write the lock files, or with `--check` say whether they still hold.

cpu.lock is everything that cpu.in needs at the versions that are installed: run it inside the environment
that the tests passed in. gpu.lock is resolved by uv from metadata alone, and keeps to the versions of
cpu.lock wherever it can: docs/gpu.md lists where it cannot. Each lock serves every supported Python.
"""

import argparse
import importlib.metadata as metadata
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent
PYTHONS = ("3.11", "3.12")
#: vLLM asks for torch's siblings, which have no CPU build everywhere and which text models never import.
NOT_NEEDED = frozenset({"torchvision", "torchaudio", "torchcodec"})


def environments() -> Iterator[dict[str, str]]:
    """Marker environments that the lock must serve."""
    for version in PYTHONS:
        yield {"python_version": version, "python_full_version": f"{version}.0"}


def direct_requirements(path: Path) -> list[Requirement]:
    """Read the requirements in a `.in` file, without comments."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in lines if line]


def closure(roots: list[Requirement]) -> tuple[dict[str, str], set[str]]:
    """Collect name and version of everything the roots need, and the needed names not installed."""
    found: dict[str, str] = {}
    missing: set[str] = set()
    seen: set[tuple[str, str]] = set()
    pending = [(canonicalize_name(root.name), extra) for root in roots for extra in ("", *root.extras)]
    while pending:
        name, extra = pending.pop()
        if (name, extra) in seen or name in NOT_NEEDED:
            continue
        seen.add((name, extra))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            missing.add(name)
            continue
        found[name] = distribution.version.split("+")[0]
        for line in distribution.requires or []:
            wanted = Requirement(line)
            marker = wanted.marker
            if marker is None or any(marker.evaluate({**env, "extra": extra}) for env in environments()):
                pending += [(canonicalize_name(wanted.name), each) for each in ("", *wanted.extras)]
    return found, missing


def render(found: dict[str, str]) -> str:
    """Render the text of the lock file."""
    header = (
        "# Written by requirements/relock.py from cpu.in. Install with: pip install --no-deps -r cpu.lock\n"
    )
    return header + "".join(f"{name}=={found[name]}\n" for name in sorted(found))


def relock_cpu(check: bool) -> str | None:
    """Write cpu.lock, or check it; the answer is what is wrong."""
    found, missing = closure(direct_requirements(HERE / "cpu.in"))
    if missing:
        return f"needed but not installed: {', '.join(sorted(missing))}"
    lock, text = HERE / "cpu.lock", render(found)
    if not check:
        lock.write_text(text)
    elif lock.read_text() != text:
        return "cpu.lock is not what is installed: run python requirements/relock.py"
    return None


def resolve_gpu(output: Path, python: str, *constraints: str) -> str | None:
    """Resolve gpu.in into `output` for one Python; the answer is uv's message when there is no solution."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "gpu.in",
        "--output-file",
        str(output),
        "--quiet",
    ]
    command += ["--config-file", "uv.toml", "--python-platform", "x86_64-manylinux_2_28"]
    command += ["--python-version", python, "--index-strategy", "unsafe-best-match"]
    command += ["--no-header", "--no-annotate", *constraints]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stderr if done.returncode else None


def write_gpu(lock: Path) -> str | None:
    """Resolve gpu.lock: uv keeps versions that are in the file it writes, which begins as cpu.lock."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "resolved"
        output.write_text((HERE / "cpu.lock").read_text())
        if problem := resolve_gpu(output, PYTHONS[0]):
            return problem
        lock.write_text(output.read_text())
    return None


def relock_gpu(check: bool) -> str | None:
    """Write gpu.lock, or check that it is complete and free of conflicts for every Python."""
    lock = HERE / "gpu.lock"
    if not check:
        return write_gpu(lock)
    pinned = set(lock.read_text().split())
    with tempfile.TemporaryDirectory() as folder:
        for python in PYTHONS:
            output = Path(folder) / "resolved"
            if problem := resolve_gpu(output, python, "--constraint", "gpu.lock"):
                return problem
            if extra := set(output.read_text().split()) - pinned:
                return f"gpu.lock lacks {', '.join(sorted(extra))}: run python requirements/relock.py --gpu"
    return None


def main() -> int:
    """Write or check one lock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when the lock no longer holds")
    parser.add_argument("--gpu", action="store_true", help="gpu.lock instead of cpu.lock")
    options = parser.parse_args()
    problem = (relock_gpu if options.gpu else relock_cpu)(options.check)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    raise SystemExit(main())
