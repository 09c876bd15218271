"""Responses of a pass with each of their prompts once.

The responses of a group answer the same prompt, and what a causal model computes of it is the same for all
of them. Sharing it is exact, and gradients add up in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True)
class SharedPrompts:
    """Prompts and the responses to them, both filled up with zeros on their right."""

    #: Token ids (prompts, longest prompt), no two rows the same.
    prompts: Tensor
    #: (prompts,)
    prompt_lengths: Tensor
    #: Token ids (responses, longest response).
    responses: Tensor
    #: (responses,)
    response_lengths: Tensor
    #: The row of each response's prompt (responses,).
    owners: Tensor

    @classmethod
    def find(cls, prompts: Sequence[Tensor], responses: Sequence[Tensor]) -> Self:
        """Find distinct prompts by the token ids of each response and its prompt; all have at least one."""
        keys = [prompt.numpy().tobytes() for prompt in prompts]
        by_key = dict(zip(keys, prompts, strict=True))
        rows = {key: row for row, key in enumerate(by_key)}
        distinct = list(by_key.values())
        return cls(
            prompts=pad_sequence(distinct, batch_first=True),
            prompt_lengths=torch.tensor([len(prompt) for prompt in distinct]),
            responses=pad_sequence(list(responses), batch_first=True),
            response_lengths=torch.tensor([len(response) for response in responses]),
            owners=torch.tensor([rows[key] for key in keys]),
        )

    @property
    def positions(self) -> int:
        """What a pass computes. Nothing follows the last token of a response, so that it is not read."""
        rows, longest = self.responses.shape
        return self.prompts.numel() + rows * (longest - 1)

    @cached_property
    def lengths(self) -> Tensor:
        """Tokens of each response with its prompt: (responses,)."""
        return self.prompt_lengths[self.owners] + self.response_lengths

    @cached_property
    def is_token(self) -> Tensor:
        """Which places of ``responses`` hold a token: (responses, longest response)."""
        return torch.arange(self.responses.shape[1]) < self.response_lengths.unsqueeze(1)

    @property
    def labels(self) -> Tensor:
        """The tokens of all responses, one response after the other: (tokens,)."""
        return self.responses[self.is_token]

    def place(self, values: Tensor) -> Tensor:
        """Place ``values`` of the responses' tokens (tokens,) among those of all rows, packed in order.

        Each stands at the place before its token's, where the model has computed it; the others are zero.
        """
        ends = self.lengths.cumsum(0)
        starts = ends - self.response_lengths - 1
        places = (starts.unsqueeze(1) + torch.arange(self.responses.shape[1]))[self.is_token]
        return values.new_zeros(int(ends[-1])).index_copy(0, places, values)
