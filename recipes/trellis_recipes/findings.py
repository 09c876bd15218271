"""What the checks found, and what several of them share."""

from trellis_recipes.issues import Issue


class Findings:
    """Errors and warnings in the order in which they were found."""

    def __init__(self) -> None:
        self.errors: list[Issue] = []
        self.warnings: list[Issue] = []

    def error(self, code: str, field: str, message: str, suggestion: str | None = None) -> None:
        """Add an error: something that cannot run."""
        self.errors.append(Issue(code=code, field=field, message=message, suggestion=suggestion))

    def warn(self, code: str, field: str, message: str, suggestion: str | None = None) -> None:
        """Add a warning: something that runs, but hardly as intended."""
        self.warnings.append(Issue(code=code, field=field, message=message, suggestion=suggestion))


def warn_of_adapter(findings: Findings) -> None:
    """Say what a checkpoint with an adapter is good for."""
    findings.warn(
        "adapter_checkpoint",
        "params.lora_rank",
        "Checkpoints contain an adapter. Export one (merged, or adapter only) to use it.",
    )


def largest_divisor(number: int, at_most: int) -> int:
    """Return the largest divisor of ``number`` that is at most ``at_most``."""
    return next(size for size in range(max(1, min(number, at_most)), 0, -1) if number % size == 0)
