"""What many connections to a large database keep in memory."""

import subprocess
import sys
from pathlib import Path

from sqlalchemy import text
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings

ROWS, ROW_BYTES, CONNECTIONS = 40_000, 1000, 20
#: In a process of its own: an allocator gives nothing back, so that earlier tests would count.
SCAN = f"""
from sqlalchemy import text
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings

def used_mib():
    status = open("/proc/self/status").read()
    return int(status.split("RssAnon:")[1].split()[0]) // 1024

engine = Database(Settings()).engine
before = used_mib()
connections = [engine.connect() for _ in range({CONNECTIONS})]
for connection in connections:
    connection.execute(text("SELECT sum(length(b)) FROM t")).scalar()
print(used_mib() - before)
"""


def test_all_connections_together_keep_a_few_hundred_mebibytes(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/large.db"
    database = Database(Settings(database_url=address))
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)"))
        rows = [{"b": "x" * ROW_BYTES}] * ROWS
        connection.execute(text("INSERT INTO t (b) VALUES (:b)"), rows)
    database.dispose()

    done = subprocess.run(
        [sys.executable, "-c", SCAN],
        env={"PYTHONPATH": ":".join(sys.path), "TRELLIS_DATABASE_URL": address},
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout) < 450, "each connection keeps 16 MiB at most"


def test_the_connection_with_the_warm_cache_is_used_again(tmp_path: Path) -> None:
    engine = Database(Settings(database_url=f"sqlite:///{tmp_path}/a.db")).engine
    first, second = engine.connect(), engine.connect()
    warm = second.connection.dbapi_connection
    first.close()
    second.close()

    with engine.connect() as again:
        assert again.connection.dbapi_connection is warm
    engine.dispose()
