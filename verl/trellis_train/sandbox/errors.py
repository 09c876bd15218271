"""What can go wrong when code of strangers is run."""


class SandboxUnavailable(RuntimeError):
    """This machine cannot isolate code, so none is run."""


class SandboxError(RuntimeError):
    """The isolated code did not do what was asked: it raised, died, was too slow or answered nonsense."""


class CodeNotLoaded(SandboxError):
    """The code did not get as far as to be called."""
