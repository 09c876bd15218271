"""Documents as blocks of running text, and the conversations of verl's own dataset, token by token."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer
from trellis_train.data.documents import DocumentBlocks
from trellis_train.starter.model import write_model


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, 0)
    return AutoTokenizer.from_pretrained(folder)


def blocks_of(folder: Path, tokenizer: Any, texts: list[str], length: int, **options: Any) -> DocumentBlocks:
    path = folder / "documents.parquet"
    pq.write_table(pa.table({"text": texts}), path)
    return DocumentBlocks(str(path), tokenizer, SimpleNamespace(max_length=length), **options)


def predicted(blocks: DocumentBlocks) -> list[int]:
    """The tokens that carry loss, in order."""
    found: list[int] = []
    for index in range(len(blocks)):
        block = blocks[index]
        found += block["input_ids"][block["loss_mask"] == 1].tolist()
    return found


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(str.strip)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), length=st.integers(min_value=2, max_value=40))
def test_every_token_is_learned_once(texts: list[str], length: int, tokenizer: Any, tmp_path_factory) -> None:
    blocks = blocks_of(tmp_path_factory.mktemp("documents"), tokenizer, texts, length)
    stream = [token for text in texts for token in [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]]

    assert predicted(blocks) == stream[1:]
    sizes = [len(blocks[index]["input_ids"]) for index in range(len(blocks))]
    assert sizes[:-1] == [length] * (len(sizes) - 1)
    assert 2 <= sizes[-1] <= length


def test_a_block_continues_where_the_one_before_ended(tokenizer: Any, tmp_path: Path) -> None:
    blocks = blocks_of(tmp_path, tokenizer, ["one two three", "four"], 6)

    for index in range(1, len(blocks)):
        before, block = blocks[index - 1], blocks[index]
        assert block["input_ids"][0] == before["input_ids"][-1]
        assert block["loss_mask"].tolist() == [0] + [1] * (len(block["input_ids"]) - 1)
        assert block["position_ids"].tolist() == list(range(len(block["input_ids"])))
    text = "".join(tokenizer.decode([token]) for token in [blocks[0]["input_ids"][0], *predicted(blocks)])
    assert text == f"one two three{tokenizer.eos_token}four{tokenizer.eos_token}"


def test_fewer_blocks_may_be_asked_for(tokenizer: Any, tmp_path: Path) -> None:
    assert len(blocks_of(tmp_path, tokenizer, ["a" * 100], 11, max_samples=3)) == 3
    with pytest.raises(IndexError):
        blocks_of(tmp_path, tokenizer, ["a"], 11)[1]


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no end-of-text token"):
        blocks_of(tmp_path, SimpleNamespace(eos_token_id=None), ["a"], 8)


def test_only_the_turns_of_the_assistant_carry_loss(tokenizer: Any, tmp_path: Path) -> None:
    """verl's own dataset, which the recipe ``sft`` reads conversations with."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    turns = [
        ("system", "Be brief."),
        ("user", "1+1?"),
        ("assistant", "2"),
        ("user", "and one more?"),
        ("assistant", "3, of course"),
    ]
    messages = [{"role": role, "content": content} for role, content in turns]
    path = tmp_path / "messages.parquet"
    pq.write_table(pa.Table.from_pylist([{"messages": messages}]), path)
    config = OmegaConf.create({"pad_mode": "no_padding", "max_length": 512, "truncation": "error"})

    row = MultiTurnSFTDataset(str(path), tokenizer, config)[0]

    whole = tokenizer.apply_chat_template(messages, tokenize=False)
    assert tokenizer.decode(row["input_ids"]) == whole
    learned = tokenizer.decode(row["input_ids"][row["loss_mask"] == 1])
    end = tokenizer.eos_token
    assert learned.replace("\n", "") == f"2{end}3, of course{end}"
