"""The way to a model, which its row carries: with names, as what it was made from may be deleted."""

from typing import Any

from sqlmodel import Session

from trellis_api.models import repository
from trellis_api.models.schemas import Lineage, Training


def continue_lineage(session: Session, training: Training, **more: Any) -> Lineage:
    """Build the lineage of a model that a training has made: the training, and those before it."""
    parent = repository.find_model(session, model_id=training.model_id) if training.model_id else None
    ancestors: list[Training] = []
    if parent is not None and parent.lineage.get("job_id"):
        before = Lineage.model_validate(parent.lineage)
        ancestors = [Training(**before.model_dump(include=set(Training.model_fields))), *before.ancestors]
    return Lineage(**training.model_dump(), ancestors=ancestors, **more)
