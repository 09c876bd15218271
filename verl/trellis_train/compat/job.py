"""Installs what every process of a job has: verl imports it in each (``VERL_USE_EXTERNAL_MODULES``)."""

import os

from trellis_train.compat import isolation
from trellis_train.compat.applying import apply

MODULE_NAME = __name__


def install() -> None:
    """Install the changes, once; they take effect when the engines' modules are imported."""
    apply(isolation.GROUP)


if os.environ.get(isolation.RUN_VARIABLE):
    install()
