"""Duplicates by meaning: rows whose embeddings point almost the same way.

The embeddings come from a sentence encoder, a column of the rows, a NumPy file, an OpenAI-style endpoint,
or from the characters of the texts (TF-IDF): that finds texts that are worded alike, whatever the order, and
no paraphrases. By default the encoder reads the texts whose script it knows, where it is installed; the
others go by their characters.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import model_validator
from trellis_contracts.recipe import Text

from trellis_data.dedup import encoder
from trellis_data.dedup.clusters import reduce_clusters
from trellis_data.dedup.deduplicator import Deduplicator
from trellis_data.dedup.number_columns import ColumnWriter
from trellis_data.dedup.sources import DuplicateParams
from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem, parameter

if TYPE_CHECKING:
    from trellis_data.dedup.nearest_neighbors import Vectors

#: Name under which a run is given the file of vectors.
RESOURCE = "embeddings"
_SCAN_FILE = "scan.json"
_PAIRS_AT_ONCE = 1 << 14
#: Sources that need nothing but the texts.
_OF_TEXT = ("auto", "encoder", "lexical")


class SemanticParams(DuplicateParams):
    """Parameters of ``semantic_duplicates``."""

    source: Literal["auto", "encoder", "lexical", "column", "file", "endpoint"] = parameter(
        "auto",
        title=Text(en="Embedding source", zh="向量来源"),
        help=Text(
            en="'auto': the sentence encoder all-MiniLM-L6-v2 for texts in Latin script, where it "
            "is installed (about 60 texts of 128 tokens a second and core), the characters for all others. "
            "Or the encoder or the characters always, a column of vectors, the file 'embeddings' (.npy, one "
            "vector a row of this step's input), or an OpenAI-style endpoint.",
            zh="auto：已安装时，拉丁字母文本使用句向量模型 all-MiniLM-L6-v2"
            "（每核每秒约 60 条 128 Token 的文本），"
            "其他文本按字符。也可固定使用句向量模型或字符、向量列、"
            "文件 embeddings（.npy，本步骤输入的每行一个向量），或 OpenAI 风格的接口。",
        ),
    )
    vector_column: str | None = parameter(
        None,
        title=Text(en="Vector column", zh="向量列"),
        help=Text(en="Lists of numbers with the same length.", zh="长度一致的数字列表。"),
    )
    url: str | None = parameter(
        None,
        title=Text(en="Endpoint", zh="接口地址"),
        help=Text(
            en="Base URL including the version, e.g. https://host/v1.",
            zh="到版本号为止的地址，如 https://host/v1。",
        ),
        pattern=r"^https?://",
    )
    model: str | None = parameter(
        None,
        title=Text(en="Model", zh="模型"),
        help=Text(en="Name of the embedding model on the endpoint.", zh="该接口上的向量模型名称。"),
    )
    key_variable: str | None = parameter(
        None,
        title=Text(en="Key", zh="密钥"),
        help=Text(
            en="Environment variable on the workers with the API key: EMBEDDING_KEY or EMBEDDING_…_KEY.",
            zh="工作进程中保存接口密钥的环境变量：EMBEDDING_KEY 或 EMBEDDING_…_KEY。",
        ),
        # No other variable: a pipeline must not send a secret that is meant for something else.
        pattern=r"^EMBEDDING_([A-Z0-9_]+_)?KEY$",
    )
    threshold: float = parameter(
        0.9,
        title=Text(en="Cosine similarity", zh="余弦相似度"),
        help=Text(
            en="Rows with at least this cosine similarity are duplicates.",
            zh="向量余弦相似度达到该值的行视为重复。",
        ),
        ge=0.3,
        le=1.0,
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.source == "column" and not self.vector_column:
            raise ValueError("embeddings from a column require 'vector_column'")
        if self.source == "endpoint" and not (self.url and self.model):
            raise ValueError("embeddings from an endpoint require 'url' and 'model'")
        return self


class SemanticDuplicates(Deduplicator):
    """Keeps one row of those whose embeddings are close."""

    id: ClassVar[str] = "semantic_duplicates"
    title: ClassVar[Text] = Text(en="Semantic duplicates", zh="语义去重")
    help: ClassVar[Text] = Text(
        en="Keeps one row from each cluster with similar embeddings.",
        zh="对向量相近的行只保留一行。",
    )
    reason: ClassVar[str] = "semantic_duplicate"
    Params: ClassVar[Any] = SemanticParams

    params: SemanticParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        super().check(schema, layout)
        if self.params.source == "encoder":
            encoder.check_installed()
        if self.params.source == "file" and RESOURCE not in self.context.resources:
            raise OperatorProblem("vectors_missing", f"The run names no file '{RESOURCE}' with the vectors.")
        name = self.params.vector_column
        if self.params.source != "column" or name is None:
            return
        if name not in schema.names:
            raise OperatorProblem(
                "column_missing", f"No column '{name}'; available: {', '.join(schema.names)}."
            )
        kind = schema.field(name).type
        if not _is_list(kind) or not (
            pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
        ):
            raise OperatorProblem(
                "column_not_vectors", f"Column '{name}' contains {kind}, not lists of numbers."
            )

    def scan(self, batches: Iterator[Batch], folder: Path) -> None:
        self._size = encoder.SIZE if self._reads_by_encoder else 0
        self._by_characters = 0
        super().scan(batches, folder)
        told = {"size": self._size, "by_characters": self._by_characters}
        (folder / _SCAN_FILE).write_text(json.dumps(told))

    def write(self, writer: ColumnWriter, batch: Batch, texts: pl.Series) -> None:
        from trellis_data.dedup.embeddings import write_grams

        if self._reads_by_encoder:
            vectors, readable = encoder.encode_readable(texts)
            writer.append("vectors", vectors)
            # The others go by their characters.
            texts = texts.zip_with(pl.Series(~readable), pl.repeat("", len(texts), eager=True))
        if self.params.source in _OF_TEXT:
            write_grams(writer, texts)
            self._by_characters += int((texts.str.len_chars() > 0).sum())
            return
        vectors = self._vectors(batch, texts)
        if self._size not in (0, vectors.shape[1]):
            raise OperatorProblem(
                "vectors_differ", f"There are vectors of {self._size} and of {vectors.shape[1]} numbers."
            )
        self._size = vectors.shape[1]
        writer.append("vectors", vectors.astype(np.float16))

    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        from trellis_data.dedup.nearest_neighbors import join_close

        told = [json.loads((scan / _SCAN_FILE).read_text()) for scan in scans]
        by_characters = sum(each["by_characters"] for each in told)
        size = self._common_size({each["size"] for each in told})
        spaces = self._spaces(scans, folder, size, has_grams=by_characters > 0)
        parents, joined = join_close(spaces[0], self.params.threshold, self.context.seed)
        for space in spaces[1:]:
            # A row has a vector in one space at most, so no cluster reaches into another space.
            others, also = join_close(space, self.params.threshold, self.context.seed)
            parents = np.where(others == np.arange(len(others)), parents, others)
            joined = {
                "buckets": joined["buckets"] + also["buckets"],
                "recall_on_sample": min(joined["recall_on_sample"], also["recall_on_sample"]),
            }

        def similarity(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
            out = np.empty(len(rows), dtype=np.float32)
            for first in range(0, len(rows), _PAIRS_AT_ONCE):
                some = slice(first, first + _PAIRS_AT_ONCE)
                unique, back = np.unique(others[some], return_inverse=True)
                out[some] = sum(
                    (space.at(rows[some]) * space.at(unique)[back]).sum(axis=1) for space in spaces
                )
            return out

        findings = reduce_clusters(scans, folder, parents, self.params.keep, similarity)
        (folder / "vectors").unlink(missing_ok=True)
        if self.params.source in _OF_TEXT:
            joined["by_characters"] = by_characters
        return findings | joined

    @property
    def _reads_by_encoder(self) -> bool:
        """Whether texts get their vectors from the sentence encoder."""
        source = self.params.source
        return source == "encoder" or (source == "auto" and encoder.is_installed())

    def _common_size(self, sizes: set[int]) -> int:
        """Return the vectors' common size; 0 if rows are compared by characters, or if there are none."""
        if self.params.source not in _OF_TEXT:
            sizes = sizes - {0}  # a shard without rows
        if len(sizes) > 1:
            reason = "; is the sentence encoder installed on every machine?" if 0 in sizes else ""
            raise OperatorProblem("vectors_differ", f"There are vectors of {sorted(sizes)} numbers{reason}")
        return max(sizes, default=0)

    def _spaces(self, scans: Sequence[Path], folder: Path, size: int, *, has_grams: bool) -> list["Vectors"]:
        """Return the vectors to compare: those of the scans, those of character n-grams, or both."""
        from trellis_data.dedup.embeddings import project_grams
        from trellis_data.dedup.nearest_neighbors import Vectors

        spaces = [Vectors(scans, size)] if size else []
        if has_grams or (self.params.source in _OF_TEXT and not size):
            spaces.append(Vectors([folder], project_grams(scans, folder, self.context.seed % (1 << 32))))
        return spaces or [Vectors(scans, 0)]

    def _vectors(self, batch: Batch, texts: pl.Series) -> np.ndarray:
        from trellis_data.dedup import embeddings

        params = self.params
        if params.source == "column" and params.vector_column:
            return embeddings.of_column(batch.table.column(params.vector_column), params.vector_column)
        if params.source == "file":
            return embeddings.of_file(self.context.resources[RESOURCE], batch.start, len(batch))
        return embeddings.of_endpoint(
            texts.to_list(),
            params.url or "",
            params.model or "",
            params.key_variable,
            allows_local=self.context.allows_local_addresses,
        )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
