# ruff: noqa: E501 - a statement a line
"""SQL that a model wrote: what reads profiles runs, everything else is refused and changes nothing."""

import hashlib
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_train.agents.linksearch.generate import generate
from trellis_train.agents.linksearch.guard import (
    MAX_CELL_CHARACTERS,
    MAX_REPLY_CHARACTERS,
    Refusal,
    SqlGuard,
)
from trellis_train.agents.linksearch.tools import ProfileTools

HONEST = [
    "SELECT name FROM profiles LIMIT 3",
    "  -- people\n /* by name */ select name, linkedin_handle from profiles order by name limit 5",
    "SELECT count(*) FROM profiles",
    "SELECT p.name FROM profiles p JOIN experiences e ON e.profile_id = p.id WHERE e.company LIKE 'Acme%' LIMIT 5",
    "SELECT DISTINCT title FROM experiences WHERE is_current = 1 LIMIT 10",
    "SELECT school, count(*) AS n FROM educations GROUP BY school HAVING n > 1 ORDER BY n DESC",
    "WITH now AS (SELECT * FROM experiences WHERE is_current = 1) SELECT count(*) FROM now",
    "SELECT p.name FROM profiles_fts f JOIN profiles p ON p.rid = f.rowid WHERE profiles_fts MATCH 'python' LIMIT 5",
    "SELECT rowid, bm25(profiles_fts) FROM profiles_fts WHERE profiles_fts MATCH 'sql OR rust' ORDER BY rank LIMIT 5",
    "SELECT snippet(profiles_fts, 3, '[', ']', '…', 8) FROM profiles_fts WHERE profiles_fts MATCH 'skills:sql' LIMIT 2",
    "SELECT highlight(profiles_fts, 0, '<', '>') FROM profiles_fts WHERE profiles_fts MATCH 'engineer' LIMIT 2",
    "SELECT name FROM profiles WHERE id IN (SELECT profile_id FROM educations WHERE degree = 'PhD') LIMIT 5",
    "SELECT name FROM profiles WHERE instr(lower(skills), 'go') > 0 LIMIT 5",
    "SELECT linkedin_handle FROM profiles WHERE EXISTS (SELECT 1 FROM educations d WHERE d.profile_id = profiles.id)",
    "SELECT group_concat(name, ', ') FROM (SELECT name FROM profiles LIMIT 4)",
    "SELECT company, row_number() OVER (ORDER BY company) FROM experiences LIMIT 3",
    "SELECT max(start_date), min(start_date) FROM experiences",
    "SELECT CASE WHEN is_current THEN 'now' ELSE 'past' END, coalesce(end_date, '-') FROM experiences LIMIT 3",
    "SELECT name FROM profiles UNION SELECT school FROM educations LIMIT 4",
    "SELECT substr(name, 1, 3) || '…', length(about), round(1.5) FROM profiles LIMIT 2",
    "SELECT strftime('%Y', updated_at || '-01') FROM profiles LIMIT 1;",
]
HOSTILE = [
    ("DROP TABLE profiles", Refusal.NOT_SELECT),
    ("DELETE FROM profiles", Refusal.NOT_SELECT),
    ("INSERT INTO profiles (id) VALUES ('x')", Refusal.NOT_SELECT),
    ("UPDATE profiles SET name = 'x'", Refusal.NOT_SELECT),
    ("REPLACE INTO profiles (id) VALUES ('x')", Refusal.NOT_SELECT),
    ("CREATE TABLE x (y)", Refusal.NOT_SELECT),
    ("CREATE TEMP VIEW v AS SELECT 1", Refusal.NOT_SELECT),
    ("ALTER TABLE profiles RENAME TO p", Refusal.NOT_SELECT),
    ("ATTACH DATABASE '/etc/passwd' AS x", Refusal.NOT_SELECT),
    ("DETACH DATABASE main", Refusal.NOT_SELECT),
    ("VACUUM INTO '/tmp/copy.db'", Refusal.NOT_SELECT),
    ("PRAGMA query_only = OFF", Refusal.NOT_SELECT),
    ("PRAGMA writable_schema = ON", Refusal.NOT_SELECT),
    ("BEGIN", Refusal.NOT_SELECT),
    ("REINDEX", Refusal.NOT_SELECT),
    ("ANALYZE", Refusal.NOT_SELECT),
    ("EXPLAIN SELECT 1", Refusal.NOT_SELECT),
    ("VALUES (1)", Refusal.NOT_SELECT),
    ("/* SELECT */ DELETE FROM profiles", Refusal.NOT_SELECT),
    ("-- SELECT\nDELETE FROM profiles", Refusal.NOT_SELECT),
    ("SELECTED", Refusal.NOT_SELECT),
    ("WITH x AS (SELECT 1) DELETE FROM profiles", Refusal.DENIED),
    ("WITH x AS (SELECT 1) INSERT INTO profiles (id) SELECT 1", Refusal.DENIED),
    ("WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT * FROM c", Refusal.DENIED),
    ("SELECT * FROM sqlite_master", Refusal.DENIED),
    ("SELECT sql FROM sqlite_schema", Refusal.DENIED),
    ("SELECT name FROM profiles WHERE (SELECT count(*) FROM sqlite_master) > 0", Refusal.DENIED),
    ("SELECT load_extension('/tmp/x.so')", Refusal.DENIED),
    ("SELECT readfile('/etc/passwd')", Refusal.SYNTAX),
    ("SELECT randomblob(1000000000)", Refusal.DENIED),
    ("SELECT zeroblob(1000000000)", Refusal.DENIED),
    ("SELECT printf('%1000000d', 1)", Refusal.DENIED),
    ("SELECT hex(about) FROM profiles", Refusal.DENIED),
    ("SELECT fts5(NULL)", Refusal.DENIED),
    ("SELECT sqlite_version()", Refusal.DENIED),
    ("SELECT * FROM pragma_table_info('profiles')", Refusal.DENIED),
    ("SELECT * FROM pragma_database_list", Refusal.DENIED),
    ("SELECT * FROM json_each('[1, 2]')", Refusal.DENIED),
    ("SELECT count(*) FROM profiles a, profiles b, profiles c, profiles d", Refusal.TIMEOUT),
    ("SELECT a.name FROM profiles a, profiles b, experiences c ORDER BY a.about || b.about || c.title", Refusal.TIMEOUT),
    ("SELECT 1 WHERE " + " AND ".join(["1"] * 80), Refusal.TOO_BIG),
    ("SELECT " + "(" * 200 + "1" + ")" * 200, Refusal.SYNTAX),
    (" UNION ALL ".join(["SELECT 1"] * 12), Refusal.TOO_BIG),
    ("SELECT '" + "x" * 4000 + "'", Refusal.TOO_BIG),
    ("SELECT name FROM profiles; DROP TABLE profiles", Refusal.SYNTAX),
    ("SELECT name FROM nobody", Refusal.SYNTAX),
    ("SELECT name FROM profiles_fts WHERE profiles_fts MATCH '\"'", Refusal.SYNTAX),
    ("SELECT 'a\x00b'", Refusal.SYNTAX),
    ("SELECT '\ud800'", Refusal.SYNTAX),
    ("", Refusal.SYNTAX),
]  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiles")
    generate(folder, profiles=400, train=5, evaluation=2, seed=3)
    return folder / "profiles.db"


@pytest.fixture(scope="module")
def guard(database: Path) -> SqlGuard:
    return SqlGuard(database)


@pytest.mark.parametrize("sql", HONEST)
def test_honest_statements_run(guard: SqlGuard, sql: str) -> None:
    reply = guard.run(sql)

    assert reply.error is None, reply.message
    assert reply.rows or "Acme" in sql


@pytest.mark.parametrize(("sql", "code"), HOSTILE)
def test_hostile_statements_are_refused_within_a_second(guard: SqlGuard, sql: str, code: Refusal) -> None:
    started = time.monotonic()

    reply = guard.run(sql)

    assert (reply.error, reply.rows) == (code, []), reply.message
    assert time.monotonic() - started < 1
    assert reply.as_tool_result()["success"] is False


def test_nothing_that_was_refused_has_changed_the_file(database: Path, guard: SqlGuard) -> None:
    before = hashlib.sha256(database.read_bytes()).hexdigest()

    for sql, _ in HOSTILE:
        guard.run(sql)

    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert [path.name for path in database.parent.glob("profiles.db*")] == ["profiles.db"]


@pytest.mark.parametrize(
    ("sql", "params", "code"),
    [
        ("SELECT ?", [1], None),
        ("SELECT ?, ?", ["a'; DROP TABLE profiles; --", None], None),
        ("SELECT ?", [True], None),
        ("SELECT ?", [], Refusal.BAD_PARAMS),
        ("SELECT ?", [2**70], Refusal.BAD_PARAMS),
        ("SELECT ?", [[1]], Refusal.BAD_PARAMS),
        ("SELECT ?", [b"x"], Refusal.BAD_PARAMS),
        ("SELECT ?", {"a": 1}, Refusal.BAD_PARAMS),
        ("SELECT 1", list(range(101)), Refusal.BAD_PARAMS),
        (None, None, Refusal.SYNTAX),
        (7, None, Refusal.SYNTAX),
    ],
)
def test_parameters(guard: SqlGuard, sql: Any, params: Any, code: Refusal | None) -> None:
    assert guard.run(sql, params).error is code


def test_a_reply_is_bounded_in_rows_cells_and_characters(guard: SqlGuard) -> None:
    many = guard.run("SELECT id FROM profiles")
    few = guard.run("SELECT id FROM profiles", None, 3)
    long = guard.run("SELECT group_concat(about) AS a, 1 FROM profiles")
    wide = guard.run("SELECT about, about, about, about FROM profiles")

    assert (len(many.rows), many.truncated) == (50, True)
    assert (len(few.rows), few.truncated) == (3, True)
    assert (len(long.rows[0]["a"]), long.truncated) == (MAX_CELL_CHARACTERS + 1, True)  # type: ignore[arg-type]
    assert list(wide.rows[0]) == ["about", "about:2", "about:3", "about:4"]
    assert len(str(wide.rows)) <= MAX_REPLY_CHARACTERS
    assert wide.truncated


@given(st.text(max_size=80))
def test_no_text_makes_it_raise(guard: SqlGuard, text: str) -> None:
    for sql in (
        text,
        f"SELECT {text} FROM profiles LIMIT 1",
        f"SELECT name FROM profiles WHERE name = '{text}'",
    ):
        reply = guard.run(sql)
        assert (reply.error is None) == reply.as_tool_result()["success"]


def test_threads_have_connections_of_their_own(guard: SqlGuard) -> None:
    replies = list[Any]()

    def ask() -> None:
        replies.append(guard.run("SELECT count(*) AS n FROM profiles").rows)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert replies == [[{"n": 400}]] * 8


def test_a_database_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.db"):
        SqlGuard(tmp_path / "nowhere.db")


def test_a_profile_is_read_with_jobs_newest_first(database: Path, guard: SqlGuard) -> None:
    tools = ProfileTools(database)
    handle = str(guard.run("SELECT linkedin_handle FROM profiles LIMIT 1").rows[0]["linkedin_handle"])

    profile = tools.read_profile(f" https://linkedin.com/in/{handle.upper()}/ ")["profile"]
    nobody = tools.read_profile("no-such-person")

    assert profile["linkedin_handle"] == handle
    starts = [job["start_date"] for job in profile["experiences"]]
    assert starts == sorted(starts, reverse=True)
    assert nobody == {
        "success": False,
        "error": {"code": "NOT_FOUND", "message": "there is no profile 'no-such-person'"},
    }
