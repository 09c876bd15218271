"""What can go wrong with evaluations."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class EvaluationNotFound(NotFound):
    """No such evaluation."""

    code = "evaluation_not_found"

    def __init__(self, *evaluation_ids: str) -> None:
        named = f"Evaluation{'s' if len(evaluation_ids) > 1 else ''} {', '.join(evaluation_ids)}"
        super().__init__(f"{named} not found.", {"evaluations": list(evaluation_ids)})


class EvaluationActive(Conflict):
    """Cancel the evaluation first."""

    code = "evaluation_active"


class EvaluationNotCancellable(Conflict):
    """The evaluation is over, or stopping already."""

    code = "evaluation_not_cancellable"


class EvaluationNotRetryable(Conflict):
    """The evaluation still runs, or it succeeded."""

    code = "evaluation_not_retryable"


class EvaluationUnfinished(Conflict):
    """There are no results yet."""

    code = "evaluation_unfinished"


class SamplesNotReady(Conflict):
    """The benchmark is not done yet; its samples can be read when it is."""

    code = "samples_not_ready"


class SampleNotFound(NotFound):
    """The benchmark has no such sample, or the evaluation no such benchmark."""

    code = "sample_not_found"


class InvalidOrder(InvalidRequest):
    """A benchmark cannot be run as it was ordered; the details name each field that is wrong."""

    code = "invalid_order"


class TargetUnusable(InvalidRequest):
    """The model or checkpoint cannot be measured; the details name the field."""

    code = "target_unusable"


class SamplesDamaged(Conflict):
    """The file of samples cannot be read."""

    code = "samples_damaged"


class ComparisonMissing(InvalidRequest):
    """What changed needs an evaluation to compare with."""

    code = "against_missing"


class InvalidEvaluationComparison(InvalidRequest):
    """Too few or too many evaluations, or an id that is none."""

    code = "invalid_evaluation_comparison"


class NoSharedBenchmark(Conflict):
    """No other evaluation has a benchmark of the baseline; the details list what each has."""

    code = "no_shared_benchmark"


class HistoryOfWhat(InvalidRequest):
    """Neither a model nor a job is named, or both are."""

    code = "history_of_what"
