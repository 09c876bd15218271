"""Reports in both formats and languages: complete, harmless, without anything from outside."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from trellis_contracts.evaluation import Score
from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.reports import pdf
from trellis_evaluation.reports.charts import Bar, BarGroup, Line, draw_bars, draw_history
from trellis_evaluation.reports.content import clean
from trellis_evaluation.reports.document import LANGUAGES, HistoryPoint, Language
from trellis_evaluation.reports.rendering import render_html, render_markdown
from trellis_testing.report_data import HOSTILE, make_report

TEXTS = Path(pdf.__file__).parent / "texts"


class _Elements(HTMLParser):
    """Names and attributes of all elements of a page, and whether each was closed."""

    VOID = frozenset({"meta", "br", "path", "use", "line"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    report = make_report()
    return {language: render_html(report, language) for language in LANGUAGES}


def test_both_languages_have_the_same_texts() -> None:
    english, chinese = (yaml.safe_load((TEXTS / f"{name}.yaml").read_text("utf-8")) for name in LANGUAGES)

    assert english.keys() == chinese.keys()
    for key, text in english.items():
        if isinstance(text, dict):
            assert text.keys() == chinese[key].keys(), key
        elif isinstance(text, list):
            assert len(text) == len(chinese[key]), key
        else:
            assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[key])), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_asks_for_nothing_and_runs_nothing(pages: dict[str, str], language: str) -> None:
    elements = _Elements(pages[language])

    assert elements.open == []
    names = {name for name, _ in elements.found}
    assert not names & {"script", "img", "iframe", "link", "object", "embed", "image"}
    for _, attributes in elements.found:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "action")]
        links = [value or "" for name, value in attributes.items() if name.endswith("href")]
        assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\((?!#)|@import", pages[language])
    assert "default-src 'none'" in pages[language]


def test_what_a_model_wrote_is_shown_as_text(pages: dict[str, str]) -> None:
    assert "<script" not in pages["en"]
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in pages["en"]
    assert "<i>model" not in pages["en"]
    assert "\x00" not in pages["en"]
    assert "\u202e" not in pages["en"]


def test_ids_of_charts_are_not_shared(pages: dict[str, str]) -> None:
    ids = [attributes["id"] for _, attributes in _Elements(pages["en"]).found if "id" in attributes]

    assert len(ids) > 50
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["By level", "McNemar", "truncated", "different revisions", "Wilson", "Settings differ"]),
        ("zh", ["按难度", "McNemar", "被截断", "版本不同", "Wilson", "设置不同"]),
    ],
)
def test_a_report_says_what_was_measured_and_how(
    pages: dict[str, str], language: str, words: list[str]
) -> None:
    markdown = render_markdown(make_report(), language)

    for text in (pages[language], markdown):
        assert [word for word in words if word not in text] == []
        assert "starter-1 @ step 100" in text.replace("\\", "")


def test_the_same_report_is_the_same_page(pages: dict[str, str]) -> None:
    assert render_html(make_report(), "en") == pages["en"]


def test_a_report_of_one_evaluation_needs_no_letters() -> None:
    report = make_report(1)

    page, markdown = render_html(report, "en"), render_markdown(report, "en")

    assert 'class="letter"' not in page
    assert "## Comparisons" not in markdown


def test_markdown_keeps_what_a_model_wrote_in_its_block() -> None:
    markdown = render_markdown(make_report(1), "en")
    blocks = re.findall(r"^(`{3,})text\n(.*?)\n\1$", markdown, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)

    assert clean(HOSTILE) in [content for _, content in blocks]
    assert "<script" not in outside
    assert "<b>" not in outside
    tables = re.findall(r"(?:^\|.*\n)+", outside, flags=re.MULTILINE)
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("count", [1, 2])
def test_every_table_of_markdown_is_one(language: Language, count: int) -> None:
    """A head, its line of dashes, and rows, without a blank line between: otherwise it is shown as text."""
    markdown = render_markdown(make_report(count), language)
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)

    tables = [table.splitlines() for table in re.findall(r"(?:^\|.*\n?)+", outside, flags=re.MULTILINE)]

    assert len(tables) >= 4
    for table in tables:
        assert len(table) >= 3, table
        assert re.fullmatch(r"\|(?:-+:?\|)+", table[1]), table


def test_a_report_begins_with_what_came_out() -> None:
    compared, single = render_markdown(make_report(2), "en"), render_markdown(make_report(1), "en")

    assert compared.index("## Summary") < compared.index("## Evaluations")
    assert re.search(r"- .* is better than |- .* no difference shown ", compared)
    assert "## Summary" in single


def test_settings_that_all_evaluations_share_are_named_once() -> None:
    markdown = render_markdown(make_report(2), "en")
    settings = markdown[markdown.index("## What was measured with") :]

    names = [line.split("|")[1].strip() for line in settings.splitlines() if line.startswith("| ")]
    assert len(names) > 3
    assert len(names) == len(set(names))


def test_unprintable_output_is_counted_and_not_shown() -> None:
    assert clean("a" + "\x01" * 12 + "b") == "a�×12b"
    assert clean("a\x01b") == "a�b"


def test_the_outermost_names_of_a_history_end_with_its_picture() -> None:
    names = [(float(at), f"a model with a long name, version {at}") for at in range(3)]
    line = Line("a", [0, 1, 2], [0.1, 0.2, 0.3], [None] * 3, [None] * 3, "#000000")

    drawn = draw_history([line], names, "Version", "History")

    labels = re.findall(r"<text style=\"([^\"]*)\"[^>]*>a model", drawn)
    assert len(labels) == 3
    assert ["text-anchor: end" in style for style in labels] == [False, False, True]
    assert ["text-anchor: middle" in style for style in labels] == [False, True, False]


def test_a_version_stands_once_on_the_axis_of_a_history_however_many_series_have_it() -> None:
    report = make_report(2)
    score = Score(metric="strict", value=0.5, n=10)
    report.history = [
        HistoryPoint(label="gsm8k", metric="strict", series=series, name=name, score=score)
        for series in ("greedy", "sampled")
        for name in ("version 1", "version 2")
    ]

    page = render_html(report, "en")

    assert [page.count(f">version {number}</text>") for number in (1, 2)] == [1, 1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_method_calls_verdicts_as_the_tables_do(language: Language) -> None:
    texts = yaml.safe_load((TEXTS / f"{language}.yaml").read_text("utf-8"))
    method = " ".join(texts["method_points"])

    assert all(f"“{texts['verdict_names'][verdict]}”" in method for verdict in ("truncated", "failed"))


def test_charts_show_names_as_they_are() -> None:
    drawn = draw_bars([BarGroup("$x^2$ <b>", [Bar("a & b", 0.5, 0.25, 0.75)])], 'say "hi"')

    assert "$x^2$ &lt;b&gt;" in drawn
    assert "a &amp; b" in drawn
    assert 'aria-label="say &quot;hi&quot;"' in drawn
    assert "50.0%" in drawn


def test_a_report_is_printed(pages: dict[str, str], tmp_path: Path) -> None:
    if pdf.find_chromium() is None:
        pytest.skip("no Chromium on this machine")
    page = tmp_path / "report.html"
    page.write_text(pages["zh"], "utf-8")

    pdf.render_pdf(page, tmp_path / "report.pdf")

    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") > 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.pdf"]


def test_without_chromium_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EvaluationProblem, match="install it") as caught:
        pdf.render_pdf(tmp_path / "a.html", tmp_path / "a.pdf")

    assert caught.value.code == "chromium_missing"


def test_a_page_that_is_not_there_is_not_printed(tmp_path: Path) -> None:
    if pdf.find_chromium() is None:
        pytest.skip("no Chromium on this machine")

    with pytest.raises(EvaluationProblem) as caught:
        pdf.render_pdf(tmp_path / "a.html", tmp_path / "a.pdf")

    assert caught.value.code == "pdf_failed"
    assert list(tmp_path.iterdir()) == []


def test_scores_that_are_no_part_of_one_are_shown_as_numbers() -> None:
    report = make_report(2)
    for evaluation in report.evaluations:
        for result in evaluation.results:
            if result.label == "my-own":
                result.scores[0] = Score(metric="word_perplexity", value=21.5, low=20.25, high=22.75, n=300)
                result.headline = "word_perplexity"

    page, markdown = render_html(report, "en"), render_markdown(report, "en")

    for text in (page, markdown):
        assert "20.25–22.75" in text
        assert "2150" not in text
    assert page.count("my-own</text>") == 0
