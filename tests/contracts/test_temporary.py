"""Temporary files of runs go with the run, killed or not."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from trellis_contracts.temporary import own_temporary_folder, remove_abandoned

HOLD = """
import tempfile, time
from trellis_contracts.temporary import own_temporary_folder
with own_temporary_folder() as folder:
    tempfile.NamedTemporaryFile(delete=False)
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of temporary files of its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_temporary_files_lie_in_the_folder_of_the_run_and_go_with_it(common: Path) -> None:
    with own_temporary_folder() as folder:
        handle, name = tempfile.mkstemp()
        os.close(handle)
        in_child = subprocess.run(
            [sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"],
            capture_output=True,
            text=True,
            check=True,
        )
        # What is compiled is kept from run to run.
        assert Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent == common

    assert Path(name).parent == folder == Path(in_child.stdout.strip())
    assert not folder.exists()
    assert tempfile.gettempdir() == str(common)


def test_what_a_killed_run_left_is_removed_and_that_of_a_living_one_is_not(common: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        remove_abandoned()
        lived = sorted(path.name for path in folder.iterdir())
        run.kill()
    remove_abandoned()

    assert folder.parent == common
    assert len(lived) == 2
    assert not folder.exists()


def test_a_folder_that_is_being_made_and_other_files_are_left_alone(common: Path) -> None:
    making, other = common / "trellis-run-new", common / "pymp-other"
    making.mkdir()
    other.mkdir()
    old = common / "trellis-run-old"
    old.mkdir()
    os.utime(old, (0, 0))

    remove_abandoned()

    assert [making.exists(), other.exists(), old.exists()] == [True, True, False]
