"""Registers what an export job has written, in the transaction that settles the job.

The model's id and folder were chosen when the export was asked for, and the row is written together
with the job's SUCCEEDED: whatever dies in between, there is one model or none, and never a job that
succeeded without its model.
"""

import logging
from dataclasses import replace

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from trellis_api.core.settings import Settings
from trellis_api.core.texts import number_name
from trellis_api.jobs.exports.orders import ExportOrder
from trellis_api.jobs.models import Job
from trellis_api.models import repository, service
from trellis_api.models.adapter import inspect_adapter
from trellis_api.models.inspection import ModelFacts, inspect_folder
from trellis_api.models.lineage import continue_lineage
from trellis_api.models.models import Model
from trellis_api.models.schemas import ExportSource, ModelState

log = logging.getLogger(__name__)


def inspect_export(settings: Settings, order: ExportOrder) -> ModelFacts:
    """Look at what was written (no database). Raises UnusableFolder and OutsideRoot."""
    folder = service.model_folder(settings, order.model_id)
    inspect = inspect_adapter if order.form == "adapter" else inspect_folder
    return inspect(folder, root=settings.data_root)


def register_export(session: Session, settings: Settings, *, job: Job, facts: ModelFacts) -> Model:
    """Write the model's row, and its final name to the job."""
    order = ExportOrder.model_validate(job.export)
    model = Model(
        id=order.model_id,
        name=order.name,
        description=order.description,
        state=ModelState.READY.value,
        source=ExportSource(job_id=order.job_id, step=order.step, form=order.form).model_dump(),
        lineage=continue_lineage(session, order.training, form=order.form, export_job_id=job.id).model_dump(),
        warnings=[],
    )
    if order.form == "adapter":
        base = repository.find_model(session, model_id=job.model_id)
        facts = replace(
            facts,
            architecture=base.architecture if base else facts.architecture,
            context_length=base.context_length if base else None,
            vocabulary_size=base.vocabulary_size if base else None,
        )
    folder = service.model_folder(settings, order.model_id)
    service.apply_facts(model, settings, folder=folder, facts=facts)
    model = _add_under_free_name(session, model)
    log.info("model %s registered from export %s as '%s'", model.id, job.id, model.name)
    return model


def _add_under_free_name(session: Session, model: Model) -> Model:
    """Add the model; if its name was taken after the export was requested, a number is added."""
    asked, number = model.name, 1
    values = model.model_dump()
    while True:
        if repository.find_model_named(session, name=values["name"]) is None:
            try:
                with session.begin_nested():
                    added = Model(**values)
                    repository.add_model(session, added)
            except IntegrityError:  # taken at this very moment
                log.info("the name '%s' was taken meanwhile", values["name"])
            else:
                return added
        number += 1
        values["name"] = number_name(asked, number)
