"""/v1/embeddings: what the official client sends, and models of the wrong kind."""

from typing import Any

import openai
import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.models.models import Model
from trellis_testing.endpoint_life import Life
from trellis_testing.engine_server import EngineServer

PATH = "/v1/embeddings"


@pytest.fixture
def encoder(
    client: TestClient, database: Database, model: Model, life: Life, engine: EngineServer
) -> dict[str, Any]:
    """The endpoint of an encoder, ready."""
    with database.write() as session:
        row = session.merge(model)
        row.architecture = "BertModel"
        session.add(row)
    endpoint: dict[str, Any] = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    life.report_ready(client, endpoint, life.launch(endpoint), engine.port)
    return endpoint


@pytest.mark.parametrize(
    ("given", "count"), [("one", 1), (["one", "two"], 2), ([1, 2, 3], 1), ([[1, 2], [3]], 2)]
)
@pytest.mark.parametrize("encoding", [None, "float"])
def test_the_official_client_embeds_texts_and_tokens(
    client: TestClient,
    admin_token: str,
    encoder: dict[str, Any],
    engine: EngineServer,
    given: Any,
    count: int,
    encoding: str | None,
) -> None:
    official = openai.OpenAI(base_url="http://testserver/v1", api_key=admin_token, http_client=client)
    more: dict[str, Any] = {} if encoding is None else {"encoding_format": encoding}

    answer = official.embeddings.create(model=encoder["name"], input=given, **more)

    assert [each.embedding for each in answer.data] == [[float(at), float(at)] for at in range(count)]
    assert answer.usage.prompt_tokens == 7
    (body,) = engine.bodies
    # Without a word of the caller's the client asks for base64 and decodes it.
    assert body == {
        "model": encoder["name"],
        "input": given,
        "encoding_format": encoding or "base64",
    }


def test_dimensions_reach_the_engine_whose_refusal_is_told(
    client: TestClient, encoder: dict[str, Any], engine: EngineServer
) -> None:
    engine.refusal = (400, {"message": "no matryoshka", "type": "x", "param": "dimensions", "code": 400})

    answer = client.post(PATH, json={"model": encoder["name"], "input": "x", "dimensions": 64})

    assert engine.bodies[0]["dimensions"] == 64
    error = answer.json()["error"]
    assert (answer.status_code, error["message"], error["param"]) == (400, "no matryoshka", "dimensions")


def test_models_of_the_wrong_kind_are_refused_before_they_are_loaded(
    client: TestClient, model: Model, engine: EngineServer
) -> None:
    answer = client.post(PATH, json={"model": model.name, "input": "x"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "wrong_model_kind")
    assert "not an encoder" in answer.json()["error"]["message"]
    assert client.get("/api/v1/endpoints").json()["items"] == []


def test_an_encoder_writes_no_text(client: TestClient, encoder: dict[str, Any], engine: EngineServer) -> None:
    chat = {"messages": [{"role": "user", "content": "?"}]}

    answer = client.post("/v1/chat/completions", json={"model": encoder["name"], **chat})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "wrong_model_kind")
    assert "/v1/embeddings" in answer.json()["error"]["message"]
    assert engine.bodies == []


@pytest.mark.parametrize(
    "change",
    [
        {"input": []},
        {"input": ""},
        {"input": [""]},
        {"input": [[]]},
        {"input": ["x"] * 2049},
        {"encoding_format": "int8"},
        {"dimensions": 0},
        {"truncate_prompt_tokens": 3},
        {"messages": []},
    ],
)
def test_what_is_no_request_for_vectors_is_refused_by_name(
    client: TestClient, encoder: dict[str, Any], engine: EngineServer, change: dict[str, Any]
) -> None:
    answer = client.post(PATH, json={"model": encoder["name"], "input": "x", **change})

    assert answer.status_code == 400
    assert str(answer.json()["error"]["param"]).startswith(next(iter(change)))
    assert engine.bodies == []


def test_an_encoder_is_measured_by_no_benchmark(client: TestClient, encoder: dict[str, Any]) -> None:
    order = {
        "targets": [{"kind": "model", "model": encoder["model"]["id"]}],
        "benchmarks": [{"benchmark": "gsm8k"}],
    }

    answer = client.post("/api/v1/evaluations", json=order)

    assert answer.status_code == 422
    assert "can't generate text" in answer.text
