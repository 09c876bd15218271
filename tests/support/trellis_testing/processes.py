"""Looking at processes that the tests start and end."""

import psutil


def is_running(process: psutil.Process) -> bool:
    """Whether it still does something; a zombie, for which nobody waits, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def list_children(module: str) -> list[int]:
    """The numbers of this process's children that run a module."""
    children = filter(is_running, psutil.Process().children())
    return [each.pid for each in children if module in each.cmdline()]
