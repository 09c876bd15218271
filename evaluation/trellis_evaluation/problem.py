"""The error of this package: a code for programs, a sentence for people."""


class EvaluationProblem(Exception):
    """What was asked for cannot be had; ``code`` is stable, the message says why and what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
