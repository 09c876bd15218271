"""A real API with the built dashboard, an empty data root, and Debian's Chromium."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_cli.client import ApiClient
from trellis_cli.services.ports import pick_free
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.filled_platform import FilledPlatform
from trellis_testing.waiting import PATIENCE

REPOSITORY = Path(__file__).resolve().parents[3]
START_TIMEOUT_S = 120
#: Long, because the machine may be busy with training; what works takes a fraction of it.
WAIT_S = 30 * PATIENCE
expect.set_options(timeout=WAIT_S * 1000)


@dataclass(frozen=True)
class Dashboard:
    """Where the dashboard is served, and the environment that leads to its data."""

    url: str
    data_root: Path
    environment: dict[str, str]

    @property
    def token(self) -> str:
        """The admin token."""
        return (self.data_root / "admin.token").read_text().strip()

    def make_login_link(self) -> str:
        """A fresh one-time link, made as the command line makes it."""
        command = [sys.executable, "-m", "trellis_api.auth.login_link"]
        result = subprocess.run(
            command, env=self.environment, cwd=REPOSITORY, check=True, capture_output=True, text=True
        )
        return result.stdout.strip()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urlopen(f"{url}/healthz", timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"the API did not start:\n{log.read_text()}")


@contextmanager
def carrying_out_data_tasks(data_root: Path) -> Iterator[None]:
    """Datasets are read and pipelines run as long as the block lasts, as soon as they are asked for."""
    settings = Settings(data_root=data_root, database_url=None, redis_url=None, min_free_disk_bytes=0)
    database = Database(settings)
    is_over = Event()

    def work() -> None:
        while not is_over.wait(0.2):
            finish_data_tasks(settings, database)

    thread = Thread(target=work, name="data-tasks")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        database.dispose()


@contextmanager
def serving(data_root: Path) -> Iterator[Dashboard]:
    """The API over an empty data root, and what workers do with data; no Ray, so jobs would wait."""
    if not (REPOSITORY / "frontend" / "dist" / "index.html").is_file():
        pytest.fail("the dashboard is not built: run `npm ci && npm run build` in frontend/")
    port = pick_free(1)[0]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRELLIS_")}
    environment = inherited | {"TRELLIS_DATA_ROOT": str(data_root), "TRELLIS_PORT": str(port)}
    subprocess.run([sys.executable, "-m", "trellis_api.migrate"], env=environment, cwd=REPOSITORY, check=True)
    log = data_root / "api.log"
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "trellis_api.main:create_app",
        "--factory",
        "--port",
        str(port),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=output, stderr=output)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process, log)
        with carrying_out_data_tasks(data_root):
            yield Dashboard(url, data_root, environment)
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="session")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A platform on which every test leaves behind what it found."""
    with serving(tmp_path_factory.mktemp("dashboard-data")) as served:
        yield served


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dashboard, dict[str, str]]]:
    """A platform of its own with something of every kind on it, and what is seen there -> its address."""
    with serving(tmp_path_factory.mktemp("filled-data")) as served:
        settings = Settings(
            data_root=served.data_root, database_url=None, redis_url=None, min_free_disk_bytes=0
        )
        database = Database(settings)
        platform = FilledPlatform(ApiClient(served.url, served.token), settings, database)
        platform.fill()
        yield served, {name: served.url + path for name, path in platform.views.items()}
        database.dispose()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.fail("Chromium is not installed (Debian's package chromium)")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without cookies or memory, in English and light."""
    fresh = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-GB", color_scheme="light")
    fresh.set_default_timeout(WAIT_S * 1000)
    yield fresh
    fresh.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab; the test fails when the page logs an error or breaks the content security policy."""
    tab = context.new_page()
    mistakes: list[str] = []

    def note(message: ConsoleMessage) -> None:
        # The browser itself logs every refused or failed request, which tests bring about on purpose.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            mistakes.append(message.text)

    tab.on("console", note)
    tab.on("pageerror", lambda error: mistakes.append(str(error)))
    yield tab
    assert mistakes == []


@pytest.fixture
def logged_in(page: Page, dashboard: Dashboard) -> Page:
    """A tab with a session, on the overview."""
    page.request.post(
        f"{dashboard.url}/api/v1/auth/login",
        data=json.dumps({"token": dashboard.token}),
        headers={"Content-Type": "application/json"},
    )
    page.goto(dashboard.url)
    page.get_by_role("heading", level=1, name="Overview").wait_for()
    return page


@pytest.fixture(scope="session")
def api(dashboard: Dashboard) -> ApiClient:
    """The API, for a script with the admin token."""
    return ApiClient(dashboard.url, dashboard.token, timeout_s=10)


@pytest.fixture
def call_api(api: ApiClient):  # type: ignore[no-untyped-def]
    """A function that calls the API as a script would: (method, path, body) -> answer."""

    def call(method: str, path: str, body: object = None) -> object:
        return api.request(method, path, json=body)

    return call
