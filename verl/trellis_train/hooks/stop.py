"""How a trainer leaves when it is asked to."""


class StoppedByRequest(Exception):
    """The platform asked the run to leave before its first step: there is nothing to checkpoint."""
