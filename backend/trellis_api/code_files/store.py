"""Keeps uploaded code: each kind in a table of its own, with errors of its own."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select, tuple_

from trellis_api.code_files.models import CodeFile
from trellis_api.code_files.schemas import CodeFileRead
from trellis_api.core.errors import Conflict, InvalidRequest, NotFound
from trellis_api.core.ids import is_id, new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position

File = TypeVar("File", bound=CodeFile)
Read = TypeVar("Read", bound=CodeFileRead)
Position = tuple[datetime, str]


@dataclass(frozen=True)
class FileStore(Generic[File, Read]):
    """The files of one kind."""

    table: type[File]
    read: type[Read]
    #: Of ids.
    prefix: str
    #: As messages call one.
    noun: str
    not_found: type[NotFound]
    name_taken: type[Conflict]
    invalid: type[InvalidRequest]
    in_use: type[Conflict]

    def refuse(self, faults: Sequence[str]) -> InvalidRequest:
        """Build the error for a file that isn't accepted: each fault is an issue of its own."""
        message = faults[0] if len(faults) == 1 else f"The file has {len(faults)} errors. {' '.join(faults)}"
        details = [{"code": "invalid_code", "field": "code", "message": fault} for fault in faults]
        return self.invalid(message, details)

    def add(
        self, session: Session, *, name: str, code: str, identifier: str | None = None, **columns: Any
    ) -> File:
        """Keep a file that was checked; 409 where the name is taken. Nothing of it is executed."""
        if session.exec(select(self.table).where(self.table.name == name)).first():
            raise self._name_taken(name)
        content = code.encode()
        measured = {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}
        file = self.table(
            id=identifier or new_id(self.prefix), name=name, code=code, **{**measured, **columns}
        )
        session.add(file)
        try:
            session.flush()
        except IntegrityError as error:
            raise self._name_taken(name) from error
        return file

    def find(self, session: Session, file_id: str) -> File | None:
        """Return the file with this ID; None for anything that is not an ID."""
        return session.get(self.table, file_id) if is_id(file_id, prefix=self.prefix) else None

    def lock(self, session: Session, file_id: str, *, is_shared: bool = False) -> File | None:
        """Lock the file until the transaction ends and return its state; a shared lock prevents deletion.

        (On SQLite the writing transaction holds the lock of the whole database already.)
        """
        if not is_id(file_id, prefix=self.prefix):
            return None
        return session.get(self.table, file_id, with_for_update={"read": is_shared}, populate_existing=True)

    def get(self, session: Session, file_id: str) -> File:
        """Return the file; 404 if there is none."""
        file = self.find(session, file_id)
        if file is None:
            raise self.not_found(f"No {self.noun} '{file_id}' found.")
        return file

    def list(self, session: Session, *, cursor: str | None, limit: int) -> Page[Read]:
        """List one page, newest first."""
        moment, identifier = col(self.table.created_at), col(self.table.id)
        query = select(self.table).order_by(moment.desc(), identifier.desc()).limit(limit + 1)
        if cursor:
            query = query.where(tuple_(moment, identifier) < decode_time_position(cursor))
        shown, next_cursor = cut_page(session.exec(query).all(), limit=limit)
        return Page(items=[self.read.model_validate(row) for row in shown], next_cursor=next_cursor)

    def delete(self, session: Session, file: File, *, users: Sequence[str]) -> None:
        """Forget a file that was locked before its users were looked up; refused where it has some."""
        if users:
            raise self.in_use(f"'{file.name}' is used by {', '.join(users)}.", {"jobs": list(users)})
        session.delete(file)
        session.flush()

    def _name_taken(self, name: str) -> Conflict:
        return self.name_taken(f"{self.noun.capitalize()} named '{name}' already exists.", {"name": name})
