"""Rows of one column travel between processes in one frame of a message.

The TransferQueue stores rows, and sends a frame for the tensor of each row of each column: 256 responses with
ten columns are thousands of frames, each of which is packed, handed from thread to thread in the storage unit
and unpacked. Here the rows of a column are joined on the way, and described by their lengths
(``rollout.schema``). Loaded in each process of a job through ``VERL_USE_EXTERNAL_MODULES``, and in those of
the queue's storage by ``rollout.storage``.
"""

import os
import pickle
from functools import cache
from types import ModuleType
from typing import Any, cast

from trellis_train.engines.isolation import RUN_VARIABLE
from trellis_train.platform.imports import patch_after_import, require
from trellis_train.rollout import schema

MODULE_NAME = __name__
SERIALIZER = "transfer_queue.utils.serial_utils"
#: What its messages go through: one of each, for all threads.
ENCODER, DECODER = "_encoder", "_decoder"
BOOTSTRAP, UNIT = "transfer_queue.storage.bootstrap.simple_storage_bootstrap", "SimpleStorageUnit"
#: The kind of a joined column in messages; the queue's own kinds are numbered from 1.
ROWS = 64


class Rows:
    """Tensors of one type whose shapes differ in their first dimension only, to be sent together."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows


def can_join(column: Any) -> bool:
    """Whether ``column`` is a list of two or more plain tensors of a CPU that differ in length only."""
    import torch

    def kind(row: Any) -> Any:
        """What rows of one column have in common; None of what is not joined."""
        is_plain = type(row) is torch.Tensor and row.layout == torch.strided and row.device.type == "cpu"
        return (row.dtype, row.shape[1:]) if is_plain and row.dim() > 0 else None

    if not isinstance(column, list) or len(column) < 2:
        return False
    expected = kind(column[0])
    return expected is not None and all(kind(row) == expected for row in column)


def join_rows(message: dict[str, Any]) -> dict[str, Any]:
    """``message`` of the queue, with the columns of its data marked that :func:`can_join`."""
    body = message.get("body")
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict):
        return message
    columns = {name: Rows(column) if can_join(column) else column for name, column in data.items()}
    return {**message, "body": {**cast("dict[str, Any]", body), "data": columns}}


def _with_frames_of_columns(module: ModuleType) -> None:
    """Replace the encoder and the decoder that the queue's messages go through."""
    import torch
    from msgspec import msgpack

    require(module, ENCODER, DECODER)
    encoder: Any = type(getattr(module, ENCODER))
    decoder: Any = type(getattr(module, DECODER))
    require(encoder, "encode", "enc_hook", "_encode_regular_tensor_meta")
    require(decoder, "ext_hook", "_decode_tensor")

    class Encoder(encoder):
        def encode(self, obj: Any) -> Any:
            return super().encode(join_rows(obj) if isinstance(obj, dict) else obj)

        def enc_hook(self, obj: Any) -> Any:
            if not isinstance(obj, Rows):
                return super().enc_hook(obj)
            joined = self._encode_regular_tensor_meta(torch.cat(obj.rows))
            lengths = [len(row) for row in obj.rows]
            return msgpack.Ext(ROWS, pickle.dumps((joined, lengths), protocol=pickle.HIGHEST_PROTOCOL))

    class Decoder(decoder):
        def ext_hook(self, code: int, data: memoryview) -> Any:
            if code != ROWS:
                return super().ext_hook(code, data)
            joined, lengths = pickle.loads(data)  # noqa: S301 - as all of the queue's own kinds
            return list(self._decode_tensor(joined).split(lengths))

    setattr(module, ENCODER, Encoder())
    setattr(module, DECODER, Decoder())


class _OwnUnits:
    """Stands for the queue's class of storage units where it starts them."""

    @staticmethod
    def options(**options: Any) -> Any:
        import ray

        # Not above: units import this module.
        from trellis_train.rollout.storage import StorageUnit

        return ray.remote(num_cpus=1)(StorageUnit).options(**options)


def _with_own_units(module: ModuleType) -> None:
    """Let the queue start storage units that understand joined columns."""
    require(module, UNIT)
    setattr(module, UNIT, _OwnUnits)


@cache
def send_columns_whole() -> None:
    """Install the patches, once; they take effect when the queue's modules are imported."""
    patch_after_import(schema.MODULE, schema.describe_by_lengths)
    patch_after_import(SERIALIZER, _with_frames_of_columns)
    patch_after_import(BOOTSTRAP, _with_own_units)


if os.environ.get(RUN_VARIABLE):
    send_columns_whole()
