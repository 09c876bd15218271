"""Says which pieces of the layer are used. Each can be left out alone, to measure what it gains."""

import os

from trellis_train.cpu.changes import DRIVER, FORKING, ROLLOUT, TRAINERS

#: Pieces to leave out, separated by commas.
LEAVE_OUT_VARIABLE = "TRELLIS_CPU_LEAVE_OUT"
#: Pieces that change no symbol of an engine.
PRESTARTING = "cpu-prestarting"
PACKED_ATTENTION, SPINNING = "cpu-packed-attention", "cpu-spinning"
_WITHOUT_CHANGES = (PRESTARTING, PACKED_ATTENTION, SPINNING)
#: All pieces: those above and the groups of changes.
PIECES = tuple(dict.fromkeys((*TRAINERS, *ROLLOUT, *DRIVER, FORKING, *_WITHOUT_CHANGES)))


def is_used(piece: str) -> bool:
    """Say whether ``piece`` is used. Raises ``ValueError`` where the variable names an unknown piece."""
    left_out = {name.strip() for name in os.environ.get(LEAVE_OUT_VARIABLE, "").split(",")} - {""}
    unknown = left_out - set(PIECES)
    if unknown:
        raise ValueError(
            f"{LEAVE_OUT_VARIABLE} names no piece of the CPU layer: {', '.join(sorted(unknown))}; "
            f"pieces: {', '.join(PIECES)}"
        )
    return piece not in left_out
