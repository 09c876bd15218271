"""What goes wrong with a pipeline, for a person to act on."""


class PipelineProblem(Exception):
    """A pipeline cannot be read, started or gone on with; says where and what to do."""

    def __init__(self, code: str, message: str, *, step: str | None = None, shard: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.step = step
        self.shard = shard

    def __reduce__(self) -> tuple[object, ...]:
        """Make the exception picklable; by default the constructor would be called with the message alone."""
        return (_rebuild, (self.code, self.message, self.step, self.shard))


class RunCancelled(Exception):
    """Somebody asked the run to end; what was done is kept and a later run goes on from there."""


def _rebuild(code: str, message: str, step: str | None, shard: str | None) -> PipelineProblem:
    return PipelineProblem(code, message, step=step, shard=shard)
