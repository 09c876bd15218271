"""What can go wrong with pipelines and their runs."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class PipelineNotFound(NotFound):
    """No saved pipeline has this id."""

    code = "pipeline_not_found"


class PipelineVersionNotFound(NotFound):
    """The saved pipeline has no version of this number."""

    code = "pipeline_version_not_found"


class PipelineNameTaken(Conflict):
    """Another saved pipeline has this name."""

    code = "pipeline_name_taken"


class PipelineInvalid(InvalidRequest):
    """The pipeline cannot be run, or not on these rows; details name each problem."""

    code = "pipeline_invalid"


class PipelineMissing(InvalidRequest):
    """A pipeline is needed in exactly one way: as a document, as YAML, or by the id of a saved one."""

    code = "pipeline_missing"


class JudgeUnknown(InvalidRequest):
    """A judge is named that is not set up."""

    code = "unknown_judge"


class RayMissing(Conflict):
    """The platform has no Ray cluster."""

    code = "ray_missing"


class RunNotFound(NotFound):
    """No run of a pipeline has this id."""

    code = "run_not_found"


class StepNotFound(NotFound):
    """The run has no such step, or it is not done."""

    code = "step_not_found"


class NothingKept(NotFound):
    """The step kept no such rows, or they were removed."""

    code = "nothing_kept"
