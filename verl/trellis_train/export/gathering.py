"""A checkpoint of any trainer as one whole model: an adapter folded into its base, shards put together."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from trellis_train.export.adapters import merge_adapter, write_adapter
from trellis_train.export.errors import CheckpointIncomplete
from trellis_train.export.layout import read_layout
from trellis_train.export.shards import gather
from trellis_train.export.writing import choose_dtype, copy_companions, copy_model, write_state


def gather_model(
    checkpoint: Path,
    *,
    base: Path | None,
    output: Path,
    scratch: Path,
    leave_if_asked: Callable[[], None],
) -> None:
    """Write the checkpoint's weights as a Hugging Face folder, in the precision of the base model.

    ``base`` is the model that training began with; ``scratch`` a folder for what lies in between.
    ``leave_if_asked`` is called between long steps and may raise.
    """
    layout = read_layout(checkpoint)
    dtype = choose_dtype(base, layout.config)
    if layout.has_adapter:
        if base is None:
            raise CheckpointIncomplete("The adapter's base model no longer exists.")
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            write_adapter(layout, base=base, output=Path(folder))
            leave_if_asked()
            merge_adapter(Path(folder), base=base, output=output, dtype=dtype)
    elif layout.model is not None:
        copy_model(layout.model, output, dtype=dtype)
    elif layout.shards is not None and layout.config is not None:
        state = gather(layout.shards)
        leave_if_asked()
        write_state(state, config_folder=layout.config, output=output, dtype=dtype)
    else:
        raise CheckpointIncomplete("The checkpoint has no model configuration (config.json).")
    if base is not None:  # a tokenizer or a generation config that the trainer did not save
        copy_companions(base, output, replaces=False)
