"""What is raised before a run whose agent could not act; a module of its own, for it loads nothing."""


class AgentUnusable(RuntimeError):
    """No episode could be played; the message says why."""
