"""Profiles and queries of Link Search: the same by seed, and true of each other."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from trellis_train.agents.linksearch.database import normalise_handle
from trellis_train.agents.linksearch.generate import EXIT_BAD_REQUEST, generate, main
from trellis_train.agents.linksearch.guard import SqlGuard

ASKED = {"profiles": 600, "train": 150, "evaluation": 30, "seed": 7}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("linksearch")
    generate(made, **ASKED)
    return made


def rows(folder: Path, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{split}.jsonl").read_bytes().splitlines()]


def test_a_seed_gives_the_same_bytes_and_another_seed_others(folder: Path, tmp_path: Path) -> None:
    again = generate(tmp_path / "again", **ASKED)
    other = generate(tmp_path / "other", **{**ASKED, "seed": 8})

    assert again == json.loads((folder / "manifest.json").read_text())
    for name in ("profiles.db", "train.jsonl", "eval.jsonl"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        assert again["sha256"][name] != other["sha256"][name]  # type: ignore[index]


@pytest.mark.parametrize(("split", "count"), [("train", 150), ("eval", 30)])
def test_the_sql_of_a_query_gives_its_gold_through_the_guard_too(
    folder: Path, split: str, count: int
) -> None:
    guard, queries = SqlGuard(folder / "profiles.db"), rows(folder, split)

    assert len(queries) == count
    for query in queries:
        found = guard.run(query["gold_sql"])
        assert [row["linkedin_handle"] for row in found.rows] == query["gold_handles"], query
        assert 1 <= len(query["gold_handles"]) <= 10
        assert query["difficulty"] == len(query["constraints"])
        assert all(each["value"] in query["query"] for each in query["constraints"])


def test_no_set_of_constraints_is_asked_for_twice(folder: Path) -> None:
    signatures = [
        json.dumps(query["constraints"], sort_keys=True)
        for split in ("train", "eval")
        for query in rows(folder, split)
    ]

    assert len(set(signatures)) == len(signatures)
    assert {query["difficulty"] for query in rows(folder, "train")} == {1, 2, 3, 4}


def test_the_database_holds_no_answers(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "profiles.db")) as connection:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }

    assert {name for name in tables if not name.startswith("profiles_fts")} == {
        "profiles", "experiences", "educations",
    }  # fmt: skip


def test_jobs_of_a_profile_do_not_overlap(folder: Path) -> None:
    overlapping = """SELECT count(*) FROM experiences a JOIN experiences b
        ON a.profile_id = b.profile_id AND a.id < b.id AND b.end_date > a.start_date"""
    unfinished = (
        "SELECT count(*) FROM experiences WHERE (end_date IS NULL) != is_current OR end_date < start_date"
    )
    with closing(sqlite3.connect(folder / "profiles.db")) as connection:
        assert connection.execute(overlapping).fetchone() == (0,)
        assert connection.execute(unfinished).fetchone() == (0,)
        assert connection.execute(
            "SELECT count(*), count(DISTINCT linkedin_handle) FROM profiles"
        ).fetchone() == (
            600,
            600,
        )


def test_more_queries_than_the_profiles_hold_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [str(tmp_path / "few"), "--profiles", "3", "--train", "500", "--most-constraints", "1"]

    assert main(asked) == EXIT_BAD_REQUEST
    assert "more profiles" in capsys.readouterr().err


@pytest.mark.parametrize(
    "written",
    [
        "ada-b",
        " ADA-B ",
        "@ada-b",
        "https://www.linkedin.com/in/ada-b/",
        "linkedin.com/in/Ada%2DB?trk=1",
        "/in/ada-b",
    ],
)
def test_a_handle_is_known_however_it_is_written(written: str) -> None:
    assert normalise_handle(written) == "ada-b"
