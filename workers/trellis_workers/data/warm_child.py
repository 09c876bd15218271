"""Carries out previews, one after the other: ``python -m trellis_workers.data.warm_child LOCK``."""

import os
import sys
from functools import partial

from trellis_data.warm_process import serve

from trellis_workers.data.child import carry_out

if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "a") as store_lock:
        serve(partial(carry_out, lock=store_lock))
