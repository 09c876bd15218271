"""Equality of mathematical expressions (math-verify on SymPy), with a real time limit.

They are compared in child processes (``timed_pool``), which rewards and evaluations share.
"""

from trellis_train.rewards.timed_pool import TimedPool

#: Of the processor's time, so that a machine with much else to do gives the same answers.
TIMEOUT_S = 5.0
#: Longer answers are no expressions.
MAX_CHARACTERS = 500

_pool = TimedPool("trellis_train.rewards.math_worker", trial=("1", "1"))


def compare_expressions(found: str, wanted: str) -> bool | None:
    """Compare two LaTeX or plain expressions; None where their equality cannot be determined in time.

    ``wanted`` is the reference: math-verify reads ``x = 5`` as ``5`` where the reference is a number.
    Safe to call from many threads.
    """
    if max(len(found), len(wanted)) > MAX_CHARACTERS:
        return None
    return _pool.ask(found, wanted, timeout_s=TIMEOUT_S)


def are_equal_expressions(found: str, wanted: str) -> bool:
    """Tell whether two LaTeX or plain expressions are equal; False if this cannot be determined in time."""
    return bool(compare_expressions(found, wanted))


def end_children() -> None:
    """End the processes that compare, when nothing is to be compared for a while."""
    _pool.close()
