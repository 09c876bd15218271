"""Uploading, reading and deleting datasets, in a real browser."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e


def _write_lines(path: Path, rows: list[object]) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def _choose(page: Page, file: Path) -> None:
    page.get_by_test_id("dataset-file").set_input_files(file)


def _upload(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Upload", exact=True).click()


def test_a_dataset_is_uploaded_read_and_deleted(logged_in: Page, dashboard, tmp_path: Path) -> None:
    rows: list[object] = [{"question": f"What is {n} + 1?", "answer": f"#### {n + 1}"} for n in range(45)]
    logged_in.goto(f"{dashboard.url}/datasets")
    logged_in.get_by_role("button", name="Upload a dataset").first.click()
    _choose(logged_in, _write_lines(tmp_path / "sums.jsonl", rows))
    expect(logged_in.get_by_label("Name", exact=True)).to_have_value("sums")
    _upload(logged_in)

    expect(logged_in.get_by_role("heading", level=1, name="sums")).to_be_visible()
    expect(
        logged_in.get_by_text("Column question is the prompt and column answer the answer.")
    ).to_be_visible()
    expect(logged_in.get_by_text("What is 0 + 1?")).to_be_visible()
    logged_in.get_by_text("3", exact=True).last.click()
    expect(logged_in.get_by_text("What is 44 + 1?")).to_be_visible()

    logged_in.get_by_role("button", name="Delete").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(logged_in.get_by_role("heading", level=1, name="Datasets")).to_be_visible()
    expect(logged_in.get_by_role("link", name="sums")).to_have_count(0)


def test_bad_rows_are_named_by_line_and_the_corrected_file_is_taken(
    logged_in: Page, dashboard, tmp_path: Path
) -> None:
    good = {"question": "a", "answer": "1"}
    logged_in.goto(f"{dashboard.url}/datasets?upload=1")
    _choose(
        logged_in, _write_lines(tmp_path / "corrected.jsonl", [good, '{"question": "b" "answer": "2"}', good])
    )
    _upload(logged_in)

    problem = logged_in.get_by_role("alert").get_by_role("row").nth(1)
    expect(problem).to_contain_text("2")
    expect(problem).to_contain_text("not valid JSON")

    _choose(logged_in, _write_lines(tmp_path / "corrected.jsonl", [good, good]))
    expect(logged_in.get_by_role("alert")).to_have_count(0)
    _upload(logged_in)

    expect(logged_in.get_by_role("heading", level=1, name="corrected")).to_be_visible()


def test_conversations_show_who_speaks_and_markup_stays_text(
    logged_in: Page, dashboard, tmp_path: Path
) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "<img src=x onerror=alert(1)><b>bold?</b>"},
        {"role": "assistant", "content": "No."},
    ]
    logged_in.goto(f"{dashboard.url}/datasets?upload=1")
    _choose(logged_in, _write_lines(tmp_path / "chats.jsonl", [{"messages": turns}]))
    _upload(logged_in)

    expect(logged_in.get_by_text("<b>bold?</b>")).to_be_visible()
    expect(logged_in.get_by_text("Assistant", exact=True)).to_be_visible()
    assert logged_in.locator("main img").count() == 0


def test_a_list_is_filtered_by_text_and_the_address_keeps_it(
    logged_in: Page, dashboard, tmp_path: Path
) -> None:
    for name in ("apples", "pears"):
        logged_in.goto(f"{dashboard.url}/datasets?upload=1")
        _choose(logged_in, _write_lines(tmp_path / f"{name}.jsonl", [{"text": name}]))
        _upload(logged_in)
        expect(logged_in.get_by_role("heading", level=1, name=name)).to_be_visible()
    logged_in.goto(f"{dashboard.url}/datasets")

    logged_in.get_by_role("searchbox").fill("pear")
    expect(logged_in.get_by_role("link", name="apples")).to_have_count(0)
    logged_in.reload()

    expect(logged_in.get_by_role("link", name="pears")).to_be_visible()
    expect(logged_in.get_by_role("link", name="apples")).to_have_count(0)
