"""Tells what is missing of the training engine, and the command that installs it."""

from importlib.util import find_spec

INSTALL = "`pip install '.[train]'` in a checkout of Trellis"
#: What training cannot do without.
ENGINE_MODULES = ("trellis_train", "verl", "vllm", "torch")


def require_engine() -> None:
    """Raise ``ImportError`` with the install command if the engine is missing."""
    missing = [name for name in ENGINE_MODULES if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"Training needs {', '.join(missing)}, not installed here. Install it with {INSTALL}."
        )
