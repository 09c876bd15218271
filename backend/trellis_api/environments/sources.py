"""Files that an environment is made of: what may be named, and where it lies for the worker.

A parameter names a path below the data root, ``upload:`` and an id, or, of rows, ``hub:`` and a dataset.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trellis_contracts.environments import HUB_PREFIX, UPLOAD_PREFIX, SourceKind
from trellis_data.reading.sources import SourceUnavailable
from trellis_recipes.environments import environment_kinds
from trellis_recipes.issues import Issue

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.datasets.paths import local_source, own_path
from trellis_api.uploads import storage

#: The first bytes of every SQLite database: https://www.sqlite.org/fileformat.html
_SQLITE = b"SQLite format 3\x00"
_HUB_NAME = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


def find_source_issues(settings: Settings, kind: str, parameters: Mapping[str, Any]) -> list[Issue]:
    """List the problems of the files that the parameters name; keeps their uploads for another day."""
    issues = []
    for name, wanted in environment_kinds()[kind].wanted_sources(parameters).items():
        try:
            locate_source(settings, parameters[name], wanted)
        except SourceUnavailable as error:
            code, message = error.code, error.message
        except DomainError as error:
            code, message = error.code, error.message
        except OSError as error:
            code, message = "source_missing", f"It cannot be read: {error.strerror}."
        else:
            continue
        issues.append(Issue(code=code, field=f"parameters.{name}", message=f"'{name}': {message}"))
    return issues


def locate_source(settings: Settings, named: str | None, wanted: SourceKind) -> tuple[str, str | None]:
    """Return the source's location for the maker, and the name of a file that is stored under another.

    Raises ``SourceUnavailable``, or what the uploads raise.
    """
    if not named:
        raise SourceUnavailable("source_missing", "Specify a path in the data root, or upload:ID.")
    if named.startswith(UPLOAD_PREFIX):
        found = storage.require_complete(settings, named.removeprefix(UPLOAD_PREFIX))
        if wanted == "database":
            _require_database(found.path, found.filename)
        return str(found.path), found.filename
    if named.startswith(HUB_PREFIX):
        if wanted != "rows" or not _HUB_NAME.fullmatch(named.removeprefix(HUB_PREFIX)):
            raise SourceUnavailable("source_missing", "From the Hub, use hub:owner/name.")
        return named, None
    if wanted == "rows":
        if not local_source(settings, named).list_files():
            raise SourceUnavailable("source_no_rows", f"'{named[:200]}' contains no data file.")
        return str((settings.data_root / named).resolve()), None
    path = own_path(settings, named)
    if path.parent == settings.data_root.resolve():  # where the platform's own database is
        raise SourceUnavailable("source_private", "Put the file in a folder in the data root.")
    if wanted == "database":
        _require_database(path, named)
    elif not path.is_file():
        raise SourceUnavailable("source_missing", f"File '{named[:200]}' not found.")
    return str(path), None


def _require_database(path: Path, name: str) -> None:
    if not path.is_file():
        raise SourceUnavailable("source_missing", f"File '{name[:200]}' not found.")
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            raise SourceUnavailable("source_no_database", f"'{name[:200]}' is not a SQLite database.")
