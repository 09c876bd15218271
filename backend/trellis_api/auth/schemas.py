"""What the login endpoints take and give."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator


class LoginRequest(BaseModel):
    """Exactly one of the two."""

    model_config = ConfigDict(extra="forbid")

    code: SecretStr | None = Field(default=None, description="One-time code of a login link.")
    token: SecretStr | None = Field(default=None, description="The admin token, pasted.")

    @model_validator(mode="after")
    def _require_one(self) -> "LoginRequest":
        if (self.code is None) == (self.token is None):
            raise ValueError("give either code or token")
        return self


class UserRead(BaseModel):
    """Who is logged in."""

    name: str
    method: Literal["token", "session"]
    expires_at: datetime | None = Field(default=None, description="End of the browser session.")
