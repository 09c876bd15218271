"""Each prompt of a pass once, and the values of responses back among all tokens."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from trellis_train.cpu.prompts import SharedPrompts

TOKENS = st.lists(st.integers(1, 5), min_size=1, max_size=6)
ROWS = st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=8)


def share(rows: list[tuple[list[int], list[int]]]) -> SharedPrompts:
    prompts, responses = zip(*rows, strict=True)
    return SharedPrompts.find(list(map(torch.tensor, prompts)), list(map(torch.tensor, responses)))


@given(ROWS)
def test_every_row_is_found_again_and_no_prompt_twice(rows: list[tuple[list[int], list[int]]]) -> None:
    shared = share(rows)

    prompts = [
        row[:length].tolist() for row, length in zip(shared.prompts, shared.prompt_lengths, strict=True)
    ]
    responses = zip(shared.responses, shared.response_lengths, strict=True)
    assert len(prompts) == len({tuple(prompt) for prompt, _ in rows})
    assert [
        (prompts[owner], response[:length].tolist())
        for owner, (response, length) in zip(shared.owners, responses, strict=True)
    ] == rows
    assert shared.lengths.tolist() == [len(prompt) + len(response) for prompt, response in rows]
    assert shared.labels.tolist() == [token for _, response in rows for token in response]


@given(ROWS)
def test_a_value_stands_before_its_token_and_nothing_elsewhere(
    rows: list[tuple[list[int], list[int]]],
) -> None:
    shared = share(rows)
    count = sum(len(response) for _, response in rows)

    placed = shared.place(torch.arange(1, count + 1)).tolist()

    expected, value = [], 1
    for prompt, response in rows:
        values = list(range(value, value + len(response)))
        expected += [*[0] * (len(prompt) - 1), *values, 0]
        value += len(response)
    assert placed == expected


def test_what_a_pass_computes_is_counted() -> None:
    shared = share([([1, 2, 3], [4]), ([1, 2, 3], [5, 6]), ([7], [8, 9])])

    assert shared.positions == 2 * 3 + 3 * (2 - 1)
