"""The novelty filter, against ROUGE-L as its definition says it."""

from hypothesis import given
from hypothesis import strategies as st
from trellis_data.generate.novelty import NoveltyFilter, rouge_l, words_of

WORDS = st.lists(st.sampled_from("abcdef"), max_size=12)


def by_table(left: list[str], right: list[str]) -> int:
    """Length of the longest common subsequence, the way textbooks fill the table."""
    row = [0] * (len(right) + 1)
    for word in left:
        before, row = row, [0]
        for place, other in enumerate(right):
            row.append(before[place] + 1 if word == other else max(before[place + 1], row[place]))
    return row[-1]


@given(WORDS, WORDS)
def test_rouge_l_is_that_of_the_definition(left: list[str], right: list[str]) -> None:
    size = len(left) + len(right)

    assert rouge_l(left, right) == (2 * by_table(left, right) / size if size else 0)


@given(st.lists(WORDS, max_size=15), st.sampled_from([0.3, 0.5, 0.7, 1.0]))
def test_the_filter_keeps_what_is_below_the_threshold_with_all_before(
    texts: list[list[str]], threshold: float
) -> None:
    found, kept = NoveltyFilter(threshold), list[list[str]]()
    for words in texts:
        is_new = bool(words) and all(rouge_l(words, other) < threshold for other in kept)
        if is_new:
            kept.append(words)

        assert found.add(" ".join(words)) == is_new


def test_chinese_is_compared_by_characters_and_case_and_width_do_not_count() -> None:
    found = NoveltyFilter(0.7)

    assert found.add("写一首关于春天的诗")
    assert not found.add("写一首关于夏天的诗")
    assert found.add("把这段话翻译成法语")
    assert words_of("Ｗｒｉｔｅ 诗 NOW") == ["write", "诗", "now"]
