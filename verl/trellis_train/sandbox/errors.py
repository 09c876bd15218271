"""What can go wrong when code of strangers is run."""


class SandboxUnavailable(RuntimeError):
    """This machine cannot isolate code, so none is run."""


class SandboxError(RuntimeError):
    """The isolated code did not do what was asked: it raised, died, was too slow or answered nonsense."""


class CodeRaised(SandboxError):
    """The code raised; its process is as good as before."""


class TooSlow(SandboxError):
    """No answer came in time: the code's fault, or a busy machine's."""


class CodeNotLoaded(SandboxError):
    """The code did not get as far as to be called."""

    def __init__(self, message: str, *, was_slow: bool = False) -> None:
        super().__init__(message)
        #: A second try may succeed.
        self.was_slow = was_slow
