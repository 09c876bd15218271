"""Where a platform is and what opens it, for those who speak to its API from outside: commands and the SDK.

`trellis login URL` stores both in a file that its owner alone can read; environment variables go before it.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from trellis_contracts.private_files import write_private

URL_VARIABLE, TOKEN_VARIABLE = "TRELLIS_URL", "TRELLIS_TOKEN"
#: A command that is told which platform of this machine it is for does not look at the file.
LOCAL_VARIABLES = ("TRELLIS_DATA_ROOT", "TRELLIS_PORT")


class Connection(BaseModel):
    """A platform and the token for it."""

    model_config = ConfigDict(extra="forbid")

    url: str
    token: str


class BadConnectionFile(ValueError):
    """The file holds no connection; the message names it."""


def locate_connection(environment: Mapping[str, str] = os.environ) -> Path:
    """Return this user's connection file, following the XDG convention."""
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "trellis" / "connection.json"


def read_connection(environment: Mapping[str, str] = os.environ) -> Connection | None:
    """Read what `trellis login` stored; None if nothing. Raise ``BadConnectionFile`` if it is invalid."""
    path = locate_connection(environment)
    try:
        return Connection.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise BadConnectionFile(
            f"{path} cannot be used: {error}. Write it anew with trellis login, or remove it."
        ) from error


def write_connection(connection: Connection, environment: Mapping[str, str] = os.environ) -> Path:
    """Store a connection for the commands and scripts of this user; where it lies."""
    path = locate_connection(environment)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, connection.model_dump_json(indent=2) + "\n")
    return path


def remove_connection(environment: Mapping[str, str] = os.environ) -> bool:
    """Forget the stored connection; whether there was one."""
    path = locate_connection(environment)
    is_there = path.exists()
    path.unlink(missing_ok=True)
    return is_there


def find_connection(environment: Mapping[str, str] = os.environ) -> Connection | None:
    """Find the connection in the two variables, else in the file; a variable overrides its part of it.

    None where neither says both parts. A token is never sent to another platform than the one that it was
    stored for: with ``TRELLIS_URL`` of another platform, ``TRELLIS_TOKEN`` has to be given, too.
    """
    url, token = environment.get(URL_VARIABLE), environment.get(TOKEN_VARIABLE)
    if url and token:
        return Connection(url=url, token=token)
    stored = read_connection(environment)
    if stored is None:
        return None
    if url and url.rstrip("/") != stored.url.rstrip("/"):
        return None
    return Connection(url=stored.url, token=token or stored.token)
