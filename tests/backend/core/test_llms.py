"""What an agent with curl alone is told: the text, and the examples of the schema."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter
from trellis_api.core.settings import Settings
from trellis_api.main import API_PREFIX, create_app
from trellis_api.openapi_examples import EXAMPLES, OPENAI_EXAMPLES


@pytest.fixture(scope="module")
def app() -> Any:
    return create_app(Settings(redis_url=None))


def test_the_text_is_there_without_a_token_and_names_calls_that_exist(app: Any) -> None:
    answer = TestClient(app, base_url="http://platform.test:8001").get("/llms.txt")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    assert "http://platform.test:8001/api/v1" in text
    assert "Authorization: Bearer" in text
    assert "{{" not in text
    known = [re.sub(r"{\w+}", "[^/]+", path.removeprefix(API_PREFIX)) for path in app.openapi()["paths"]]
    named = re.findall(r"\$TRELLIS(/[\w/.-]+)", text) + re.findall(r"`(?:GET|POST) (/[\w/-]+)`", text)
    assert len(named) > 15
    missing = [path for path in named if not any(re.fullmatch(each, path) for each in known)]
    assert missing == []


WHOLE = {
    **{(f"{API_PREFIX}{path}", method): one for (path, method), one in EXAMPLES.items()},
    **OPENAI_EXAMPLES,
}


@pytest.mark.parametrize(("path", "method"), WHOLE)
def test_an_example_is_a_request_that_the_api_takes(app: Any, path: str, method: str) -> None:
    example = WHOLE[path, method]
    (route,) = [
        each for each in app.routes if getattr(each, "path", "") == path and method.upper() in each.methods
    ]

    TypeAdapter(route.body_field.field_info.annotation).validate_python(example)

    shown = app.openapi()["paths"][path][method]["requestBody"]["content"]
    assert shown["application/json"]["example"] == example
