"""Queries as training rows, however their author wrote down whom they ask for."""

from pathlib import Path

import pytest
from trellis_train.agents.linksearch.rows import BadQuery, parse_handles, query_row, read_queries


@pytest.mark.parametrize(
    "written",
    [
        ["ada-byron", "alan-t"],
        '["ada-byron", "alan-t"]',
        "ada-byron;alan-t",
        " Ada-Byron ; https://www.linkedin.com/in/alan-t/?trk=x ",
        "ada-byron, alan-t, ada-byron",
        "@ada-byron\nalan%2Dt",
    ],
)
def test_handles_are_read_from_lists_texts_and_addresses(written: object) -> None:
    assert parse_handles(written) == ["ada-byron", "alan-t"]


@pytest.mark.parametrize("written", [None, 3, "", [], [None, 4], ";;"])
def test_what_holds_no_handles_gives_none(written: object) -> None:
    assert parse_handles(written) == []


@pytest.mark.parametrize("column", ["gold_handles", "handles", "answer"])
def test_a_query_becomes_a_row_of_verls(column: str) -> None:
    row = query_row({"id": "q7", "query": "Who?", column: "ada;alan", "split": "eval"}, 3)

    assert row["prompt"] == [{"role": "user", "content": "Who?"}]
    assert row["reward_model"] == {"style": "rule", "ground_truth": '["ada", "alan"]'}
    assert row["extra_info"] == {"index": 3, "split": "eval", "id": "q7"}


@pytest.mark.parametrize(
    ("query", "message"), [({"answer": "ada"}, "no question"), ({"query": "Who?"}, "no handles")]
)
def test_a_row_that_is_no_query_says_what_it_lacks(query: dict[str, str], message: str) -> None:
    with pytest.raises(BadQuery, match=f"query 1 has {message}"):
        query_row(query, 0)


def test_a_broken_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query": "Who?", "answer": "ada"}\n\n{oops\n')

    with pytest.raises(BadQuery, match=r"line 3 of queries\.jsonl is not JSON"):
        list(read_queries(path))
