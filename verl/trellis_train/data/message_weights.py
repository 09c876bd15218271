"""Turns of the assistant that are read and not learned: those whose message has the weight 0.

verl's supervised dataset learns every turn of the assistant. Here the mask of one with the weight 0 is
that of any other turn that only gives context, and templates never see the weight.

verl renders each message on its own, which chat templates refuse that insist on user and assistant in turn
(Mistral, Gemma). Of those the whole conversation is rendered once, as for preferences.
"""

from typing import Any

import pyarrow as pa
from trellis_recipes.data.row_values import WEIGHT

from trellis_train.preference.conversations import (
    UNLEARNED,
    NothingToLearn,
    TemplateRewrites,
    split_conversation,
)

#: The type of prepared conversations of which some turns have a weight.
WEIGHED_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), (WEIGHT, pa.int8())]))


class RowRefused(ValueError):
    """The model's chat template does not take a row; the message names the row and says why."""


def weigh(dataset_class: type[Any]) -> type[Any]:
    """Extend the dataset class to use message weights and templates that cannot render a single message."""

    class Weighed(dataset_class):
        renders_whole = False

        def _read_files_and_process(self) -> None:
            from jinja2 import TemplateError

            try:
                super()._read_files_and_process()
            except TemplateError:
                # verl's last step there: it looks for the system's prompt in two messages of the user.
                self.system_prompt: list[int] = []
                self.generation_prompt: list[int] = []
                self.renders_whole = True

        def _process_single_message(
            self, index: int, message: dict[str, Any], *more: Any, **named: Any
        ) -> Any:
            if self.renders_whole:
                if index == 0:
                    whole = more[0] if more else named["full_message"]
                    self.parts = _as_tensors(split_conversation(self.tokenizer, whole))
                return self.parts[index]
            plain = {name: value for name, value in message.items() if name != WEIGHT}
            made = super()._process_single_message(index, plain, *more, **named)
            if message.get(WEIGHT) == 0:
                made[1].zero_()
            return made

        def _build_messages(self, example: dict[str, Any]) -> Any:
            messages = super()._build_messages(example)
            for message in messages:
                if message.get(WEIGHT) is None:
                    message.pop(WEIGHT, None)
            return messages

        def __getitem__(self, item: int) -> Any:
            from jinja2 import TemplateError

            try:
                return super().__getitem__(item)
            except (TemplateError, TemplateRewrites, NothingToLearn) as error:
                raise RowRefused(
                    f"Row {item + 1} of the prepared data: the model's chat template refuses it: {error}"
                ) from error

    return Weighed


def _as_tensors(parts: list[tuple[list[int], list[int]]]) -> list[Any]:
    """Convert tokens, mask and attention of each message to tensors, as verl does."""
    import torch

    made: list[Any] = []
    for tokens, labels in parts:
        ids = torch.tensor(tokens, dtype=torch.long)
        mask = torch.tensor([int(label != UNLEARNED) for label in labels], dtype=torch.long)
        made.append((ids, mask, torch.ones_like(ids), {}))
    return made
