"""Texts rewritten: Unicode and spaces, invisible characters, HTML, addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_testing.operator_runs import cleaned, documents, run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("schÃ¶n â€“ gut", "schön – gut"),
        ("e\u0301te\u0301", "été"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("a  b \t c", "a b c"),
        ("name\tvalue", "name\tvalue"),
        ("a\u00a0b\u2003c", "a b c"),
        ("end   \nnext", "end\nnext"),
        ("    indented\n        more", "    indented\n        more"),
        ("a\n\n\n\n\nb", "a\n\n\nb"),
        ("\n\n  x  \n", "  x"),
        ("价格：１００元，　好", "价格：１００元，　好"),
        ("see  this\n```\nif  x:\n\n\n\n\n```\nand  that", "see this\n```\nif  x:\n\n\n\n\n```\nand that"),
    ],
)  # fmt: skip
def test_texts_are_brought_into_one_form(before: str, after: str) -> None:
    assert cleaned("normalise_text", before) == [after]


def test_wide_letters_become_plain_where_that_is_asked_for() -> None:
    assert cleaned("normalise_text", "ＡＢＣ１２３ ﬁne x²", form="NFKC") == ["ABC123 fine x2"]


@pytest.mark.parametrize(
    "text", ["他说：“你好”。", "naïve café – “quoted” … €5", "Привет, мир!", "Ελληνικά", "x ≤ y, ∑ α²"]
)
def test_right_texts_are_not_repaired(text: str) -> None:
    assert cleaned("normalise_text", text) == [text]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\x00b\x07c\td\n", "abc\td\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("in\u200bvis\ufeffible\u00ad", "invisible"),
        ("evil\u202etxt", "eviltxt"),
        ("icon \ue000", "icon "),
        ("a\u200db", "ab"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
    ],
)
def test_invisible_characters_go_where_nothing_needs_them(before: str, after: str) -> None:
    assert cleaned("control_characters", before, max_ratio=None) == [after]


def test_broken_texts_are_dropped() -> None:
    outcome = run("control_characters", documents("half ���� broken", "a long text with one � in it " * 3))

    assert outcome.reasons == {0: "broken_characters"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>One</p><p>Two &amp; three</p>", "One\nTwo & three"),
        ('a <a href="https://x.org">link</a> here', "a link here"),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("1 < 2 and <b>x</b> > 0 && y", "1 < 2 and x > 0 && y"),
        ("if a<b and c>d: pass", "if a<b and c>d: pass"),
        ("<think>step</think> answer", "<think>step</think> answer"),
        ("List<String> x; <br/>y", "List<String> x; \ny"),
        ("<script>alert(1)</script>text", "text"),
        ("x &lt; y &#20013;", "x < y 中"),
        ("AT&T &copy 3", "AT&T &copy 3"),
        ("`<b>` or\n```\n<p>kept</p>\n```\nnot <i>this</i>", "`<b>` or\n```\n<p>kept</p>\n```\nnot this"),
    ],
)  # fmt: skip
def test_html_becomes_what_it_shows(before: str, after: str) -> None:
    assert cleaned("html", before, max_ratio=None) == [after]


def test_rows_that_are_mostly_markup_are_dropped_but_code_is_not_markup() -> None:
    markup = '<div class="a"><span id="b"></span></div>'

    outcome = run("html", documents(f"{markup} x", f"```html\n{markup}\n```", f"{'word ' * 30}{markup}"))

    assert outcome.reasons == {0: "mostly_markup"}
    assert outcome.counts["texts_with_markup"] == 2


@given(st.text(alphabet="abc <>&;/= \n中", max_size=40))
def test_text_without_tags_is_not_touched(text: str) -> None:
    assert cleaned("html", text, entities=False) in ([text], cleaned("html", text, entities=False))
    if "<a" not in text and "<b" not in text and "</" not in text:
        assert cleaned("html", text, entities=False) == [text]


def test_deeply_nested_html_is_no_problem() -> None:
    assert cleaned("html", "<div>" * 50_000 + "x", max_ratio=None) == ["x"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("see https://a.org/x?q=1&b=2.", "see [URL]."),
        ("(https://en.wikipedia.org/wiki/Foo_(bar))", "([URL])"),
        ("访问https://a.cn/路径，谢谢", "访问[URL]路径，谢谢"),
        ("www.example.com/x, http://b.de", "[URL], [URL]"),
        ("e.g. not.a.url and a://b", "e.g. not.a.url and a://b"),
        ("[text](https://a.org/b)", "[text]([URL])"),
        ("run `curl https://a.org` now https://b.org", "run `curl https://a.org` now [URL]"),
    ],
)
def test_addresses_are_masked(before: str, after: str) -> None:
    assert cleaned("urls", before) == [after]


def test_removed_links_keep_their_text() -> None:
    assert cleaned("urls", "a [text](https://a.org/b) and https://c.org", action="remove") == ["a text and "]


def test_rows_are_dropped_by_the_share_of_addresses() -> None:
    batch = documents("https://a.org/abcdefghijk x", "a long text that names https://a.org once")

    assert run("urls", batch, action="keep", max_ratio=0.5).reasons == {0: "mostly_urls"}
    assert run("urls", batch, action="drop").reasons == {0: "has_url", 1: "has_url"}


def test_a_mark_may_look_like_a_reference_of_an_expression() -> None:
    assert cleaned("urls", "https://a.org", mark="$1$0") == ["$1$0"]
