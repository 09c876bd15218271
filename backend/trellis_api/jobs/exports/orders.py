"""What an export job is told, as it stands in the job's row."""

from pydantic import BaseModel
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import ExportForm

from trellis_api.models.schemas import Training


class ExportOrder(BaseModel):
    """A checkpoint, the form to write it in, and the model to register."""

    job_id: str
    job_name: str
    engine: Engine
    step: int
    form: ExportForm
    #: Of the model; where it is taken by the time, the model gets a number behind it.
    name: str
    description: str = ""
    #: Chosen before anything is written, so that doing a thing twice is doing it once.
    model_id: str
    #: The source as it was when the export was asked for: it may be deleted afterwards.
    training: Training
