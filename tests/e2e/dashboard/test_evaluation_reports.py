"""Evaluations beside each other: leaderboard, comparison, scores over versions, and reports to send on."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_testing.accessibility import find_violations, tell
from trellis_testing.markup import MARKED_NAME, MARKED_TEXT, find_acting
from trellis_testing.measured_models import TYPES, answer_problems, finish_evaluation, install_benchmark
from trellis_testing.model_folders import write_model_folder

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PROBLEMS = 120
BENCHMARKS = ("gsm8k", "math", "math500")
WRITE = "from trellis_workers.evaluations.write_reports import write_reports; write_reports()"
#: What reaches beyond the screen, where the page as a whole does.
IS_TOO_WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
PHONE = {"width": 390, "height": 844}


@dataclass(frozen=True)
class Measured:
    """Two models on three benchmarks, the second better than the first."""

    url: str
    environment: dict[str, str]
    models: dict[str, str]
    evaluations: dict[str, str]


@pytest.fixture(scope="module")
def measured(dashboard, api) -> Iterator[Measured]:  # type: ignore[no-untyped-def]
    """Everything is asked for over the API; what a run would leave is written down."""
    settings = Settings(data_root=dashboard.data_root)
    database = Database(settings)
    models, evaluations = {}, {}
    for name in BENCHMARKS:
        groups = {} if name == "gsm8k" else {"type": dict.fromkeys(TYPES, 100)}
        install_benchmark(database, name, groups)
    for number, name in enumerate(("acorn", "oak")):
        write_model_folder(dashboard.data_root / "models" / name)
        source = {"kind": "local", "path": f"models/{name}"}
        models[name] = api.request("POST", "/models", json={"name": name, "source": source})["id"]
        body = {
            "targets": [{"kind": "model", "model": models[name]}],
            "benchmarks": [{"benchmark": each, "limit": PROBLEMS} for each in BENCHMARKS],
        }
        made = api.request("POST", "/evaluations", json=body)["items"][0]
        samples = {
            each: answer_problems(each, PROBLEMS, 0.3 + 0.4 * number, seed=number) for each in BENCHMARKS
        }
        finish_evaluation(settings, database, made["id"], samples)
        evaluations[name] = made["id"]
    yield Measured(dashboard.url, dashboard.environment, models, evaluations)
    for one in api.request("GET", "/reports?limit=100")["items"]:
        api.delete(f"/reports/{one['id']}")
    for evaluation in evaluations.values():
        api.delete(f"/evaluations/{evaluation}")
    for model in models.values():
        api.delete(f"/models/{model}")
    database.dispose()


def write_reports(measured: Measured) -> None:
    """What a worker does with reports that wait."""
    subprocess.run([sys.executable, "-c", WRITE], env=measured.environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def report(measured: Measured, api) -> Any:  # type: ignore[no-untyped-def]
    """A report on both models, written as a worker writes it."""
    body = {"name": "Acorn and oak", "evaluations": list(measured.evaluations.values()), "samples": 2}
    made = api.request("POST", "/reports", json=body)
    write_reports(measured)
    return api.request("GET", f"/reports/{made['id']}")


def test_the_leaderboard_ranks_models_and_leads_to_their_comparison(
    logged_in: Page, measured: Measured
) -> None:
    logged_in.goto(f"{measured.url}/evaluations/leaderboard?label=gsm8k")
    board = logged_in.locator("[data-test=board]")
    first = board.locator(f"[data-evaluation={measured.evaluations['oak']}]")
    second = board.locator(f"[data-evaluation={measured.evaluations['acorn']}]")

    expect(first).to_contain_text("oak")
    expect(first.locator(".rank")).to_have_text("1")
    expect(first.locator(".score")).to_contain_text(re.compile(r"\d\d\.\d%\s*\d\d\.\d% – \d\d\.\d%"))
    expect(second.locator(".rank")).not_to_have_text("1")

    second.get_by_role("checkbox").check()
    expect(logged_in.get_by_role("button", name="Select another")).to_be_disabled()
    first.get_by_role("checkbox").check()
    logged_in.get_by_role("button", name=re.compile("^Compare")).click()

    pair = f"ids={measured.evaluations['acorn']},{measured.evaluations['oak']}"
    expect(logged_in).to_have_url(re.compile(re.escape(pair)))


def test_the_matrix_has_a_score_for_each_pair_and_sorts_by_benchmark(
    logged_in: Page, measured: Measured
) -> None:
    logged_in.goto(f"{measured.url}/evaluations/matrix")
    matrix = logged_in.locator("[data-test=matrix]")
    rows = matrix.locator("tbody tr")

    expect(matrix.locator("thead th")).to_have_count(len(BENCHMARKS) + 2)
    oak = rows.filter(has_text="oak")
    expect(oak.get_by_role("link", name=re.compile(r"GSM8K, rank 1: \d\d\.\d%"))).to_be_visible()
    expect(oak.locator("td.num")).to_have_text("1")

    matrix.get_by_role("button", name="Sort by GSM8K").click()
    expect(rows.first).to_contain_text("oak")
    matrix.get_by_role("button", name="Sort by GSM8K").click()
    expect(rows.first).to_contain_text("acorn")
    logged_in.get_by_label("Find a model or checkpoint").fill("oak")
    expect(rows).to_have_count(1)

    matrix.locator("[data-column=gsm8k] a").click()
    expect(logged_in).to_have_url(re.compile(r"/evaluations/leaderboard\?label=gsm8k&metric="))


def test_evaluations_with_results_break_no_rule_of_accessibility(
    logged_in: Page, measured: Measured, report: dict[str, Any]
) -> None:
    paths = (
        *("/evaluations", "/evaluations/leaderboard", "/evaluations/matrix"),
        "/evaluations/compare?ids={acorn},{oak}".format(**measured.evaluations),
        *(f"/evaluations/{measured.evaluations['oak']}", "/reports", f"/reports/{report['id']}"),
        f"/models/{measured.models['oak']}",
    )

    found = find_violations(logged_in, [measured.url + path for path in paths])

    assert not found, tell(found)


def test_a_comparison_says_what_the_difference_is_worth_and_leads_to_the_problems(
    logged_in: Page, measured: Measured
) -> None:
    a, b = measured.evaluations["acorn"], measured.evaluations["oak"]
    logged_in.goto(f"{measured.url}/evaluations/compare?a={a}&b={b}")
    card = logged_in.locator("[data-label=gsm8k]")

    expect(card.locator(f"[data-row={b}]")).to_have_attribute("data-outcome", "higher")
    expect(card).to_contain_text(re.compile(r"120 shared.*McNemar", re.DOTALL))
    expect(logged_in.locator("[data-test=radar] canvas")).to_be_visible()
    problems = logged_in.locator("[data-test=disagreements]")
    expect(problems.locator("[data-problem]").first).to_contain_text(re.compile("A.*B", re.DOTALL))
    expect(problems.locator("[data-problem]")).to_have_count(20)

    logged_in.locator("[data-test=make-baseline]").click()
    expect(card.locator(f"[data-row={a}]")).to_have_attribute("data-outcome", "lower")
    expect(logged_in).to_have_url(re.compile(f"compare.ids={b},{a}"))
    card.locator("[data-test=worsened]").click()
    expect(logged_in).to_have_url(re.compile(rf"/evaluations/{a}\?.*label=gsm8k&against={b}&changed=worse"))


def test_three_benchmarks_of_an_evaluation_have_a_shape(logged_in: Page, measured: Measured) -> None:
    logged_in.goto(f"{measured.url}/evaluations/{measured.evaluations['oak']}")

    expect(logged_in.locator("#evaluation-panel [data-test=radar] canvas")).to_be_visible()


def test_a_models_page_shows_its_scores_and_starts_an_evaluation(logged_in: Page, measured: Measured) -> None:
    logged_in.goto(f"{measured.url}/models/{measured.models['oak']}")
    history = logged_in.locator("[data-test=history]")

    expect(history.locator("canvas")).to_be_visible()
    link = history.get_by_role("link", name="oak")
    expect(link).to_have_attribute("href", f"/evaluations/{measured.evaluations['oak']}")
    logged_in.locator("[data-test=evaluate]").click()
    expect(logged_in).to_have_url(re.compile(rf"/evaluations/new\?model={measured.models['oak']}"))


def test_a_report_is_ordered_in_a_language_written_and_deleted(logged_in: Page, measured: Measured) -> None:
    logged_in.goto(f"{measured.url}/evaluations/{measured.evaluations['oak']}")
    logged_in.locator("[data-test=report]").click()
    dialog = logged_in.get_by_role("dialog")
    submit = dialog.get_by_role("button", name="Create", exact=True)
    expect(dialog.locator("[data-test=report-evaluations]")).to_contain_text("oak")
    expect(submit).to_be_disabled()
    dialog.get_by_label("Title").fill("橡树的成绩")
    dialog.get_by_text("中文").click()
    dialog.get_by_label("Examples per benchmark").fill("1")
    dialog.get_by_text("PDF").click()
    submit.click()
    logged_in.wait_for_url(re.compile("/reports/rep_"))
    expect(logged_in.get_by_text("This page updates automatically")).to_be_visible()

    write_reports(measured)

    preview = logged_in.frame_locator("[data-test=report-preview]")
    expect(preview.get_by_role("heading", name="橡树的成绩")).to_be_visible()
    expect(logged_in.locator("[data-test=download-pdf]")).to_have_count(0)
    logged_in.locator("[data-test=delete]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(logged_in).to_have_url(re.compile("/reports$"))
    expect(logged_in.get_by_text("橡树的成绩", exact=True)).to_have_count(0)


def test_a_report_is_previewed_without_scripts_and_downloaded_in_every_format(
    logged_in: Page, measured: Measured, report: dict[str, Any]
) -> None:
    logged_in.goto(f"{measured.url}/reports/{report['id']}")
    frame = logged_in.locator("[data-test=report-preview]")
    expect(frame).to_have_attribute("sandbox", "")
    expect(
        logged_in.frame_locator("[data-test=report-preview]").get_by_role("heading", name="Acorn and oak")
    ).to_be_visible()

    for format_, beginning in (("md", b"# Acorn and oak"), ("html", b"<!"), ("pdf", b"%PDF-")):
        with logged_in.expect_download() as download:
            logged_in.locator(f"[data-test=download-{format_}]").click()
        file = download.value
        assert file.suggested_filename == f"Acorn and oak.{format_}"
        assert file.path().read_bytes().lower().startswith(beginning.lower())


@pytest.fixture
def marked(measured: Measured, dashboard, api) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """An evaluation with markup in the prompts, responses and groups of its samples; deleted afterwards."""
    settings = Settings(data_root=dashboard.data_root)
    database = Database(settings)
    target = {"kind": "model", "model": measured.models["oak"]}
    body = {"targets": [target], "benchmarks": [{"benchmark": "gsm8k", "limit": 20}], "name": MARKED_NAME}
    made = api.request("POST", "/evaluations", json=body)["items"][0]["id"]
    texts = dict.fromkeys(("prompt", "output", "extracted", "gold"), MARKED_TEXT)
    samples = [each.model_copy(update=texts) for each in answer_problems("gsm8k", 20, 0.5, seed=3)]
    finish_evaluation(settings, database, made, {"gsm8k": samples})
    yield made
    api.delete(f"/evaluations/{made}")
    database.dispose()


def test_markup_in_samples_and_titles_stays_text_in_pages_and_reports(  # type: ignore[no-untyped-def]
    browser: Browser, measured: Measured, marked: str, dashboard, api, tmp_path: Path
) -> None:
    """Also in a browser that ignores the content security policy: what is escaped needs none."""
    order = {"name": MARKED_NAME, "evaluations": [marked], "samples": 3, "formats": ["html", "md"]}
    made = api.request("POST", "/reports", json=order)["id"]
    write_reports(measured)
    context = browser.new_context(locale="en-GB", bypass_csp=True)
    page = context.new_page()
    login = {"data": json.dumps({"token": dashboard.token}), "headers": {"Content-Type": "application/json"}}
    page.request.post(f"{dashboard.url}/api/v1/auth/login", **login)
    file = tmp_path / "report.html"
    exported = page.request.get(f"{dashboard.url}/api/v1/reports/{made}/file?format=html")
    file.write_bytes(exported.body())

    found = {}
    for address in (
        f"{dashboard.url}/evaluations/{marked}?label=gsm8k",
        f"{dashboard.url}/reports/{made}",
        file.as_uri(),
    ):
        page.goto(address)
        expect(page.locator("body")).to_contain_text("onerror=")
        page.wait_for_load_state("networkidle")
        if acting := find_acting(page):
            found[address] = acting
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    context.close()

    assert found == {}
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert exported.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "path", ["/evaluations/leaderboard", "/evaluations/matrix", "/evaluations/compare", "/reports", "/report"]
)
def test_nothing_is_wider_than_a_phone(
    logged_in: Page, measured: Measured, report: dict[str, Any], path: str
) -> None:
    places = {
        "/evaluations/compare": "/evaluations/compare?a={acorn}&b={oak}".format(**measured.evaluations),
        "/report": f"/reports/{report['id']}",
    }
    logged_in.set_viewport_size(PHONE)
    logged_in.goto(measured.url + places.get(path, path))
    logged_in.wait_for_load_state("networkidle")

    assert not logged_in.evaluate(IS_TOO_WIDE)
