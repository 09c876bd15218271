"""One platform as its services see it: settings, files, and the addresses they tell each other."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError
from trellis_api.core.settings import Settings
from trellis_contracts.private_settings import PRIVATE_SETTINGS

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.services.layout import Layout, PlatformState
from trellis_cli.services.process import MARK

REPOSITORY_ROOT = Path(__file__).resolve().parents[3]
#: Keys that work on data uses, in workers.
SECRET_PREFIXES = ("AWS_", "EMBEDDING_")


@dataclass
class Platform:
    """Everything that starting, asking and ending a service needs."""

    settings: Settings
    layout: Layout
    state: PlatformState
    #: What the caller's environment says; the rest is embedded.
    external_redis_url: str | None
    external_ray_address: str | None

    @property
    def redis_url(self) -> str:
        """The broker's address."""
        if self.external_redis_url:
            return self.external_redis_url
        return f"redis://:{self.state.redis_password}@127.0.0.1:{self.state.redis_port}/0"

    @property
    def ray_address(self) -> str:
        """The GCS address of the cluster."""
        return self.external_ray_address or f"127.0.0.1:{self.state.ray_ports.get('gcs', 0)}"

    @property
    def ray_dashboard_url(self) -> str:
        """The address of Ray's Jobs API."""
        if self.settings.ray_dashboard_url:
            return self.settings.ray_dashboard_url
        if self.external_ray_address:
            host = urlsplit(f"//{self.external_ray_address}").hostname
            return f"http://{host}:8265"
        return f"http://127.0.0.1:{self.state.ray_ports.get('dashboard', 0)}"

    @property
    def url(self) -> str:
        """Where this machine reaches the API."""
        return _url_of(self.settings.host, self.settings.port)

    @property
    def last_url(self) -> str:
        """Where it reaches the API that was started last."""
        return _url_of(self.state.api_host or self.settings.host, self.state.api_port or self.settings.port)

    @property
    def addresses(self) -> list[str]:
        """Where API, broker and cluster are: what a service is told at its start, and cannot learn later."""
        return [self.url, self.redis_url, self.ray_address, self.ray_dashboard_url]

    def follow(self) -> None:
        """Take over what others have settled on meanwhile, the place of the API included."""
        self.state = self.layout.read_state()
        self.settings.port = self.state.api_port or self.settings.port
        self.settings.host = self.state.api_host or self.settings.host

    def mark(self, service: str) -> str:
        """Return the value that marks a service's processes."""
        return f"{self.state.instance}:{service}"

    def environment(self, service: str) -> dict[str, str]:
        """Build the environment of a service: the caller's, with every address set explicitly."""
        env = dict(os.environ)
        # Without bytecode every process of a run would compile torch, Ray and vLLM anew.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env |= {
            MARK: self.mark(service),
            "TRELLIS_DATA_ROOT": str(self.settings.data_root),
            "TRELLIS_HOST": self.settings.host,
            "TRELLIS_PORT": str(self.settings.port),
            # Jobs report there, also where the API listens on one address that is not the loopback's.
            "TRELLIS_PUBLIC_URL": self.settings.public_url or self.url,
            "TRELLIS_SLOTS": str(self.settings.total_slots),
            "TRELLIS_REDIS_URL": self.redis_url,
            "TRELLIS_RAY_ADDRESS": self.ray_address,
            "TRELLIS_RAY_DASHBOARD_URL": self.ray_dashboard_url,
            "PYTHONUNBUFFERED": "1",
        }
        if not self.external_ray_address:
            env |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.layout.ray_token_path)}
            # Ray would listen on the machine's outward address; this switch keeps it on loopback.
            env |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
            ports = self.state.ray_ports
            # Fixed ports otherwise: a second head on this machine would find them taken.
            env |= {
                "AUTOSCALER_METRIC_PORT": str(ports.get("autoscaler_metrics", 0)),
                "DASHBOARD_METRIC_PORT": str(ports.get("dashboard_metrics", 0)),
            }
            env.pop("RAY_AUTH_TOKEN", None)
            env.pop("RAY_ADDRESS", None)
        return self._without_secrets(env) if service == "ray" else env

    def _without_secrets(self, env: Mapping[str, str]) -> dict[str, str]:
        """Remove secrets for Ray, whose environment every job inherits: workers give a job the keys it needs.

        What runs there executes other people's models: it is told no address that carries a password.
        """
        of_judges = {judge.key_variable for judge in self.settings.judges.values()}
        return {
            name: value
            for name, value in env.items()
            if not (name in PRIVATE_SETTINGS or name in of_judges or name.startswith(SECRET_PREFIXES))
        }


def _url_of(host: str, port: int) -> str:
    host = "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def python_command(*arguments: str) -> list[str]:
    """Run a module with this interpreter; scripts in bin/ break in paths with spaces."""
    return [sys.executable, *arguments]


def load_platform(port: int | None = None) -> Platform:
    """Load the platform of this environment; its port is the one requested, else set, else last used."""
    try:
        settings = Settings()
    except ValidationError as error:
        wrong = "; ".join(
            f"TRELLIS_{'_'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in error.errors()
        )
        raise Problem(f"invalid settings: {wrong}", exit_code=ExitCode.USAGE) from error
    layout = Layout(settings.data_root)
    state = layout.read_state()
    if port is not None:
        settings.port = port
    elif "TRELLIS_PORT" not in os.environ and state.api_port is not None:
        settings.port = state.api_port
    return Platform(
        settings=settings,
        layout=layout,
        state=state,
        external_redis_url=settings.redis_url,
        external_ray_address=settings.ray_address,
    )
