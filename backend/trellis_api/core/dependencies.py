"""What endpoints ask for: a transaction, the settings, the task queue.

What only reads an attribute is ``async``: FastAPI runs anything else in a thread, for every request.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlmodel import Session

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.core.tasks import TaskQueue


async def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def _tasks(request: Request) -> TaskQueue:
    tasks: TaskQueue = request.app.state.tasks
    return tasks


DatabaseDep = Annotated[Database, Depends(_database)]
SettingsDep = Annotated[Settings, Depends(_settings)]
TasksDep = Annotated[TaskQueue, Depends(_tasks)]


async def _write_turn(request: Request) -> AsyncIterator[None]:
    async with request.app.state.turns.write():
        yield


async def _read_turn(request: Request) -> AsyncIterator[None]:
    async with request.app.state.turns.read():
        yield


WriteTurn = Annotated[None, Depends(_write_turn, scope="function")]
ReadTurn = Annotated[None, Depends(_read_turn, scope="function")]


def _write_session(request: Request, database: DatabaseDep, _turn: WriteTurn) -> Iterator[Session]:
    with database.write(f"{request.method} {request.scope['route'].path}") as session:
        yield session


def _read_session(database: DatabaseDep, _turn: ReadTurn) -> Iterator[Session]:
    with database.read() as session:
        yield session


# Function scope ends the transaction before the response is sent: with FastAPI's
# default a client could receive 201 and the commit fail afterwards.
WriteSession = Annotated[Session, Depends(_write_session, scope="function")]
ReadSession = Annotated[Session, Depends(_read_session, scope="function")]
