"""How much isolated code may use."""

import json
from dataclasses import asdict, dataclass

MIB = 1024**2


@dataclass(frozen=True)
class Limits:
    """Bounds of one isolated process. It cannot start others, so these bound all that it does."""

    #: For loading the code and for each call.
    wall_s: float = 5.0
    #: Processor time of the whole process; a loop that outlives its caller ends here.
    cpu_s: int = 600
    memory_bytes: int = 512 * MIB
    #: Of ``/tmp``, the only place that can be written, and of a single file.
    disk_bytes: int = 16 * MIB
    open_files: int = 64
    #: Of what it prints and answers; the rest is thrown away.
    output_bytes: int = 256 * 1024
    #: Of one answer to a call: by default a number or a sentence.
    answer_bytes: int = 64 * 1024

    def as_argument(self) -> str:
        """Write as an argument for the command line of the harness."""
        return json.dumps(asdict(self))
