"""Models that something can be done with: their files are here."""

from sqlmodel import Session

from trellis_api.models.errors import ModelNotReady
from trellis_api.models.models import Model
from trellis_api.models.repository import lock_model


def require_ready(session: Session, *, model_id: str) -> Model:
    """Return the model, protected from deletion until the transaction ends; raises if it has no files."""
    model = lock_model(session, model_id=model_id, is_shared=True)
    if model is None:
        raise ModelNotReady(f"Model '{model_id}' not found on the platform.", {"model": model_id})
    if not model.path:
        raise ModelNotReady(
            f"The files of model '{model.name}' aren't downloaded yet ({model.state}).", {"model": model_id}
        )
    return model
