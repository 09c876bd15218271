"""The data factory over a whole platform: a dirty file becomes clean rows in versions, by a person's hand."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from trellis_api.auth.login_link import create_login_link
from trellis_testing.pages import choose_from_menu

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SOUND, COPIES, MARKED_UP, PERSONAL, BAD = 1200, 60, 40, 40, 3
ROWS = SOUND + COPIES
FILE = "questions.jsonl"
#: Slow enough that the progress of a file of this size is seen.
UPLOAD_BYTES_A_SECOND = 384 * 1024
#: For work that goes through the queue to a worker, on two busy cores.
WORK_MS = 90_000
#: A key of the dictionary in place of its text.
KEY_NAME = re.compile(r"\b(action|datasets|field|jobs|loading|pipelines|rewards|value)(\.[a-z]\w*)+\b")


def make_rows() -> list[dict[str, str]]:
    """Questions and answers of random words; some hold markup, some come twice but for a word."""
    generator = random.Random(7)
    words = ["".join(generator.choices("abdeiklmnoprstu", k=generator.randint(3, 8))) for _ in range(4000)]
    rows = [
        {
            "question": f"What is {' '.join(generator.sample(words, 6))}?",
            "answer": " ".join(generator.sample(words, 40)),
        }
        for _ in range(SOUND)
    ]
    for row in rows[:MARKED_UP]:
        row["answer"] = f"<p>{row['answer']}</p><br>&amp; more"
    for number, row in enumerate(rows[MARKED_UP : MARKED_UP + PERSONAL]):
        row["answer"] += f" Write to reader{number}@example.org  soon."
    copies = [{**row, "answer": row["answer"] + " indeed"} for row in rows[-COPIES:]]
    return rows + copies


def write_dirty(path: Path, rows: list[dict[str, str]]) -> Path:
    """A file with the rows, and between them lines that are no rows."""
    lines = [json.dumps(row) for row in rows]
    lines[10:10] = ['{"question": "cut', "[1, 2]", "not JSON"]
    path.write_text("\n".join(lines) + "\n")
    return path


def open_tab(page: Page, name: str) -> Locator:
    page.get_by_role("tab", name=name, exact=True).click()
    return page.locator("#dataset-panel")


def upload(page: Page, file: Path) -> str:
    """Upload by the dialog, which opens and closes by keys; the id of the dataset."""
    opener = page.get_by_role("main").get_by_role("button", name="Upload dataset").first
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("Enter")  # the button has the focus again

    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    rates = {"downloadThroughput": -1, "uploadThroughput": UPLOAD_BYTES_A_SECOND}
    network.send("Network.emulateNetworkConditions", {"offline": False, "latency": 0, **rates})
    dialog.get_by_test_id("dataset-file").set_input_files(file)
    dialog.get_by_role("button", name="Upload", exact=True).click()
    expect(dialog.locator(f'[data-file="{FILE}"][data-state=sending]')).to_be_visible()
    expect(dialog.get_by_role("progressbar")).to_be_visible()
    page.wait_for_url(re.compile("/datasets/ds_"))
    network.send(
        "Network.emulateNetworkConditions", {"offline": False, "latency": 0, **rates, "uploadThroughput": -1}
    )
    return page.url.rsplit("/", 1)[1].split("?")[0]


def look_at_rows(page: Page) -> None:
    """The bad lines, the rows that were taken, and their numbers."""
    expect(page.get_by_role("tab", name="Sample")).to_be_visible(timeout=WORK_MS)
    page.get_by_role("link", name="View", exact=True).click()
    panel = page.locator("#dataset-panel")
    expect(panel.get_by_role("row")).to_have_count(1 + BAD)
    expect(panel).to_contain_text("not JSON")

    # Tabs are walked by keys.
    page.get_by_role("tab", name="Quarantine").focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("tab", name="Sample")).to_be_focused()
    panel.get_by_label("Search text in all columns").fill("reader7@example.org")
    page.keyboard.press("Enter")
    expect(panel.get_by_text(f"1 found so far ({ROWS:,} of {ROWS:,} rows searched)")).to_be_visible()
    page.get_by_role("tab", name="Sample").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Statistics")).to_be_focused()
    expect(panel.get_by_role("img", name=re.compile("Row length"))).to_be_visible()


def add_step(page: Page, needle: str, operator: str) -> None:
    """By the search in the dialog, with keys alone; the only operator that is left is taken."""
    page.locator("[data-test=add-step]").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("searchbox").fill(needle)
    expect(dialog.locator("[data-operator]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(f'[data-test=steps] [data-step="{operator}"]')).to_be_visible()


def put_together(page: Page) -> None:
    """A pipeline of five steps, tried on real rows and saved."""
    page.get_by_role("button", name="Clean", exact=True).click()
    page.wait_for_url(re.compile("/pipelines/new"))
    add_step(page, "Unicode and white", "normalise_text")
    add_step(page, "HTML", "html")
    add_step(page, "Personal data", "personal_data")
    add_step(page, "MinHash", "minhash_duplicates")
    add_step(page, "Assigns each row", "split")
    preview = page.locator("[data-test=preview]")
    expect(preview.get_by_text("20 rows in, 20 out")).to_be_visible(timeout=WORK_MS)
    expect(preview.get_by_role("list", name="Steps").get_by_role("button")).to_have_count(5)
    preview.get_by_role("button", name=re.compile("HTML")).click()
    expect(preview.locator("[data-state=changed]").first).to_be_visible()
    expect(page.get_by_role("status").get_by_text("Ready to run")).to_be_visible()

    page.locator("[data-test=save-pipeline]").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Tidy up")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile("/pipelines/pip_"))
    expect(page.get_by_role("heading", level=1, name="Tidy up")).to_be_visible()


def run_it(page: Page) -> str:
    """Run the pipeline; its page tells what every step did. The address of the run."""
    page.locator("[data-test=run-pipeline]").click()
    page.get_by_role("dialog").get_by_label("What changed").fill("cleaned")
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(re.compile("/pipelines/runs/dtk_"))
    expect(page.locator("[data-test=made-version]")).to_be_visible(timeout=WORK_MS)

    bars = page.locator("[data-test=funnel] tbody tr")
    expect(bars).to_have_count(6)
    expect(bars.first).to_contain_text(f"{ROWS:,}")
    expect(bars.last).to_contain_text(f"{SOUND:,}")
    masked = page.locator("[data-step=personal_data]")
    expect(masked).to_contain_text("E-mail addresses")
    copies = page.locator("[data-step=minhash_duplicates]")
    copies.get_by_role("tab", name="Dropped rows").click()
    expect(copies.get_by_text(f"{COPIES} rows were dropped.")).to_be_visible()
    copies.get_by_role("tab", name="Duplicates").click()
    expect(copies.locator("[data-cluster]").first).to_contain_text("Similarity 0.9")
    expect(copies.locator("[data-cluster] mark").first).to_have_text(re.compile("indeed"))
    return page.url


def compare_and_roll_back(page: Page) -> None:
    """Two versions, what differs between them, and the first one once more."""
    panel = open_tab(page, "Versions")
    rows = panel.locator("[data-version-row]")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("cleaned")
    panel.locator("[data-test=open-compare]").click()
    compared = panel.locator("[data-test=compare]")
    expect(compared.get_by_role("heading", name="Row changes")).to_be_visible(timeout=WORK_MS)
    expect(compared.get_by_role("row", name=re.compile("^validation"))).to_be_visible()
    expect(compared.get_by_role("heading", name="Statistics compared")).to_be_visible()
    panel.get_by_role("button", name="Close comparison").click()

    panel.get_by_role("button", name="Version 1 details").click()
    panel.locator("[data-test=roll-back]").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Roll back").click()
    expect(dialog).to_have_count(0)
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("main")


def find_duplicates_and_score(page: Page) -> None:
    """The two tabs that look at the rows without changing them, over the rows as they were uploaded."""
    panel = open_tab(page, "Duplicates")
    panel.get_by_role("button", name="Find duplicates").click()
    expect(panel.locator("[data-cluster]").first).to_be_visible(timeout=WORK_MS)
    expect(panel.get_by_text(f"{COPIES} clusters, largest first")).to_be_visible()
    panel = open_tab(page, "Quality")
    panel.locator("[data-test=start-quality]").click()
    expect(panel.get_by_text(f"{ROWS:,} rows scored")).to_be_visible(timeout=WORK_MS)


def look_at_lineage(page: Page) -> None:
    lineage = open_tab(page, "Lineage").get_by_role("group", name="Lineage as a list")
    for kind in ("Sources", "Versions", "Data tasks"):
        expect(lineage.get_by_role("heading", name=kind)).to_be_visible()
    expect(lineage.get_by_text(FILE).first).to_be_visible()
    expect(lineage.get_by_text("Tidy up").first).to_be_visible()


def download_rows(page: Page) -> list[dict[str, Any]]:
    """What the button gives."""
    with page.expect_download() as download:
        choose_from_menu(page, page.get_by_role("button", name="Download", exact=True), "JSON Lines")
    return [json.loads(line) for line in download.value.path().read_text().splitlines()]


def texts_in_chinese(page: Page, addresses: list[str]) -> Iterator[str]:
    """Everything that the pages say."""
    choose_from_menu(page, page.get_by_role("button", name="Language"), "中文")
    for address in addresses:
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".n-skeleton")).to_have_count(0)
        yield page.locator("body").inner_text()


def test_a_dirty_file_becomes_clean_data_by_the_pages_alone(rig: Any, page: Page, tmp_path: Path) -> None:
    rows = make_rows()
    url = rig.platform.url
    with rig.inside():
        page.goto(create_login_link(rig.platform.settings))
    page.get_by_role("heading", level=1, name="Overview").wait_for()
    page.goto(f"{url}/datasets")

    dataset = upload(page, write_dirty(tmp_path / FILE, rows))
    look_at_rows(page)
    put_together(page)
    run = run_it(page)
    page.goto(f"{url}/datasets/{dataset}")
    compare_and_roll_back(page)
    find_duplicates_and_score(page)
    look_at_lineage(page)
    assert download_rows(page) == rows

    tabs = ("sample", "statistics", "quality", "duplicates", "versions", "lineage", "quarantine")
    addresses = [f"{url}/datasets", f"{url}/pipelines", f"{url}/pipelines/new?dataset={dataset}", run]
    for text in texts_in_chinese(
        page, [*addresses, *(f"{url}/datasets/{dataset}?tab={tab}" for tab in tabs)]
    ):
        assert not KEY_NAME.search(text), KEY_NAME.search(text)
