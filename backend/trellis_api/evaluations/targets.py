"""What can be measured or served: models whose files are here, and checkpoints that are still there."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.evaluations.errors import TargetUnusable
from trellis_api.evaluations.models import CHECKPOINT, MODEL
from trellis_api.evaluations.schemas import CheckpointTarget, ModelTarget, Target
from trellis_api.jobs import service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.errors import AdapterNeedsBase, CheckpointInUse, CheckpointNotFound
from trellis_api.jobs.models import TRAIN
from trellis_api.models.models import Model
from trellis_api.models.ready import require_ready
from trellis_api.models.repository import lock_model
from trellis_api.models.tried_templates import require_tried_templates
from trellis_api.rewards.resources import CLASSIFIER_SUFFIX

#: Encoders that vLLM serves.
_ENCODERS = frozenset(
    f"{name}Model" for name in ("Bert", "Roberta", "XLMRoberta", "ModernBert", "NomicBert", "Gte", "GteNew")
)


@dataclass(frozen=True)
class FoundTarget:
    """A target that is there, held until the transaction ends."""

    kind: str
    name: str
    #: The model that is measured, or that the job started from; None where that was deleted.
    model: Model | None
    model_id: str
    job_id: str | None = None
    step: int | None = None

    @property
    def is_encoder(self) -> bool:
        """Whether it gives vectors and no text."""
        return self.kind == MODEL and self.model is not None and is_encoder(self.model.architecture)

    @property
    def has_chat_template(self) -> bool | None:
        """None where nothing is known."""
        return self.model.has_chat_template if self.model else None


def find_targets(session: Session, settings: Settings, targets: list[Target]) -> list[FoundTarget]:
    """Find all targets; ``TargetUnusable`` with every problem there is."""
    found, issues = [], list[dict[str, Any]]()
    for index, target in enumerate(targets):
        try:
            found.append(find_target(session, settings, target))
        except DomainError as error:
            issues.append({"code": error.code, "field": f"targets.{index}", "message": error.message})
    if issues:
        raise TargetUnusable(issues[0]["message"], issues)
    return found


def find_target(
    session: Session, settings: Settings, target: Target, *, for_serving: bool = False
) -> FoundTarget:
    """Find one target; raises if it can't be used.

    ``for_serving`` takes encoders, too, and adapters alone, which are found as their base model.
    """
    if isinstance(target, ModelTarget):
        return _find_model(session, target, for_serving=for_serving)
    return _find_checkpoint(session, settings, target)


def _find_model(session: Session, target: ModelTarget, *, for_serving: bool) -> FoundTarget:
    model = require_ready(session, model_id=target.model)
    if model.lineage.get("form") == "adapter":
        base = lock_model(session, model_id=str(model.parent_model_id), is_shared=True)
        if for_serving and base is not None and base.path:
            _require_writer(base)
            return FoundTarget(MODEL, model.name, base, base.id)
        raise AdapterNeedsBase(
            f"{model.name} is an adapter and needs its base model. Export it as a merged model first."
        )
    if not (for_serving and is_encoder(model.architecture)):
        _require_writer(model)
    return FoundTarget(MODEL, model.name, model, model.id)


def _find_checkpoint(session: Session, settings: Settings, target: CheckpointTarget) -> FoundTarget:
    job = service.get_locked_job(session, job_id=target.job)
    if job.kind != TRAIN:
        raise TargetUnusable("Only training jobs have checkpoints.")
    row = service.get_usable_checkpoint(session, job_id=job.id, step=target.step)
    folder = service.find_folder(row, row.path, data_root=settings.data_root)
    if folder is None:
        raise CheckpointNotFound(f"The files of the checkpoint at step {target.step} are missing.")
    if service.may_be_overwritten(job, row):
        raise CheckpointInUse("The resumed run is about to overwrite this checkpoint. Try again later.")
    base = lock_model(session, model_id=job.model_id, is_shared=True)
    if checkpoints.holds_adapter(folder) and (base is None or not base.path):
        raise TargetUnusable("The checkpoint is an adapter, and its base model was deleted.")
    if base is not None:
        _require_writer(base)
    name = f"{job.name} @ {target.step}"[:200]
    return FoundTarget(CHECKPOINT, name, base, job.model_id, job_id=job.id, step=target.step)


def require_tried_template(settings: Settings, target: FoundTarget, *, field: str | None = None) -> None:
    """Raise ``ChatTemplateRunaway`` where a chat template of the target would hang its engine.

    A checkpoint has the templates of the model that its job started from.
    """
    if target.model is not None and target.model.path:
        require_tried_templates(settings.data_root / target.model.path, field=field)


def is_encoder(architecture: str | None) -> bool:
    """Tell whether an architecture is a headless encoder, which returns vectors, by Transformers' names."""
    return architecture in _ENCODERS


def _require_writer(model: Model) -> None:
    """Refuse reward models and encoders, which return a number or a vector instead of text."""
    architecture = model.architecture or ""
    if architecture.endswith(CLASSIFIER_SUFFIX) or is_encoder(architecture):
        raise TargetUnusable(f"{model.name} is a {architecture}, which can't generate text.")
