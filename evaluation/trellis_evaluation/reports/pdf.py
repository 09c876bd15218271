"""PDF of a report: its HTML printed by the system's Chromium, without a window and without a network."""

import os
import shutil
from pathlib import Path

from trellis_evaluation.problem import EvaluationProblem

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
#: An address that nothing listens on: whatever a page asks for fails at once.
_NOWHERE = "http://127.0.0.1:9"
_FOOTER = (
    '<div style="width:100%;padding:0 15mm;font:8px sans-serif;color:#5b6773;text-align:right">'
    '<span class="pageNumber"></span> / <span class="totalPages"></span></div>'
)


def find_chromium() -> str | None:
    """Find the browser that prints PDFs; None if there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def render_pdf(html_path: Path, pdf_path: Path, *, timeout_s: float = 120.0) -> None:
    """Print ``html_path`` on A4 into ``pdf_path``, which appears whole or not at all.

    Scripts are off and every request but the file itself is refused. ``EvaluationProblem`` where there is no
    Chromium (``chromium_missing``) or it has not printed after ``timeout_s`` seconds (``pdf_failed``).
    """
    executable = find_chromium()
    if executable is None:
        raise EvaluationProblem(
            "chromium_missing", "PDFs are printed by Chromium: install it (Debian: apt-get install chromium)."
        )
    # Only where a PDF is made: the import takes a while.
    from playwright.sync_api import Error, sync_playwright

    beside = pdf_path.with_name(f".{pdf_path.name}.{os.getpid()}")
    address, limit = html_path.absolute().as_uri(), timeout_s * 1000
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=executable, timeout=limit, args=_arguments(), proxy={"server": _NOWHERE}
            )
            try:
                context = browser.new_context(java_script_enabled=False, offline=True)
                context.set_default_timeout(limit)
                page = context.new_page()
                page.route("**/*", lambda route: _let_only(address, route))
                page.goto(address, wait_until="load")
                page.pdf(
                    path=beside, prefer_css_page_size=True, print_background=True, tagged=True, outline=True,
                    display_header_footer=True, header_template="<span></span>", footer_template=_FOOTER,
                )  # fmt: skip
            finally:
                browser.close()
        beside.replace(pdf_path)
    except Error as error:
        raise EvaluationProblem(
            "pdf_failed", f"Chromium did not print the report: {error.message}"
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def _let_only(address: str, route: object) -> None:
    if route.request.url == address:  # type: ignore[attr-defined]
        route.continue_()  # type: ignore[attr-defined]
    else:
        route.abort()  # type: ignore[attr-defined]


def _arguments() -> list[str]:
    """Return Chromium's arguments; its own sandbox does not start as root, common in containers."""
    arguments = ["--disable-gpu", "--disable-dev-shm-usage"]
    return [*arguments, "--no-sandbox"] if os.geteuid() == 0 else arguments
