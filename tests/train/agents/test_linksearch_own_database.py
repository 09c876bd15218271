"""Link Search on a database that somebody brings: what is taken in, what is told, and what is refused."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from trellis_train.agents.environments import BadRequest, call, make
from trellis_train.agents.linksearch.database import normalise_handle
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.own_database import BadDatabase, copy_database
from trellis_train.agents.linksearch.prompts import system_prompt
from trellis_train.agents.linksearch.rubric import handles_in
from trellis_train.agents.linksearch.setup import lay
from trellis_train.agents.linksearch.shape import read_shape
from trellis_train.agents.linksearch.tools import ProfileTools, tool_schemas

FULL = """
CREATE TABLE profiles (id TEXT, name TEXT, linkedin_handle TEXT, summary TEXT, about TEXT, skills TEXT);
CREATE TABLE experiences (id INTEGER, profile_id TEXT, title TEXT, company TEXT);
CREATE TABLE educations (id INTEGER, profile_id TEXT, school TEXT, "year of degree" INTEGER);
INSERT INTO profiles VALUES
    ('p2', 'Ada Byron', 'https://www.linkedin.com/in/Ada-Byron/', 'Analyst', NULL, '["sql", "maths"]'),
    ('p1', 'Alan Turing', 'ALAN-T', 'Logician', NULL, '["logic"]'),
    ('p3', 'Nobody', NULL, 'has no handle', NULL, NULL);
INSERT INTO experiences VALUES (1, 'p2', 'Programmer', 'Engines Ltd'), (2, 'p3', 'x', 'y');
INSERT INTO educations VALUES (1, 'p1', 'King''s College', 1934);
"""
#: The least that there may be.
BARE = """
CREATE TABLE profiles (id INTEGER, linkedin_handle TEXT, name TEXT, portrait BLOB, score REAL);
INSERT INTO profiles VALUES (1, 'Ada', 'Ada Byron', x'ff00', 9e999);
"""


def write_database(path: Path, statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)
    return path


def take_in(folder: Path, statements: str) -> ProfileTools:
    copy_database(write_database(folder / "own.db", statements), folder / "profiles.db")
    return ProfileTools(folder / "profiles.db")


def handles(reply: dict[str, Any]) -> list[str]:
    assert reply["success"], reply
    return [row["linkedin_handle"] for row in reply["rows"]]


def test_searches_and_the_index_work_and_the_file_stays_as_it_is(tmp_path: Path) -> None:
    source = write_database(tmp_path / "own.db", FULL)
    before = hashlib.sha256(source.read_bytes()).hexdigest()

    copied = copy_database(source, tmp_path / "profiles.db")
    tools = ProfileTools(tmp_path / "profiles.db")

    join = (
        "SELECT p.linkedin_handle FROM profiles_fts f JOIN profiles p ON p.rid = f.rowid"
        " WHERE profiles_fts MATCH ?"
    )
    assert handles(tools.search_profile(join, ["programmer"])) == ["ada-byron"]
    assert handles(tools.search_profile(join, ["king"])) == ["alan-t"]
    upper = "SELECT linkedin_handle FROM profiles WHERE linkedin_handle = 'Alan-T'"
    assert handles(tools.search_profile(upper)) == ["alan-t"]
    assert (copied.profiles, copied.without_handle) == (2, 1)
    assert hashlib.sha256(source.read_bytes()).hexdigest() == before
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(("own", "."))] == ["own.db"]


def test_a_profile_is_read_however_its_handle_is_written(tmp_path: Path) -> None:
    tools = take_in(tmp_path, FULL)

    found = [tools.read_profile(text) for text in ("ADA-byron", "linkedin.com/in/ada-byron", "@Ada-Byron")]

    assert all(each["success"] for each in found)
    assert found[0]["profile"]["experiences"] == [{"title": "Programmer", "company": "Engines Ltd"}]
    read = tools.read_profile("alan-t")["profile"]
    assert read["educations"] == [{"school": "King's College"}]


def test_what_is_missing_is_neither_told_nor_read(tmp_path: Path) -> None:
    tools = take_in(tmp_path, BARE)

    prompt = system_prompt(Options(), tools.shape)
    texts = json.dumps(tools.schemas)

    assert "profiles(rid, id, linkedin_handle, name, portrait, score)" in prompt
    assert "profiles_fts(name; rowid" in prompt
    for word in ("experiences", "educations", "skills", "profile_id"):
        assert word not in prompt + texts
    assert "jobs" not in texts
    read = tools.read_profile("ada")
    assert set(read["profile"]) == {"id", "linkedin_handle", "name", "portrait", "score"}
    json.dumps(read, allow_nan=False)


def test_other_columns_are_told_under_their_names_and_lists_of_skills_are_not_called_texts(
    tmp_path: Path,
) -> None:
    shape = take_in(tmp_path, FULL).shape

    prompt = system_prompt(Options(), shape)

    assert 'educations(profile_id, school, "year of degree")' in prompt
    assert "about" not in shape.columns["profiles"], "the column is there and always empty"
    assert "separated by" not in prompt
    assert tool_schemas(shape)[1]["function"]["description"] == "Read one profile with its jobs and schools."


@pytest.mark.parametrize(
    "handle", ["http://[x", "\ud800", "a\x00b", "%zz//", "", None, 7, ["ada"], {"a": 1}, "x" * 10**5]
)
def test_reading_never_raises(tmp_path: Path, handle: object) -> None:
    tools = take_in(tmp_path, BARE)

    answer = tools.read_profile(handle)

    assert answer["error"]["code"] == "NOT_FOUND"


def test_a_database_that_breaks_under_an_episode_is_an_answer(tmp_path: Path) -> None:
    tools = take_in(tmp_path, BARE)
    (tmp_path / "profiles.db").write_bytes(b"no database" * 1000)

    assert tools.read_profile("ada")["error"]["code"] == "DATABASE"


def test_a_cell_that_looks_like_an_address_breaks_no_rubric() -> None:
    assert handles_in([{"a": "http://[x", "b": "ADA"}]) >= {"ada"}
    assert normalise_handle("http://[x/in/Ada") == "ada"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ("CREATE TABLE people (id)", "no table profiles"),
        ("CREATE TABLE profiles (id, name)", "no column linkedin_handle"),
        ("CREATE TABLE profiles (id, linkedin_handle)", "none of the columns name"),
        (
            "CREATE TABLE profiles (id, linkedin_handle, name); CREATE TABLE experiences (title);",
            "no column profile_id",
        ),
        ("CREATE TABLE profiles (id, linkedin_handle, name)", "no profile with a linkedin_handle"),
        (
            "CREATE TABLE profiles (id, linkedin_handle, name);"
            "INSERT INTO profiles VALUES (1, 'Ada', 'a'), (2, 'ada ', 'b')",
            r"needs a unique .*'ada' \(2 profiles\)",
        ),
        (
            "CREATE TABLE profiles (id, linkedin_handle, name);"
            "INSERT INTO profiles VALUES (1, 'ada', 'a'), (1, 'alan', 'b')",
            r"Each profile needs a unique id",
        ),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_with_a_sentence(
    tmp_path: Path, statements: str, said: str
) -> None:
    source = write_database(tmp_path / "own.db", statements)

    with pytest.raises(BadDatabase, match=said):
        copy_database(source, tmp_path / "profiles.db")

    assert not (tmp_path / "profiles.db").exists()


def test_a_file_with_changes_beside_it_is_refused(tmp_path: Path) -> None:
    source = write_database(tmp_path / "own.db", BARE)
    (tmp_path / "own.db-wal").write_bytes(b"changes")

    with pytest.raises(BadDatabase, match=r"own\.db-wal"):
        copy_database(source, tmp_path / "profiles.db")


def write_queries(folder: Path, *golds: str) -> Path:
    folder.mkdir()
    for split in ("train", "test"):
        lines = [json.dumps({"query": f"{split} {gold}?", "answer": gold}) + "\n" for gold in golds]
        (folder / f"{split}.jsonl").write_text("".join(lines))
    return folder


def test_the_environment_holds_the_copy_the_rows_and_the_tools(tmp_path: Path) -> None:
    database = write_database(tmp_path / "own.db", FULL)
    queries = write_queries(tmp_path / "queries", "Ada-Byron", "ALAN-T")
    named = {"database": "people/own.db", "queries": "people/queries"}
    files = {"database": str(database), "queries": str(queries)}

    manifest = make("linksearch_database", tmp_path / "environment", named, files)

    assert {**manifest.parameters} == {**named, "train": 1000, "eval": 100, "missing_handles": "refuse"}
    assert manifest.counts == {
        "profiles": 2, "profiles_without_handle": 1, "train_queries": 2, "eval_queries": 2
    }  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "environment/rows/train.jsonl").read_text().splitlines()]
    assert [row["reward_model"]["ground_truth"] for row in rows] == ['["ada-byron"]', '["alan-t"]']
    answer = call(tmp_path / "environment", "read_profile", {"linkedin_handle": "ADA-BYRON"})
    assert answer.error is None
    assert str(tmp_path) not in manifest.model_dump_json()


def test_queries_that_ask_for_strangers_are_refused_or_left_out_and_counted(tmp_path: Path) -> None:
    files = {
        "database": str(write_database(tmp_path / "own.db", FULL)),
        "queries": str(write_queries(tmp_path / "queries", "ada-byron; stranger", "stranger")),
    }

    with pytest.raises(BadRequest, match=r"1 handles in the train split .* stranger"):
        make("linksearch_database", tmp_path / "refused", files)
    manifest = make("linksearch_database", tmp_path / "dropped", {**files, "missing_handles": "drop"})

    assert (manifest.counts["train_queries"], manifest.counts["train_queries_dropped"]) == (1, 1)


def test_a_run_on_this_machine_lays_a_copy_and_leaves_the_file_alone(tmp_path: Path) -> None:
    database = write_database(tmp_path / "own.db", FULL)
    queries = write_queries(tmp_path / "queries", "ada-byron")

    counts = lay(database, str(queries), tmp_path / "laid", train=5, evaluation=5)

    assert counts == {"train": 1, "eval": 1}
    assert not (tmp_path / "laid" / "profiles.db").is_symlink()
    assert read_shape(tmp_path / "laid" / "profiles.db").has("experiences")
