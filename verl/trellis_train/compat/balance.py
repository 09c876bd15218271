"""Balancing a step's samples over the trainers with plain numbers.

verl hands its partitioning a tensor, of which every comparison makes a tensor again: a
tenth of a second for some hundred samples, a thousand times what the numbers take.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from trellis_train.compat.change import change

Partition = Callable[..., list[list[int]]]


@change(
    target="verl.trainer.ppo.v1.trainer_base.get_seqlen_balanced_partitions",
    group="trainer",
    kind="speed",
    does="Balances samples over trainers with plain numbers.",
    without="Every comparison makes a tensor: a tenth of a second for some hundred samples.",
    tests=(
        "tests/train/compat/test_balance.py::test_partitions_are_those_of_verl",
        "tests/train/compat/test_balance.py::test_the_trainer_looks_the_partitioning_up_where_it_is_replaced",
    ),
)
def with_plain_numbers(partition: Partition) -> Partition:
    """verl's ``get_seqlen_balanced_partitions``, given a list of numbers whatever it is called with."""

    @wraps(partition)
    def partition_numbers(seqlen_list: Any, *args: Any, **kwargs: Any) -> list[list[int]]:
        numbers = seqlen_list.tolist() if hasattr(seqlen_list, "tolist") else seqlen_list
        return partition(numbers, *args, **kwargs)

    return partition_numbers
