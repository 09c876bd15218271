"""Samples are balanced as verl balances them, from numbers instead of tensors."""

import pytest
import torch
from trellis_train.compat.balance import with_plain_numbers
from verl.utils.seqlen_balancing import calculate_workload, get_seqlen_balanced_partitions


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_partitions_are_those_of_verl(partitions: int) -> None:
    generator = torch.Generator().manual_seed(3)
    workload = calculate_workload(torch.randint(20, 30, (32,), generator=generator))

    found = with_plain_numbers(get_seqlen_balanced_partitions)(
        workload, k_partitions=partitions, equal_size=True
    )

    assert found == get_seqlen_balanced_partitions(workload, k_partitions=partitions, equal_size=True)


def test_verl_is_given_numbers() -> None:
    given: list[object] = []

    def partition(lengths: list[int], k_partitions: int) -> list[list[int]]:
        given.extend(lengths)
        return [[] for _ in range(k_partitions)]

    with_plain_numbers(partition)(torch.tensor([3, 5]), k_partitions=1)
    with_plain_numbers(partition)([7], k_partitions=1)

    assert given == [3, 5, 7]
    assert all(type(each) is int for each in given)


def test_the_trainer_looks_the_partitioning_up_where_it_is_replaced() -> None:
    from verl.trainer.ppo.v1 import trainer_base

    assert hasattr(trainer_base, "get_seqlen_balanced_partitions")
