"""Columns whose rows travel together arrive as they were sent, in few frames, and are stored as rows."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import zmq
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transfer_queue.utils import serial_utils
from transfer_queue.utils.zmq_utils import STORAGE_MANAGER_IDENTITY_PREFIX, ZMQMessage, ZMQRequestType
from trellis_train.compat.applying import apply
from trellis_train.compat.column_serialization import GROUP, can_join
from trellis_train.compat.storage_unit import StorageUnit

TYPES = [torch.int64, torch.float32, torch.bfloat16, torch.bool, torch.uint8]


@pytest.fixture(autouse=True)
def _installed() -> None:
    apply(GROUP)


def message(data: dict[str, Any], kind: Any = ZMQRequestType.PUT_DATA, **more: Any) -> ZMQMessage:
    return ZMQMessage.create(kind, "a client", {"data": data, **more})


def travel(data: dict[str, Any]) -> tuple[dict[str, Any], int]:
    frames = message(data).serialize()
    return ZMQMessage.deserialize(frames).body["data"], len(frames)


def is_same(found: Any, sent: Any) -> bool:
    if isinstance(sent, Tensor):
        return isinstance(found, Tensor) and found.dtype == sent.dtype and torch.equal(found, sent)
    return bool(found == sent)


@st.composite
def columns(draw: st.DrawFn) -> list[Tensor]:
    dtype, inner = draw(st.sampled_from(TYPES)), draw(st.sampled_from([(), (3,), (2, 2)]))
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    return [(torch.rand(length, *inner) * 9).to(dtype) for length in lengths]


@given(columns())
def test_a_column_arrives_as_it_was_sent(column: list[Tensor]) -> None:
    arrived, _ = travel({"column": column, "words": ["a"] * len(column)})

    assert len(arrived["column"]) == len(column)
    assert all(map(is_same, arrived["column"], column))
    assert arrived["words"] == ["a"] * len(column)


def test_a_column_takes_one_frame_whatever_its_rows() -> None:
    data = {name: [torch.arange(length) for length in range(1, 200)] for name in ("prompts", "responses")}

    assert travel(data)[1] == 3


@pytest.mark.parametrize(
    "column",
    [
        [torch.arange(3), torch.arange(3).float()],
        [torch.zeros(2, 3), torch.zeros(2, 4)],
        [torch.arange(3), None],
        [torch.tensor(1), torch.tensor(2)],
        [torch.zeros(2), torch.zeros(2, 2)],
        [torch.arange(6)],
        ["a", "b"],
        [],
    ],
)
def test_what_cannot_be_joined_travels_as_before(column: list[Any]) -> None:
    assert not can_join(column)
    arrived, _ = travel({"column": column})

    assert len(arrived["column"]) == len(column)
    assert all(map(is_same, arrived["column"], column))


def test_rows_that_are_no_neighbours_in_memory_are_joined() -> None:
    table = torch.arange(12).reshape(3, 4)
    column = [table[:, 0], table[:, 2]]

    assert can_join(column)
    assert all(map(is_same, travel({"column": column})[0]["column"], column))


class Client:
    """Talks to a storage unit as the queue's manager does."""

    def __init__(self, unit: Any) -> None:
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.setsockopt(zmq.IDENTITY, f"{STORAGE_MANAGER_IDENTITY_PREFIX}test".encode())
        self._socket.setsockopt(zmq.RCVTIMEO, 20_000)
        info = unit.zmq_server_info
        self._socket.connect(f"tcp://{info.ip}:{info.ports['put_get_socket']}")

    def ask(self, request: ZMQMessage) -> tuple[Any, int]:
        self._socket.send_multipart(request.serialize(), copy=False)
        frames = self._socket.recv_multipart(copy=False)
        return ZMQMessage.deserialize(frames).body, len(frames)

    def close(self) -> None:
        self._socket.close(linger=0)


@pytest.fixture
def unit() -> Iterator[Any]:
    unit = StorageUnit({})
    yield unit
    unit.shutdown()


@pytest.fixture
def client(unit: Any) -> Iterator[Client]:
    client = Client(unit)
    yield client
    client.close()


def put(client: Client, lengths: list[int]) -> list[Tensor]:
    rows = [torch.arange(length) + 100 * length for length in lengths]
    places = list(range(len(rows)))
    client.ask(message({"ids": rows}, global_indexes=places, data_parser=None))
    return rows


def test_a_storage_unit_answers_with_any_of_the_rows_in_one_frame(client: Client) -> None:
    rows = put(client, [5, 2, 7, 3])
    wanted = ZMQMessage.create(
        ZMQRequestType.GET_DATA, "a client", {"fields": ["ids"], "global_indexes": [3, 0, 2]}
    )
    answer, frames = client.ask(wanted)

    assert frames == 2
    assert all(map(is_same, answer["data"]["ids"], [rows[3], rows[0], rows[2]]))


def test_a_checkpoint_holds_each_row_once(client: Client, tmp_path: Path) -> None:
    rows = put(client, [1000] * 50)
    path = tmp_path / "unit.pkl"
    save = ZMQMessage.create(ZMQRequestType.SAVE_STORAGE_CHECKPOINT, "a client", {"path": str(path)})

    assert client.ask(save)[0] == {"success": True}
    assert path.stat().st_size < 2 * 8 * 1000 * 50
    assert is_same(pickle.loads(path.read_bytes())["field_data"]["ids"][49], rows[49])


def test_the_queue_still_packs_its_messages_where_we_change_it() -> None:
    assert type(serial_utils._encoder) is not serial_utils.MsgpackEncoder
    assert isinstance(serial_utils._encoder, serial_utils.MsgpackEncoder)
    assert isinstance(serial_utils._decoder, serial_utils.MsgpackDecoder)
