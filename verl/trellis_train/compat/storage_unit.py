"""The TransferQueue's storage unit, which answers with frames of whole columns."""

from typing import Any

import torch
from transfer_queue.storage.simple_storage import SimpleStorageUnit

from trellis_train.compat.applying import apply
from trellis_train.compat.queue_schema import GROUP

apply(GROUP)
#: The class under ``@ray.remote``.
Unit: Any = SimpleStorageUnit.__ray_metadata__.modified_class


class StorageUnit(Unit):
    """Holds rows of columns for the processes of a run."""

    def _handle_save_checkpoint(self, data_parts: Any) -> Any:
        # Rows that came together share their memory, all of which would be written with each of them.
        for rows in self.storage_data.field_data.values():
            rows.update({key: row.clone() for key, row in rows.items() if isinstance(row, torch.Tensor)})
        return super()._handle_save_checkpoint(data_parts)
