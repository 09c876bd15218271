"""What pages weigh over the wire, and how long they take on a slow line (Chromium's own throttling).

`./init.sh test tests/e2e/dashboard/jobs/test_page_weight.py -s` prints the figures.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from trellis_testing.reporting_jobs import now
from trellis_testing.waiting import PATIENCE

pytestmark = pytest.mark.browser
LOGIN_BYTES = 150_000
FIRST_CURVE_BYTES = 450_000
FIRST_CURVE_S = 4.0
#: Slow 4G: 1.6 Mbit/s down, 750 kbit/s up, 150 ms.
SLOW_4G = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1.6e6 / 8,
    "uploadThroughput": 750e3 / 8,
}
#: A promise of the moment, in ms since the navigation began, at which a chart has drawn its first curve.
NOTE_FIRST_CURVE = """
localStorage.setItem('trellis.session', 'open')  // somebody who has logged in here before
window.firstCurveMs = new Promise((resolve) => {
    const observer = new MutationObserver(() => {
        if (document.querySelector('[data-metric] canvas') === null) return
        observer.disconnect()
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())))
    })
    observer.observe(document, { childList: true, subtree: true })
})
"""
METRICS = ("critic/rewards/mean", "actor/pg_loss", "actor/ppo_kl", "actor/entropy", "actor/grad_norm")


@dataclass
class Wire:
    """What came over the wire since it was opened: bytes with their headers, as Chromium counts them."""

    bytes_by_path: Counter[str] = field(default_factory=Counter)
    paths: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.bytes_by_path.values())

    def print(self, title: str) -> None:
        """The total, and the largest files."""
        print(f"\n{title}: {self.total / 1000:.1f} kB")
        for path, size in self.bytes_by_path.most_common(100):
            print(f"  {size / 1000:8.1f} kB  {path}")


def watch_wire(page: Page, *, is_slow: bool = False) -> Wire:
    """Count what a tab receives from here on, without what it has in its cache."""
    wire, session = Wire(), page.context.new_cdp_session(page)

    def name(event: dict[str, Any]) -> None:
        wire.paths[event["requestId"]] = event["request"]["url"].partition("//")[2].partition("/")[2]

    def add(event: dict[str, Any]) -> None:
        path = wire.paths.get(event["requestId"], "?")
        wire.bytes_by_path["/" + path] += int(event["encodedDataLength"])

    session.on("Network.requestWillBeSent", name)
    session.on("Network.responseReceived", lambda event: add({**event, **event["response"]}))
    session.on("Network.dataReceived", add)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    if is_slow:
        session.send("Network.emulateNetworkConditions", SLOW_4G)
    return wire


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_the_login_page_is_light(browser, dashboard, language: str) -> None:  # type: ignore[no-untyped-def]
    context = browser.new_context(locale=language)
    page = context.new_page()
    wire = watch_wire(page)

    page.goto(f"{dashboard.url}/login")
    expect(page.locator("#token")).to_be_visible()
    page.wait_for_load_state("networkidle")
    context.close()

    wire.print(f"login page, {language}")
    assert wire.total <= LOGIN_BYTES
    own, other = ("zh", "en") if language == "zh-CN" else ("en", "zh")
    assert any(path.startswith(f"/assets/{own}-") for path in wire.bytes_by_path)
    assert not any(path.startswith(f"/assets/{other}-") for path in wire.bytes_by_path)


def test_a_job_shows_its_first_curve_soon_on_a_slow_line(
    page: Page,
    context: BrowserContext,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
) -> None:
    job = launch("far away")
    job.send(*(_step(number) for number in range(1, 301)))
    page.request.post(f"{dashboard.url}/api/v1/auth/login", data={"token": dashboard.token})
    page.add_init_script(NOTE_FIRST_CURVE)
    wire = watch_wire(page, is_slow=True)

    page.goto(f"{dashboard.url}/jobs/{job.id}", wait_until="commit")
    took_s = page.evaluate("window.firstCurveMs") / 1000

    wire.print(f"job page to the first curve, {took_s:.2f} s on slow 4G")
    assert not any(path.startswith(("/assets/library-zh-", "/assets/enRest-")) for path in wire.bytes_by_path)
    assert wire.total <= FIRST_CURVE_BYTES
    assert took_s <= FIRST_CURVE_S * PATIENCE


def _step(number: int) -> dict[str, Any]:
    values = {key: math.sin(number / 30 + at) for at, key in enumerate(METRICS)}
    return {"kind": "metrics", "time": now(), "step": number, "values": values}
