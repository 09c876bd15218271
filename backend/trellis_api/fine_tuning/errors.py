"""What can go wrong with fine-tuning as OpenAI's API has it; its error codes where it has one."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class FileNotFound(NotFound):
    """No such file."""

    code = "file_not_found"

    def __init__(self, file_id: str) -> None:
        super().__init__(f"File '{file_id[:64]}' not found.", {"param": "file_id"})


class FineTuningJobNotFound(NotFound):
    """No such job."""

    code = "fine_tuning_job_not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Fine-tuning job '{job_id[:64]}' not found.", {"param": "fine_tuning_job_id"})


class PurposeUnsupported(InvalidRequest):
    """Only files for fine-tuning are kept."""

    code = "purpose_unsupported"


class InvalidFile(InvalidRequest):
    """The file cannot be learned from, or is not there."""

    code = "invalid_file"


class FineTuningRefused(InvalidRequest):
    """Something of the request is not supported, or out of bounds; ``param`` names it."""

    code = "unsupported"


class InvalidFineTuningJob(InvalidRequest):
    """What was asked for cannot be trained; ``param`` names the part."""

    code = "invalid_fine_tuning_job"


class GraderUnsupported(InvalidRequest):
    """The grader cannot become a reward here; ``param`` names the part."""

    code = "grader_unsupported"


class FineTuningJobOver(Conflict):
    """The job is in a state in which this cannot be done."""

    code = "fine_tuning_job_state"
