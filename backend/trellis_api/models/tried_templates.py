"""Whether the chat templates of a model come to an end: asked again before anything renders them."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from trellis_api.core.errors import DomainError
from trellis_api.models.errors import ChatTemplateRunaway, ModelFolderInvalid
from trellis_api.models.inspection import UnusableFolder, require_usable_templates, shows_tools


def find_template_problems(folder: Path, *, field: str) -> list[tuple[DomainError, str]]:
    """Find problems like ``require_tried_templates``, with the request's field; empty without any."""
    try:
        require_tried_templates(folder, field=field)
    except (ChatTemplateRunaway, ModelFolderInvalid) as error:
        return [(error, field)]
    return []


def require_tried_templates(folder: Path, *, field: str | None = None) -> None:
    """Raise ``ChatTemplateRunaway`` where a template of the folder would hang whoever renders it.

    ``ModelFolderInvalid`` where a file with templates is damaged or cannot be read.
    """
    try:
        require_usable_templates(folder)
    except UnusableFolder as error:
        is_runaway = error.code == ChatTemplateRunaway.code
        kind = ChatTemplateRunaway if is_runaway else ModelFolderInvalid
        remedy = "Replace the template" if is_runaway else "Repair the file"
        message = f"{error.message} {remedy} in the model's folder, or choose another model."
        details: list[Any] | None = None
        if field is not None:
            details = [{"code": kind.code, "field": field, "message": message}]
        raise kind(message, details) from error


def note_verdicts(folder: Path) -> None:
    """Try the templates of a folder, so that the next one to ask for the verdicts does not wait for them."""
    with suppress(UnusableFolder, OSError):
        require_usable_templates(folder)
        if folder.is_dir():
            shows_tools(folder)
