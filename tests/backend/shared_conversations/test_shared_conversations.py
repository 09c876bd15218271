"""Conversations behind links: read by every user, deleted by who shared them, gone after their time."""

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select
from trellis_api.auth.models import AccessToken
from trellis_api.auth.secrets import hash_secret
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.shared_conversations import service
from trellis_api.shared_conversations.models import SharedConversation

LINKS = "/api/v1/shared-conversations"
CALL = {"id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}', "result": "-4"}
CONVERSATION: dict[str, Any] = {
    "settings": {
        "system": "Be short.", "temperature": 0.7, "top_p": 1.0, "max_tokens": 256, "seed": 1,
        "format": "schema", "response_schema": "{}", "tools": "[]", "thinking": "off",
        "stop": "\\n\nUser:", "top_k": 20, "min_p": 0.1, "presence_penalty": 0.5, "frequency_penalty": -0.5,
    },
    "context": [{"role": "user", "content": "Hello"}],
    "prompts": ["Weather in Oslo?"],
    "columns": [
        {
            "model": "base",
            "turns": [
                [
                    {"text": "", "is_edited": False, "calls": [CALL]},
                    {"text": "Cold.", "is_edited": True, "calls": []},
                ]
            ],
        },
        {"model": "trained", "turns": []},
    ],
}  # fmt: skip


def share(client: TestClient, content: dict[str, Any] = CONVERSATION) -> dict[str, Any]:
    answer = client.post(LINKS, json=content)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


@pytest.fixture
def other(client: TestClient, database: Database) -> TestClient:
    """Another user of the platform."""
    with database.write() as session:
        session.add(AccessToken(token_hash=hash_secret("token"), name="other"))
    return TestClient(client.app, headers={"Authorization": "Bearer token"})


def test_every_user_with_the_link_reads_the_whole_conversation(client: TestClient, other: TestClient) -> None:
    made = share(client)

    found = other.get(f"{LINKS}/{made['id']}").json()

    assert found["content"] == CONVERSATION == made["content"]
    assert (found["created_by"], found["can_delete"], made["can_delete"]) == ("admin", False, True)
    assert found["expires_at"] > found["created_at"]


def test_nobody_reads_or_lists_without_a_login(client: TestClient) -> None:
    made = share(client)
    stranger = TestClient(client.app)

    assert stranger.get(f"{LINKS}/{made['id']}").status_code == 401
    assert stranger.post(LINKS, json=CONVERSATION).status_code == 401
    assert stranger.get(LINKS).status_code == 401


def test_a_user_lists_the_own_links_newest_first(
    client: TestClient, other: TestClient, database: Database
) -> None:
    """With the start of the first prompt; neither those of others nor those that open nothing any more."""
    expired, *made = (
        share(client, {**CONVERSATION, "prompts": [f"Prompt {each} " + "é" * 300, "later"]})
        for each in range(4)
    )
    share(other)
    with database.write() as session:
        session.get_one(SharedConversation, expired["id"]).expires_at = utc_now() - timedelta(seconds=1)

    first = client.get(LINKS, params={"limit": 2}).json()
    second = client.get(LINKS, params={"limit": 2, "cursor": first["next_cursor"]}).json()

    listed = [*first["items"], *second["items"]]
    assert [each["id"] for each in listed] == [each["id"] for each in reversed(made)]
    assert listed[0]["title"] == ("Prompt 3 " + "é" * 300)[:200]
    newest = made[-1]
    assert listed[0] == {
        "id": newest["id"],
        "title": listed[0]["title"],
        "created_at": newest["created_at"],
        "expires_at": newest["expires_at"],
    }
    assert second["next_cursor"] is None
    client.delete(f"{LINKS}/{newest['id']}").raise_for_status()
    assert newest["id"] not in [each["id"] for each in client.get(LINKS).json()["items"]]


def test_only_who_shared_it_deletes_it(client: TestClient, other: TestClient) -> None:
    address = f"{LINKS}/{share(client)['id']}"

    refused = other.delete(address)
    deleted = client.delete(address)

    assert (refused.status_code, refused.json()["error"]) == (403, "shared_by_somebody_else")
    assert "admin" in refused.json()["message"]
    assert deleted.status_code == 204
    assert client.get(address).json()["error"] == "shared_conversation_not_found"
    assert client.delete(address).status_code == 404


def test_links_expire_and_are_then_deleted(client: TestClient, database: Database) -> None:
    made = share(client)
    with database.write() as session:
        row = session.get_one(SharedConversation, made["id"])
        row.expires_at = utc_now() - timedelta(seconds=1)
        session.add(row)

    assert client.get(f"{LINKS}/{made['id']}").status_code == 404
    newer = share(client)

    with database.read() as session:
        assert session.exec(select(SharedConversation.id)).all() == [newer["id"]]


def test_a_conversation_may_have_256_kib(client: TestClient) -> None:
    room = service.MAX_BYTES - len(service.Conversation.model_validate(CONVERSATION).model_dump_json())
    for extra, status in ((room, 201), (room + 1, 422)):
        half = extra // 2
        settings = {**CONVERSATION["settings"], "system": "Be short." + "x" * half}
        context = [{"role": "user", "content": "Hello" + "x" * (extra - half)}]

        answer = client.post(LINKS, json={**CONVERSATION, "settings": settings, "context": context})

        assert answer.status_code == status, answer.text[:300]
    assert answer.json()["error"] == "shared_conversation_too_large"


@pytest.mark.parametrize(
    "changes",
    [
        {"prompts": []},
        {"columns": []},
        {"columns": CONVERSATION["columns"] * 3},
        {"secret": 1},
        {"prompts": ["a\x00b"]},
        {"settings": {**CONVERSATION["settings"], "temperature": 3}},
    ],
)
def test_what_is_no_conversation_is_refused(client: TestClient, changes: dict[str, Any]) -> None:
    answer = client.post(LINKS, json={**CONVERSATION, **changes})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")


def test_a_user_has_a_bounded_number_of_links(
    client: TestClient, other: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_LINKS", 1)
    made = share(client)

    refused = client.post(LINKS, json=CONVERSATION)

    assert (refused.status_code, refused.json()["error"]) == (409, "too_many_shared_conversations")
    assert made["expires_at"][:10] in refused.json()["message"]
    share(other)
    client.delete(f"{LINKS}/{made['id']}").raise_for_status()
    share(client)
