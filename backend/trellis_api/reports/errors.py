"""What can go wrong with reports."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class ReportNotFound(NotFound):
    """No such report."""

    code = "report_not_found"

    def __init__(self, report_id: str) -> None:
        super().__init__(f"Report {report_id} not found.")


class ReportFileMissing(NotFound):
    """The report has no file of that format; the details say whether it is still to come."""

    code = "report_file_missing"


class UnknownEvaluation(InvalidRequest):
    """The report names an evaluation that is not there."""

    code = "unknown_evaluation"


class ReportNotRetryable(Conflict):
    """The report is written, or about to be."""

    code = "report_not_retryable"
