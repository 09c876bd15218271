"""No space, or no right to write: it is said before anything is launched, and clearly."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from trellis_cli.services.platform import python_command
from trellis_cli.services.ports import pick_free
from trellis_tools.bench.light_platform import light_platform

pytestmark = [pytest.mark.faults]

MIB = 1024**2


def refusal(client: Any, request: dict[str, Any]) -> tuple[int, str, str]:
    """Status, code and message with which a launch is refused."""
    answer = httpx.post(
        f"{client.url}/api/v1/jobs", json=request, headers={"Authorization": client.token_header}, timeout=30
    )
    body = answer.json()
    return answer.status_code, str(body.get("error")), str(body.get("message"))


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of its own with 100 MB more than a launch asks for."""
    folder = tempfile.mkdtemp(prefix="trellis-disk-")
    command = ["mount", "-t", "tmpfs", "-o", f"size={(1024 + 100) * MIB}", "tmpfs", folder]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if mounted.returncode:
        os.rmdir(folder)
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.strip()}")
    monkeypatch.setattr(tempfile, "tempdir", folder)
    yield Path(folder)
    subprocess.run(["umount", "--lazy", folder], check=True)
    os.rmdir(folder)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder under its own name as a read-only mount, which holds for root too."""
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_launch_is_refused_while_the_disk_is_full_or_read_only(small_disk: Path) -> None:
    with light_platform() as platform:
        request = platform.job_request()
        accepted = platform.client.post("/jobs", request)

        filling = small_disk / "filling"
        filling.write_bytes(b"\0" * 110 * MIB)
        full = refusal(platform.client, request)
        filling.unlink()
        with read_only(small_disk):
            unwritable = refusal(platform.client, request)
        jobs = list(platform.client.pages("/jobs"))

    assert full[:2] == (507, "storage_full")
    assert "disk space" in full[2]
    assert unwritable[:2] == (503, "storage_unwritable")
    assert "cannot write" in unwritable[2]
    # Nothing is launched later that was refused now.
    assert [job["id"] for job in jobs] == [accepted["id"]]


def test_a_queued_job_is_not_started_on_a_disk_that_became_full(rig: Any) -> None:
    rig.starter()  # a worker writes its dataset
    rig.kill("worker", "beat")
    job = rig.launch("sft", "queued before the disk was full", total_steps=3)

    rig.start(TRELLIS_MIN_FREE_DISK_BYTES=str(2**60))
    ended = rig.wait_for_state(job, "failed", timeout_s=60)
    rig.kill("worker", "beat")
    rig.start()

    assert ended["failure"]["cause"] == "storage_full"
    assert "disk space" in ended["failure"]["reason"]
    assert ended["failure"]["hint"]
    assert not rig.platform.settings.attempt_dir(job, 1).exists()
    assert rig.count_used_slots() == 0


def test_a_platform_does_not_start_where_it_cannot_write() -> None:
    # Not even root can make a folder there.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRELLIS_")}
    environment |= {"TRELLIS_DATA_ROOT": "/proc/trellis", "TRELLIS_PORT": str(pick_free(1)[0])}

    done = subprocess.run(
        python_command("-m", "trellis_cli", "up"),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert "can't write to the data root /proc/trellis" in " ".join(done.stderr.split())
    assert "TRELLIS_DATA_ROOT" in done.stderr
    assert "Traceback" not in done.stderr
