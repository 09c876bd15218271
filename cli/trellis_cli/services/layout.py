"""Where a platform keeps its processes' files, and the ports and names that it settled on."""

import contextlib
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field
from trellis_contracts.private_files import create_private, write_private

from trellis_cli.errors import Problem
from trellis_cli.services.ports import pick_free, wait_until_free

#: Ray puts sockets up to this many characters below its folder; the kernel allows 107 in all.
_RAY_SOCKET_TAIL = 70
_SOCKET_PATH_LIMIT = 107
_RAY_PORTS = (
    "gcs",
    "dashboard",
    "dashboard_agent",
    "dashboard_agent_grpc",
    "runtime_env_agent",
    "object_manager",
    "node_manager",
    "metrics_export",
    "autoscaler_metrics",
    "dashboard_metrics",
)


class PlatformState(BaseModel):
    """``<data_root>/run/services.json``: what a later command must know of the running platform."""

    instance: str = Field(default_factory=lambda: secrets.token_hex(8))
    api_port: int | None = None
    #: Of the API that was started last: the address on which it listens.
    api_host: str | None = None
    redis_port: int | None = None
    redis_password: str = Field(default_factory=lambda: secrets.token_urlsafe(24))
    ray_ports: dict[str, int] = Field(default_factory=dict)
    #: The addresses of API, broker and cluster that each service was started with.
    told: dict[str, list[str]] = Field(default_factory=dict)


class Layout:
    """The files of one data root that belong to the services."""

    def __init__(self, data_root: Path) -> None:
        self.data_root = data_root
        self.run_dir = data_root / "run"
        self.log_dir = data_root / "logs"
        self.state_path = self.run_dir / "services.json"
        self.ray_token_path = data_root / "ray" / "token"

    def pid_path(self, service: str) -> Path:
        """Return the path of a service's pid file."""
        return self.run_dir / f"{service}.pid"

    def log_path(self, service: str) -> Path:
        """Return the path of a service's log."""
        return self.log_dir / f"{service}.log"

    def prepare(self) -> None:
        """Make the folders, or say why the data root cannot be used."""
        try:
            for folder in (self.run_dir, self.log_dir, self.data_root / "redis", self.data_root / "ray"):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o700)
            probe = self.run_dir / f".writable-{os.getpid()}"
            probe.write_text("")
            probe.unlink()
        except OSError as error:
            raise Problem(
                f"can't write to the data root {self.data_root}: {error.strerror}",
                hint="choose another folder with TRELLIS_DATA_ROOT, or fix its permissions",
            ) from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let one command at a time start or end services of this data root."""
        self.prepare()
        with (self.run_dir / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def try_locked(self, name: str = "lock") -> Iterator[bool]:
        """Hold a lock for the block, or find it taken: the block runs either way and is told."""
        self.prepare()
        with (self.run_dir / name).open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def read_state(self) -> PlatformState:
        """Read the saved state, or return a new one."""
        try:
            return PlatformState.model_validate_json(self.state_path.read_text())
        except (FileNotFoundError, NotADirectoryError):
            return PlatformState()
        except ValueError as error:
            raise Problem(
                f"{self.state_path} is damaged: {error}", hint="stop the platform and delete the file"
            ) from error

    def write_state(self, state: PlatformState) -> None:
        """Keep the state, readable by its owner alone: it holds the password of the embedded Redis."""
        write_private(self.state_path, state.model_dump_json(indent=1))

    def ray_temp_dir(self) -> Path:
        """Return a folder for Ray's sockets, under the data root if the kernel's path limit allows.

        Otherwise a private folder under /tmp, named after the data root and linked from it.
        """
        inside = self.data_root / "ray" / "head"
        if len(str(inside)) + _RAY_SOCKET_TAIL <= _SOCKET_PATH_LIMIT and " " not in str(inside):
            inside.mkdir(parents=True, exist_ok=True)
            return inside
        digest = hashlib.sha256(str(self.data_root).encode()).hexdigest()[:10]
        private = Path(f"/tmp/trellis-{os.getuid()}-{digest}")  # noqa: S108 - made private below
        with contextlib.suppress(FileExistsError):
            private.mkdir(mode=0o700)
        found = private.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise Problem(f"{private} belongs to another user or is accessible to others", hint="delete it")
        # Ray opens its folder to everybody, so it gets one inside the private one.
        outside = private / "r"
        outside.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):
            inside.symlink_to(outside)
        return outside

    def ray_token(self) -> str:
        """Return the token of our own Ray head, which is created at the first start."""
        if not self.ray_token_path.exists():
            self.ray_token_path.parent.mkdir(parents=True, exist_ok=True)
            create_private(self.ray_token_path, secrets.token_hex(32))
        return self.ray_token_path.read_text().strip()


def settle_redis_port(state: PlatformState, patience_s: float = 0.0) -> None:
    """Keep the embedded Redis's port while it is free (or soon will be), else take another."""
    if state.redis_port is None or not wait_until_free([state.redis_port], patience_s):
        (state.redis_port,) = pick_free(1)


def settle_ray_ports(state: PlatformState, patience_s: float = 0.0) -> None:
    """Keep Ray's ports while all are free (or soon will be), else take others."""
    ports = state.ray_ports
    if set(ports) != set(_RAY_PORTS) or not wait_until_free(ports.values(), patience_s):
        state.ray_ports = dict(zip(_RAY_PORTS, pick_free(len(_RAY_PORTS)), strict=True))
