"""What can go wrong with pipelines of jobs."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class JobPipelineNotFound(NotFound):
    """No pipeline of jobs has this id."""

    code = "job_pipeline_not_found"


class StageNotFound(NotFound):
    """The pipeline has no stage of this id."""

    code = "stage_not_found"


class InvalidJobPipeline(InvalidRequest):
    """The stages do not fit together, or one cannot run; details name each problem."""

    code = "invalid_job_pipeline"


class JobPipelineRunning(Conflict):
    """The pipeline, or the stage, is under way."""

    code = "job_pipeline_running"


class JobPipelineNotRunning(Conflict):
    """There is nothing to stop."""

    code = "job_pipeline_not_running"


class StageNotReady(Conflict):
    """A stage that this one needs has not finished, so it cannot be run again."""

    code = "stage_not_ready"
