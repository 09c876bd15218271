"""Turns of the assistant that are read and not learned: those whose message has the weight 0.

verl's supervised dataset learns every turn of the assistant. Here the mask of one with the weight 0 is
that of any other turn that only gives context, and templates never see the weight.
"""

from typing import Any

import pyarrow as pa
from trellis_recipes.data.row_values import WEIGHT

#: The type of prepared conversations of which some turns have a weight.
WEIGHED_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), (WEIGHT, pa.int8())]))


def weigh(dataset_class: type[Any]) -> type[Any]:
    """The dataset's class, heeding weights."""

    class Weighed(dataset_class):
        def _process_single_message(
            self, index: int, message: dict[str, Any], *more: Any, **named: Any
        ) -> Any:
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

    return Weighed
