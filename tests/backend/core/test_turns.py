"""More requests than threads that write at once: all are answered, and none waits for a time-out."""

import asyncio
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text
from trellis_api.core.database import Database
from trellis_api.core.dependencies import WriteSession
from trellis_api.core.errors import DatabaseBusy
from trellis_api.core.settings import Settings
from trellis_api.core.turns import Turns

#: The pool has 40 threads.
REQUESTS = 100


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """A route that writes, on an SQLite database of its own."""
    app = FastAPI()
    app.state.database = Database(Settings(data_root=tmp_path))
    app.state.turns = Turns(app.state.database)
    with app.state.database.write() as session:
        session.execute(text("CREATE TABLE notes (n INTEGER)"))

    @app.post("/notes")
    def add(session: WriteSession) -> int:
        session.execute(text("INSERT INTO notes VALUES (1)"))
        return int(session.execute(text("SELECT COUNT(*) FROM notes")).scalar_one())

    return app


def test_more_writes_than_threads_are_all_answered(app: FastAPI) -> None:
    async def ask_all() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://trellis", timeout=60) as client:
            return await asyncio.gather(*(client.post("/notes") for _ in range(REQUESTS)))

    answers = asyncio.run(ask_all())

    assert sorted(answer.json() for answer in answers) == list(range(1, REQUESTS + 1))


def test_a_turn_that_does_not_come_is_told(app: FastAPI) -> None:
    async def wait_in_vain() -> None:
        turns = Turns(app.state.database, patience_s=0.01)
        async with turns.write():
            with pytest.raises(DatabaseBusy):
                async with turns.write():
                    pass
            async with turns.read():
                pass  # reads do not wait for a write
        async with turns.write():
            pass  # the turn was given back

    asyncio.run(wait_in_vain())
