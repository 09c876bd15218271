"""Classes as answers and as tools, the way that the official client writes their schemas."""

from datetime import date, datetime, time, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import openai
from fastapi.testclient import TestClient
from pydantic import AnyUrl, BaseModel
from trellis_api.endpoints.openai.grammar import check_schema
from trellis_testing.engine_server import EngineServer


class Event(BaseModel):
    """What an answer is read as."""

    title: str
    when: datetime
    until: date | None


class FindEvents(BaseModel):
    """A tool."""

    day: date
    at: time


def test_the_official_client_parses_answers_and_calls_with_dates(
    client: TestClient, admin_token: str, ready: dict[str, Any], engine: EngineServer
) -> None:
    official = openai.OpenAI(base_url="http://testserver/v1", api_key=admin_token, http_client=client)
    engine.pieces = ['{"title": "Launch", "when": "2026-02-03T04:05:06Z", "until": null}']

    answer = official.chat.completions.parse(
        model=ready["name"],
        messages=[{"role": "user", "content": "When?"}],
        response_format=Event,
        tools=[openai.pydantic_function_tool(FindEvents)],
    )

    parsed = answer.choices[0].message.parsed
    assert parsed is not None
    assert (parsed.title, parsed.when.year, parsed.until) == ("Launch", 2026, None)
    (body,) = engine.bodies
    asked = body["response_format"]["json_schema"]["schema"]["properties"]
    assert asked["when"]["format"] == "date-time"
    assert body["tools"][0]["function"]["parameters"]["properties"]["at"]["format"] == "time"


def test_what_classes_have_as_formats_passes() -> None:
    class Everything(BaseModel):
        day: date
        moment: datetime
        at: time
        lasts: timedelta
        id: UUID
        four: IPv4Address
        six: IPv6Address
        page: AnyUrl

    schema = Everything.model_json_schema()

    assert check_schema(schema) == schema
