"""What axe-core finds on a view of the dashboard, in both themes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

_AXE = Path(__file__).parents[3] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
THEMES = ("light", "dark")
#: Whatever ends has ended; what turns for ever may turn.
_RESTS = """() => document.getAnimations().every((each) =>
  each.playState !== 'running' || each.effect?.getComputedTiming().iterations === Infinity)"""
#: Two frames after a change of theme: its transitions have begun.
_IS_PAINTED = """theme => document.documentElement.dataset.theme === theme && new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"""
_RUN = "() => axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)"


def find_violations(page: Page, addresses: Iterable[str]) -> dict[str, list[str]]:
    """Open each address and look at it in each theme; where what is broken, by rule and place."""
    found: dict[str, list[str]] = {}
    for address in addresses:
        open_and_wait(page, address)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            page.wait_for_function(_IS_PAINTED, arg=theme)
            for violation in check(page):
                found.setdefault(violation, []).append(
                    f"{theme} /{address.partition('//')[2].partition('/')[2]}"
                )
    return found


def open_and_wait(page: Page, address: str) -> None:
    """Open a view and wait until it has loaded what it shows."""
    page.goto(address)
    expect(page.get_by_role("heading", level=1).first).to_be_attached()
    page.wait_for_load_state("networkidle")
    expect(page.locator(".n-skeleton")).to_have_count(0)


def check(page: Page) -> list[str]:
    """Return the accessibility rules that the current view breaks, each with the first places."""
    # Colours in the middle of a transition are nobody's.
    page.wait_for_function(_RESTS)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_AXE.read_text(encoding="utf-8"))  # beside the page's own rules for scripts
    return [_describe(violation) for violation in page.evaluate(_RUN)]


def _describe(violation: dict[str, Any]) -> str:
    places = [str(node["target"][0]) for node in violation["nodes"]]
    why = violation["nodes"][0]["failureSummary"].replace("\n", " ")
    return f"{violation['id']} ({len(places)}x): {', '.join(places[:4])}: {why}"


def tell(found: dict[str, list[str]]) -> str:
    """Format what was found, one rule per line, with the views that it concerns."""
    return "\n".join(f"{violation}\n    on {', '.join(views[:6])}" for violation, views in found.items())
