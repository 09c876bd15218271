"""Supervised rows of models whose chat template insists on user and assistant in turn (Mistral, Gemma)."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_train.agents.starter import make_tokenizer
from trellis_train.data.message_weights import WEIGHED_MESSAGES, RowRefused, weigh

STRICT = (
    "{{ '<s>' }}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + message['content'] + '</s>' }}{% endif %}{% endfor %}"
)
TALK = [
    {"role": "user", "content": "one and one?"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "and one?"},
    {"role": "assistant", "content": "three"},
]


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    tokenizer = make_tokenizer(["one and one? two three [INST]"] * 3, vocabulary=300)
    tokenizer.chat_template = STRICT

    def make(*rows: list[dict[str, Any]]) -> Any:
        schema = pa.schema([("messages", WEIGHED_MESSAGES)])
        table = pa.Table.from_pylist([{"messages": row} for row in rows], schema)
        pq.write_table(table, tmp_path / "train.parquet")
        config = {"pad_mode": "no_padding", "max_length": 4096, "truncation": "right"}
        return weigh(MultiTurnSFTDataset)([str(tmp_path / "train.parquet")], tokenizer, config)

    return make


def test_the_answers_are_learned_of_a_conversation_in_turn(dataset: Any) -> None:
    unlearned = [TALK[0], {**TALK[1], "weight": 0}, *TALK[2:]]
    rows = dataset(TALK, unlearned)

    whole, weighed = rows[0], rows[1]

    decode = rows.tokenizer.decode
    expected = rows.tokenizer.apply_chat_template(TALK, tokenize=True, return_dict=True)["input_ids"]
    assert whole["input_ids"].tolist() == expected == weighed["input_ids"].tolist()
    assert decode(whole["input_ids"][whole["loss_mask"] == 1]) == " two</s> three</s>"
    assert decode(weighed["input_ids"][weighed["loss_mask"] == 1]) == " three</s>"


@pytest.mark.parametrize("extra", [{"role": "system", "content": "Be brief."}, TALK[0]])
def test_a_row_that_the_template_refuses_is_named_with_the_reason(
    extra: dict[str, Any], dataset: Any
) -> None:
    rows = dataset(TALK, [extra, *TALK])

    with pytest.raises(RowRefused, match=r"Row 2 of the prepared data: .*refuses it: .*roles must alternate"):
        rows[1]
