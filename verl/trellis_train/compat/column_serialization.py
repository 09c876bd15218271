"""Serialize all rows of a column into one frame of a message.

The TransferQueue stores rows, and sends a frame for the tensor of each row of each column: 256 responses with
ten columns are thousands of frames, each of which is packed, handed from thread to thread in the storage unit
and unpacked. Here the rows of a column are joined on the way, and described by their lengths
(``queue_schema``), in each process of a job and in those of the queue's storage (``storage_unit``).
"""

import pickle
from typing import Any, cast

from trellis_train.compat.change import change
from trellis_train.compat.queue_schema import GROUP

_SERIALIZER = "transfer_queue.utils.serial_utils"
_TESTS = "tests/train/compat/test_column_serialization.py"
_FRAMES: dict[str, Any] = {
    "group": GROUP,
    "kind": "speed",
    "without": "Each row of each column is a frame of a message: thousands for 256 responses.",
    "tests": (f"{_TESTS}::*",),
}
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


@change(
    target=f"{_SERIALIZER}._encoder",
    does="Joins the rows of a column in one frame of a message.",
    reads=tuple(
        f"{_SERIALIZER}.{name}"
        for name in ("_encoder", "MsgpackEncoder.encode", "MsgpackEncoder.enc_hook",
                     "MsgpackEncoder._encode_regular_tensor_meta")
    ),
    **_FRAMES,
)  # fmt: skip
def join_columns(original: Any) -> Any:
    """The encoder that the queue's messages go through: one for all threads."""
    import torch
    from msgspec import msgpack

    encoder: Any = type(original)

    class Encoder(encoder):
        def encode(self, obj: Any) -> Any:
            return super().encode(join_rows(obj) if isinstance(obj, dict) else obj)

        def enc_hook(self, obj: Any) -> Any:
            if not isinstance(obj, Rows):
                return super().enc_hook(obj)
            joined = self._encode_regular_tensor_meta(torch.cat(obj.rows))
            lengths = [len(row) for row in obj.rows]
            return msgpack.Ext(ROWS, pickle.dumps((joined, lengths), protocol=pickle.HIGHEST_PROTOCOL))

    return Encoder()


@change(
    target=f"{_SERIALIZER}._decoder",
    does="Takes joined columns apart.",
    reads=tuple(
        f"{_SERIALIZER}.{name}"
        for name in ("_decoder", "MsgpackDecoder.ext_hook", "MsgpackDecoder._decode_tensor")
    ),
    **_FRAMES,
)
def split_columns(original: Any) -> Any:
    """The decoder of the queue's messages."""
    decoder: Any = type(original)

    class Decoder(decoder):
        def ext_hook(self, code: int, data: memoryview) -> Any:
            if code != ROWS:
                return super().ext_hook(code, data)
            joined, lengths = pickle.loads(data)  # noqa: S301 - as all of the queue's own kinds
            return list(self._decode_tensor(joined).split(lengths))

    return Decoder()


class _OwnUnits:
    """Stands for the queue's class of storage units where it starts them."""

    @staticmethod
    def options(**options: Any) -> Any:
        import ray

        # Not above: units import this module.
        from trellis_train.compat.storage_unit import StorageUnit

        return ray.remote(num_cpus=1)(StorageUnit).options(**options)


@change(
    target="transfer_queue.storage.bootstrap.simple_storage_bootstrap.SimpleStorageUnit",
    does="Starts storage units that understand joined columns, and save rows without their neighbours.",
    reads=("transfer_queue.storage.simple_storage.SimpleStorageUnit._handle_save_checkpoint",),
    **_FRAMES,
)
def start_own_units(_original: Any) -> Any:
    """What starts the queue's storage."""
    return _OwnUnits
