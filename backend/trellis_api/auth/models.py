"""Rows of credentials; only hashes are kept, so that a stolen database opens nothing."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, Integer
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class AccessToken(SQLModel, table=True):
    """A bearer token for scripts."""

    __tablename__ = "access_tokens"

    token_hash: str = Field(primary_key=True)
    name: str = Field(index=True)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class LoginCode(SQLModel, table=True):
    """A one-time code that opens a browser session."""

    __tablename__ = "login_codes"

    code_hash: str = Field(primary_key=True)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class BrowserSession(SQLModel, table=True):
    """What the session cookie of a browser refers to."""

    __tablename__ = "browser_sessions"

    token_hash: str = Field(primary_key=True)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)


class LoginFailure(SQLModel, table=True):
    """A failed login; kept as long as it slows down the next one."""

    __tablename__ = "login_failures"
    __table_args__ = (
        Index("ix_login_failures_address", "address", "failed_at"),
        Index("ix_login_failures_failed_at", "failed_at"),
    )

    id: int | None = Field(
        default=None, primary_key=True, sa_type=BigInteger().with_variant(Integer, "sqlite")
    )
    address: str = Field(max_length=64)
    failed_at: datetime = Field(sa_type=UtcDateTime)
