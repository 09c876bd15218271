"""Uploading, reading, searching and deleting datasets, in a real browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect
from trellis_testing.pages import choose_from_menu

pytestmark = pytest.mark.browser

#: More than two pieces of an upload.
BIG_BYTES = 40 * 1024**2
MIB_A_SECOND = 1024**2

Upload = Callable[[Path], None]


def _write_lines(path: Path, rows: list[object]) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def _sums(count: int) -> list[object]:
    return [
        {"question": f"What is {n} + 1?", "answer": f"#### {n + 1}", "level": n % 5} for n in range(count)
    ]


def _choose(page: Page, *files: Path) -> None:
    page.get_by_test_id("dataset-file").set_input_files(files)


def _submit(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Upload", exact=True).click()


@pytest.fixture
def upload(logged_in: Page, dashboard) -> Upload:  # type: ignore[no-untyped-def]
    """Upload one file by the page; its dataset's page is open when this returns."""

    def do(file: Path) -> None:
        logged_in.goto(f"{dashboard.url}/datasets?upload=1")
        _choose(logged_in, file)
        _submit(logged_in)
        logged_in.wait_for_url(re.compile("/datasets/ds_"))

    return do


def test_a_dataset_is_uploaded_read_and_deleted(logged_in: Page, dashboard, tmp_path: Path) -> None:
    logged_in.goto(f"{dashboard.url}/datasets")
    logged_in.get_by_role("button", name="Upload dataset").first.click()
    _choose(logged_in, _write_lines(tmp_path / "sums.jsonl", _sums(45)))
    expect(logged_in.get_by_label("Name", exact=True)).to_have_value("sums")
    _submit(logged_in)

    expect(logged_in.get_by_role("heading", level=1, name="sums")).to_be_visible()
    expect(logged_in.get_by_text("prompt in column 'question'")).to_be_visible()
    expect(logged_in.get_by_text("What is 0 + 1?")).to_be_visible()
    logged_in.get_by_text("3", exact=True).last.click()
    expect(logged_in.get_by_text("What is 44 + 1?")).to_be_visible()

    choose_from_menu(logged_in, logged_in.get_by_role("button", name="More actions for sums"), "Delete")
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(logged_in.get_by_role("heading", level=1, name="Datasets")).to_be_visible()
    expect(logged_in.get_by_role("link", name="sums")).to_have_count(0)


def test_an_upload_goes_on_where_it_stopped_when_the_page_was_left(
    logged_in: Page, dashboard, tmp_path: Path
) -> None:
    line = json.dumps({"text": "x" * 1000}) + "\n"
    big = tmp_path / "large.jsonl"
    big.write_text(line * (BIG_BYTES // len(line)))
    network = logged_in.context.new_cdp_session(logged_in)
    network.send("Network.enable")

    def limit(rate: int) -> None:
        rates = {"downloadThroughput": -1, "uploadThroughput": rate}
        network.send("Network.emulateNetworkConditions", {"offline": False, "latency": 0, **rates})

    logged_in.goto(f"{dashboard.url}/datasets?upload=1")
    limit(8 * MIB_A_SECOND)
    _choose(logged_in, big)
    with logged_in.expect_response(lambda answer: answer.request.method == "PATCH" and answer.ok):
        _submit(logged_in)
    logged_in.get_by_role("button", name="Pause").click()
    expect(logged_in.get_by_text("Paused")).to_be_visible()
    logged_in.goto(f"{dashboard.url}/datasets?upload=1")
    expect(logged_in.get_by_text("Partially uploaded: large.jsonl")).to_be_visible()

    limit(-1)
    pieces: list[Request] = []
    logged_in.on("request", lambda request: pieces.append(request) if request.method == "PATCH" else None)
    _choose(logged_in, big)
    _submit(logged_in)
    logged_in.wait_for_url(re.compile("/datasets/ds_"))

    assert int(pieces[0].headers["upload-offset"]) > 0


def test_bad_rows_are_kept_aside_and_named_by_line(upload: Upload, logged_in: Page, tmp_path: Path) -> None:
    good = {"question": "a", "answer": "1"}
    upload(_write_lines(tmp_path / "mixed.jsonl", [good, '{"question": "b" "answer": "2"}', good]))
    logged_in.get_by_role("link", name="View", exact=True).click()

    problem = logged_in.get_by_role("tabpanel").get_by_role("row").nth(1)
    expect(problem).to_contain_text("mixed.jsonl")
    expect(problem).to_contain_text("not valid JSON")
    with logged_in.expect_download() as download:
        logged_in.get_by_role("button", name="Download rejected rows").click()
    assert json.loads(download.value.path().read_text())["line"] == 2


def test_a_file_without_a_row_says_why_and_can_be_tried_again(
    upload: Upload, logged_in: Page, tmp_path: Path
) -> None:
    upload(_write_lines(tmp_path / "nothing.jsonl", ["no", "json"]))

    expect(logged_in.get_by_role("alert")).to_contain_text("None of the 2 rows")
    with logged_in.expect_response(re.compile("/data-tasks/dtk_[a-z0-9]+/retry$")) as answer:
        logged_in.get_by_role("button", name="Retry").click()
    assert answer.value.ok


def test_rows_are_searched_and_the_address_keeps_the_search(
    upload: Upload, logged_in: Page, tmp_path: Path
) -> None:
    upload(_write_lines(tmp_path / "searched.jsonl", _sums(45)))
    logged_in.get_by_role("button", name="Add filter").click()
    logged_in.get_by_label("Search text in all columns").fill("WHAT IS 4")
    logged_in.get_by_label("Value", exact=True).fill("What is 44 + 1?")
    logged_in.get_by_role("tabpanel", name="Sample").get_by_role("button", name="Search").click()
    expect(logged_in.get_by_text("1 found so far (45 of 45 rows searched)")).to_be_visible()
    logged_in.reload()

    expect(logged_in.get_by_text("#### 45")).to_be_visible()
    expect(logged_in.get_by_text("#### 5", exact=True)).to_have_count(0)


def test_statistics_have_units_and_columns(upload: Upload, logged_in: Page, tmp_path: Path) -> None:
    upload(_write_lines(tmp_path / "counted.jsonl", _sums(45)))
    logged_in.get_by_role("tab", name="Statistics").click()

    expect(logged_in.get_by_role("heading", name="Row length (characters)")).to_be_visible()
    expect(logged_in.get_by_role("img", name=re.compile("Row length"))).to_be_visible()
    expect(logged_in.get_by_role("row", name=re.compile("^question text prompt"))).to_be_visible()


def test_conversations_show_who_speaks_and_markup_stays_text(
    upload: Upload, logged_in: Page, tmp_path: Path
) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "<img src=x onerror=alert(1)><b>bold?</b>"},
        {"role": "assistant", "content": "No."},
    ]
    upload(_write_lines(tmp_path / "chats.jsonl", [{"messages": turns}]))

    expect(logged_in.get_by_text("<b>bold?</b>")).to_be_visible()
    expect(logged_in.get_by_text("Assistant", exact=True)).to_be_visible()
    assert logged_in.locator("main img").count() == 0


def test_a_list_is_filtered_by_text_and_the_address_keeps_it(
    logged_in: Page, dashboard, tmp_path: Path
) -> None:
    logged_in.goto(f"{dashboard.url}/datasets?upload=1")
    _choose(
        logged_in,
        *(_write_lines(tmp_path / f"{name}.jsonl", [{"text": name}]) for name in ("apples", "pears")),
    )
    _submit(logged_in)
    expect(logged_in.get_by_role("link", name="apples")).to_be_visible()
    expect(logged_in.get_by_role("link", name="pears")).to_be_visible()
    logged_in.goto(f"{dashboard.url}/datasets")

    logged_in.get_by_role("searchbox").fill("pear")
    expect(logged_in.get_by_role("link", name="apples")).to_have_count(0)
    logged_in.reload()

    expect(logged_in.get_by_role("link", name="pears")).to_be_visible()
    expect(logged_in.get_by_role("link", name="apples")).to_have_count(0)
