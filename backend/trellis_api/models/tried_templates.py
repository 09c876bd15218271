"""Whether the chat templates of a model come to an end: asked again before anything renders them."""

from pathlib import Path
from typing import Any

from trellis_api.core.errors import DomainError
from trellis_api.models.errors import ChatTemplateRunaway
from trellis_api.models.inspection import find_runaway_template


def find_template_problems(folder: Path, *, field: str) -> list[tuple[DomainError, str]]:
    """As ``require_tried_templates``, with the field of a request; empty where nothing is wrong."""
    try:
        require_tried_templates(folder, field=field)
    except ChatTemplateRunaway as error:
        return [(error, field)]
    return []


def require_tried_templates(folder: Path, *, field: str | None = None) -> None:
    """Raise ``ChatTemplateRunaway`` where a template of the folder would hang whoever renders it."""
    problem = find_runaway_template(folder)
    if problem is None:
        return
    message = f"{problem} Replace the template in the model's folder, or choose another model."
    details: list[Any] | None = None
    if field is not None:
        details = [{"code": ChatTemplateRunaway.code, "field": field, "message": message}]
    raise ChatTemplateRunaway(message, details)
