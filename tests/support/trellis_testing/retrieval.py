"""Queries for 1,200 tools, and an encoder that is small enough to be trained on them by a CPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from trellis_contracts.recipe import DataFormat
from trellis_train.agents.tooluse.data.tool_queries import make_tool_queries
from trellis_train.agents.tooluse.data.tools import make_tools
from trellis_train.agents.tooluse.formatting.training_rows import retrieval_row
from trellis_train.agents.tooluse.retrieval.queries import Corpus, read_queries

from trellis_testing.engine_runs import Rows

SEED = 42
VOCABULARY, HIDDEN = 3000, 64


def make_rows(split: str) -> list[dict[str, Any]]:
    """Make the rows of a split: three queries per tool in ``train``, one in ``test``, of other templates."""
    tools = make_tools(SEED)
    by_name = {tool.name: tool.row for tool in tools.all}
    queries = [each for each in make_tool_queries(tools, seed=SEED) if each["split"] == split]
    return [retrieval_row(query, by_name, index=place) for place, query in enumerate(queries)]


def write_rows(rows: Sequence[dict[str, Any]], path: Path) -> Rows:
    """Write the rows as a dataset of the platform."""
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return Rows(path, DataFormat.VERL_RL)


def write_encoder(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write a one-layer Qwen2 decoder with seeded weights, and a tokenizer trained on the rows' texts."""
    from tokenizers import Tokenizer, pre_tokenizers, trainers
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2Model

    corpus = Corpus()
    texts = [query.text for query in read_queries(rows, corpus, "rows")]
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*texts, *corpus.cards], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>"
    )
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        pad_token_id=fast.pad_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Qwen2Model(config)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
