"""The API process, which also serves the dashboard."""

import httpx

from trellis_cli.services.platform import python_command
from trellis_cli.services.service import Service, open_client


class ApiService(Service):
    """FastAPI under uvicorn."""

    name = "api"
    grace_s = 15.0

    def command(self) -> list[str]:
        settings = self.platform.settings
        return python_command(
            *("-m", "uvicorn", "trellis_api.main:create_app", "--factory"),
            *("--host", settings.host, "--port", str(settings.port)),
            # Streams to browsers never end by themselves.
            *("--timeout-graceful-shutdown", "5", "--no-access-log", "--no-server-header"),
        )

    def probe(self) -> str | None:
        try:
            answer = open_client().get(f"{self.platform.url}/readyz", timeout=2.0)
        except httpx.HTTPError as error:
            return f"does not respond: {error}"
        if answer.status_code == 200:
            return None
        try:
            problems = answer.json()["problems"]
            return "; ".join(f"{part} {problem}" for part, problem in problems.items() if problem)
        except (ValueError, KeyError):
            return f"answers {answer.status_code}"

    def find_hang(self) -> str | None:
        try:
            open_client().get(f"{self.platform.url}/healthz", timeout=5.0)
        except httpx.HTTPError as error:
            return f"does not respond: {error}"
        return None

    def describe(self) -> str:
        return self.platform.url
