"""Duplicates by vectors: every source, exact in small and bucketed in large, against plain NumPy."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from trellis_data.dedup import embeddings, encoder, nearest_neighbors
from trellis_data.dedup.semantic import SemanticDuplicates, SemanticParams
from trellis_data.operator import Context, OperatorProblem
from trellis_testing.global_operators import run_global
from trellis_testing.paraphrases import PARAPHRASES
from trellis_tools.bench.data.corpus import chunks


def dedupe(table: pa.Table, folder: Path, context: Context | None = None, **params: Any) -> Any:
    return run_global(SemanticDuplicates(SemanticParams(**params), context or Context()), table, folder)


def directions(count: int, copies: int, seed: int = 0) -> np.ndarray:
    """Vectors in all directions, the last ones close to the first."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, 48))
    near = vectors[:copies] + 0.05 * random.normal(size=(copies, 48))
    return np.concatenate([vectors, near]).astype(np.float32)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_texts_that_are_worded_alike_are_found_without_a_model(language: str, tmp_path: Path) -> None:
    ((documents, copies),) = list(chunks(3000, 6, language))

    ran = dedupe(pa.table({"text": documents}), tmp_path, source="lexical", threshold=0.8)

    gone = np.flatnonzero(~ran.keep)
    alike = copies.copies[copies.similarity >= 0.85]
    assert len(alike) > 100
    assert np.isin(alike, gone).mean() >= 0.95
    assert np.isin(gone, copies.copies).all()
    assert set(ran.reasons.values()) == {"semantic_duplicate"}


def test_the_encoder_finds_paraphrases_and_leaves_other_scripts_to_the_characters(tmp_path: Path) -> None:
    chinese = [
        "今天的天气非常好我们去公园散步吧",
        "请帮我写一封给客户的邮件说明延迟",
        "今天的天气非常好我们去公园散步吧！",
    ]
    texts = [text for pair in PARAPHRASES for text in pair] + chinese + ["", "", None]

    ran = dedupe(pa.table({"text": texts}), tmp_path, threshold=0.8)

    paired = [True, False] * len(PARAPHRASES)
    assert ran.keep.tolist() == [*paired, True, True, False, True, True, True]
    assert ran.findings["by_characters"] == len(chinese)


def test_long_texts_that_only_begin_alike_are_no_duplicates(tmp_path: Path) -> None:
    beginning = "The committee met on Monday and discussed the budget of the coming year at length. " * 20
    endings = [
        "The volcano erupted and covered the island in ash. ",
        "She bought a red bicycle for her son. ",
    ]
    texts = [beginning + ending * 30 for ending in endings]

    ran = dedupe(pa.table({"text": [*texts, texts[0]]}), tmp_path, source="encoder")

    assert ran.keep.tolist() == [True, True, False]


def test_without_the_encoder_the_characters_decide_and_asking_for_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "_PACKAGE", "no_such_package")
    table = pa.table({"text": [*PARAPHRASES[0], PARAPHRASES[0][0]]})

    ran = dedupe(table, tmp_path / "auto", threshold=0.8)

    assert ran.keep.tolist() == [True, True, False]
    with pytest.raises(OperatorProblem, match="pip install sentence-transformers"):
        dedupe(table, tmp_path / "asked", source="encoder")


def test_weights_that_are_not_the_published_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "some_encoder" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(encoder, "_PACKAGE", "some_encoder")

    with pytest.raises(OperatorProblem, match="not the published"):
        encoder.find_weights()


def test_vectors_of_a_column_are_compared_whatever_the_text(tmp_path: Path) -> None:
    vectors = [[1.0, 0.0], [0.0, 1.0], [0.99, 0.05], None, [0.0, 0.0]]
    table = pa.table({"text": list("abcde"), "vector": vectors})

    ran = dedupe(table, tmp_path, source="column", vector_column="vector", threshold=0.95)

    assert ran.keep.tolist() == [True, True, False, True, True]


def test_vectors_of_a_file_are_those_of_the_rows(tmp_path: Path) -> None:
    vectors = directions(40, 10)
    np.save(tmp_path / "vectors.npy", vectors)
    context = Context(resources={"embeddings": tmp_path / "vectors.npy"})
    table = pa.table({"text": [str(number) for number in range(50)]})

    ran = dedupe(table, tmp_path / "run", context, source="file")

    assert ran.keep.tolist() == [True] * 40 + [False] * 10
    with pytest.raises(OperatorProblem, match="are asked for"):
        dedupe(pa.table({"text": ["x"] * 51}), tmp_path / "more", context, source="file")
    with pytest.raises(OperatorProblem, match="names no file"):
        dedupe(table, tmp_path / "none", source="file")


def test_buckets_find_what_comparing_all_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = directions(4000, 800)
    table = pa.table({"text": ["x"] * len(vectors), "vector": list(vectors)})
    how = {"source": "column", "vector_column": "vector", "threshold": 0.95}
    exact = dedupe(table, tmp_path / "exact", **how)
    monkeypatch.setattr(nearest_neighbors, "ALL_WITH_ALL", 100)
    monkeypatch.setattr(nearest_neighbors, "_ROWS_PER_CENTRE", 200)

    bucketed = dedupe(table, tmp_path / "buckets", **how)

    assert exact.keep.tolist() == [True] * 4000 + [False] * 800
    assert bucketed.findings["buckets"] == 24
    assert (~bucketed.keep[4000:]).mean() >= 0.97
    assert bucketed.keep[:4000].all()
    assert bucketed.findings["recall_on_sample"] >= 0.9


class _Endpoint(BaseHTTPRequestHandler):
    busy = 0
    keys: list[str | None] = []  # noqa: RUF012 - set anew by the fixture

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        cls = type(self)
        cls.keys.append(self.headers.get("Authorization"))
        if body["model"] == "unknown" or cls.busy:
            cls.busy = max(0, cls.busy - 1)
            self.send_response(404 if body["model"] == "unknown" else 503)
            self.end_headers()
            self.wfile.write(b"no")
            return
        rows = [
            {"index": at, "embedding": [float(len(text)), 1.0, float(text.count("a"))]}
            for at, text in enumerate(body["input"])
        ]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": rows[::-1]}).encode())

    def log_message(self, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    _Endpoint.keys, _Endpoint.busy = [], 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_endpoint_is_asked_in_batches_with_its_key_and_again_when_busy(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_KEY", "secret")
    monkeypatch.setattr(embeddings.time, "sleep", lambda _: None)
    _Endpoint.busy = 2
    texts = ["aaaa", "bbbbbbbbbbbb", "aaaa"] + ["c" * 200] * 97

    ran = dedupe(
        pa.table({"text": texts}),
        tmp_path,
        source="endpoint",
        url=endpoint,
        model="small",
        key_variable="EMBEDDING_KEY",
        threshold=0.999,
    )

    assert np.flatnonzero(ran.keep).tolist() == [0, 1, 3]
    assert set(_Endpoint.keys) == {"Bearer secret"}


def test_an_endpoint_that_refuses_is_told_with_its_answer(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorProblem, match="returned no embeddings: 404 no"):
        dedupe(pa.table({"text": ["a"]}), tmp_path, source="endpoint", url=endpoint, model="unknown")
    assert len(_Endpoint.keys) == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"text": ["a"]}, "No column 'vector'"),
        ({"text": ["a"], "vector": ["b"]}, "not lists of numbers"),
        ({"text": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}, "one length"),
    ],
)
def test_what_is_no_vector_is_refused(table: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorProblem, match=message):
        run_global(
            SemanticDuplicates(SemanticParams(source="column", vector_column="vector"), Context()),
            pa.table(table),
            tmp_path,
            shards=1,
        )


def test_parameters_that_lack_something_are_refused() -> None:
    with pytest.raises(ValidationError, match="vector_column"):
        SemanticParams(source="column")
    with pytest.raises(ValidationError, match="url"):
        SemanticParams(source="endpoint")


def test_no_secret_but_an_embedding_key_can_be_sent() -> None:
    with pytest.raises(ValidationError, match="key_variable"):
        SemanticParams(source="endpoint", url="http://a", model="b", key_variable="DATABASE_PASSWORD")
