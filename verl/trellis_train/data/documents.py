"""Documents as verl's supervised trainer reads them for continued pre-training: blocks of running text.

Given to verl as ``data.custom_cls``. Every document is followed by the end-of-text token; all of them
are one stream, which is cut into blocks. A block begins with the last token of the one before it, so
that every token of the stream but the first is learned exactly once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from torch.utils.data import Dataset

TEXT_COLUMN = "text"
#: Documents that are tokenised together.
BATCH_DOCUMENTS = 1024


class DocumentBlocks(Dataset[dict[str, torch.Tensor]]):
    """The blocks of one or several Parquet files with a column of texts."""

    def __init__(
        self,
        parquet_files: str | Sequence[str],
        tokenizer: Any,
        config: Any,
        processor: Any = None,
        max_samples: int = -1,
    ) -> None:
        del processor  # of images, which documents do not have
        if tokenizer.eos_token_id is None:
            raise ValueError(
                "The model's tokenizer has no end-of-text token, which is needed to pack documents."
            )
        files = [parquet_files] if isinstance(parquet_files, str) else list(parquet_files)
        self._length = int(config.max_length)
        self._stream = np.concatenate(list(_read_streams(files, tokenizer)))
        blocks = -(-(len(self._stream) - 1) // (self._length - 1))
        self._count = min(blocks, max_samples) if max_samples > 0 else blocks
        print(f"{len(self._stream)} tokens in {self._count} blocks of at most {self._length}")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if not 0 <= index < self._count:
            raise IndexError(index)
        start = index * (self._length - 1)
        tokens = torch.from_numpy(self._stream[start : start + self._length].astype(np.int64))
        # Nothing comes before the first token that it could be predicted from.
        loss_mask = torch.ones_like(tokens)
        loss_mask[0] = 0
        return {"input_ids": tokens, "position_ids": torch.arange(len(tokens)), "loss_mask": loss_mask}


def tokenize_documents(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Tokenize each text and end it with the EOS token."""
    end = tokenizer.eos_token_id
    documents = tokenizer(texts, return_attention_mask=False)["input_ids"]
    return [ids if ids and ids[-1] == end else [*ids, end] for ids in documents]


def _read_streams(files: Sequence[str], tokenizer: Any) -> Iterator[np.ndarray[Any, np.dtype[np.int32]]]:
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=BATCH_DOCUMENTS, columns=[TEXT_COLUMN]):
            ended = tokenize_documents(tokenizer, batch.column(0).to_pylist())
            yield np.concatenate([np.asarray(ids, dtype=np.int32) for ids in ended])
