"""What the stages of a pipeline name."""

from collections.abc import Iterable

from trellis_api.job_pipelines.models import PipelineStage
from trellis_api.job_pipelines.states import StageState
from trellis_api.jobs.named import Named

_UNFINISHED = (StageState.WAITING, StageState.RUNNING)


def list_named(stages: Iterable[PipelineStage]) -> Named:
    """List what unfinished stages name, among all stages of a pipeline: one names the model of another."""
    known = list(stages)
    made = {stage.stage_id: stage.model_id for stage in known}
    named = Named()
    for stage in known:
        if stage.state not in _UNFINISHED:
            continue
        asked = stage.document
        source = asked.get("model") or {}
        if (model_id := source.get("base") or made.get(str(source.get("stage")))) is not None:
            named.models.add(model_id)
        if asked.get("kind") == "evaluate":
            named.add_orders(asked.get("benchmarks") or ())
        else:
            named.add_training({**asked, "model": None})
    return named
