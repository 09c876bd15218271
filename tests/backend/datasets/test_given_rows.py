"""Rows that come in a request: conversations and preference pairs, for a new dataset or one that is there."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_testing.data_tasks import finish_data_tasks

DATASETS = "/api/v1/datasets"
PLAIN = {"messages": [{"role": "user", "content": "1+1="}, {"role": "assistant", "content": "2"}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
CALLING = {
    "messages": [
        {"role": "user", "content": "Weather in Oslo?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "-4"},
        {"role": "assistant", "content": "Cold."},
    ],
    "tools": [{"type": "function", "function": {"name": "weather"}}],
}
PAIR = {
    "prompt": [{"role": "user", "content": "1+1="}],
    "chosen": [{"role": "assistant", "content": "2"}],
    "rejected": [{"role": "assistant", "content": "3"}],
}


def create(client: TestClient, *rows: dict[str, Any], name: str = "typed") -> str:
    answer = client.post(f"{DATASETS}/rows", json={"name": name, "rows": rows})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_a_conversation_becomes_a_row_and_more_come_behind_it(
    client: TestClient, settings: Settings, database: Database
) -> None:
    dataset_id = create(client, PLAIN)
    finish_data_tasks(settings, database)
    more = {"rows": [CALLING], "message": "From the playground."}
    added = client.post(f"{DATASETS}/{dataset_id}/rows", json=more)
    assert added.status_code == 202, added.text
    finish_data_tasks(settings, database)

    dataset = client.get(f"{DATASETS}/{dataset_id}").json()
    assert (dataset["state"], dataset["format"], dataset["row_count"]) == ("ready", "messages", 2)
    rows = without_nulls(client.get(f"{DATASETS}/{dataset_id}/rows").json()["rows"])
    assert rows[0]["messages"] == PLAIN["messages"]
    assert rows[1]["messages"] == CALLING["messages"]
    assert rows[1]["tools"] == '[{"type": "function", "function": {"name": "weather"}}]'
    newest = client.get(f"{DATASETS}/{dataset_id}/versions").json()["items"][0]
    assert (newest["number"], newest["message"]) == (2, "From the playground.")


@pytest.mark.slow
def test_pairs_and_conversations_do_not_mix(
    client: TestClient, settings: Settings, database: Database
) -> None:
    pairs = create(client, PAIR)
    finish_data_tasks(settings, database)
    assert client.get(f"{DATASETS}/{pairs}").json()["format"] == "preference"

    answer = client.post(f"{DATASETS}/{pairs}/rows", json={"rows": [PLAIN]})

    assert (answer.status_code, answer.json()["error"]) == (409, "rows_unfit")
    assert "have the format preference, not messages" in answer.json()["message"]
    assert client.post(f"{DATASETS}/{pairs}/rows", json={"rows": [PAIR]}).status_code == 202
    # Rows of two imports at once would not all arrive.
    again = client.post(f"{DATASETS}/{pairs}/rows", json={"rows": [PAIR]})
    assert (again.status_code, again.json()["error"]) == (409, "dataset_not_ready")
    assert "Try again in a moment" in again.json()["message"]


@pytest.mark.slow
def test_texts_are_no_messages(client: TestClient, settings: Settings, database: Database) -> None:
    line = b'{"prompt": "1+1=", "chosen": "2", "rejected": "3"}\n'
    made = client.post(DATASETS, files={"file": ("pairs.jsonl", line)}, data={"name": "texts"})
    finish_data_tasks(settings, database)

    answer = client.post(f"{DATASETS}/{made.json()['id']}/rows", json={"rows": [PAIR]})

    assert (answer.status_code, answer.json()["details"]["column"]) == (409, "prompt")


def test_a_name_that_is_taken_leaves_no_file(client: TestClient, settings: Settings) -> None:
    create(client, PLAIN)
    before = list((settings.data_root / "uploads").glob("up_*"))

    answer = client.post(f"{DATASETS}/rows", json={"name": "typed", "rows": [PLAIN]})

    assert (answer.status_code, answer.json()["error"]) == (409, "dataset_name_taken")
    assert list((settings.data_root / "uploads").glob("up_*")) == before


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [PLAIN, PAIR],
        [{"messages": PLAIN["messages"][:1]}],
        [{**PAIR, "rejected": PAIR["chosen"]}],
        [{"messages": [{"role": "human", "content": "x"}]}],
        [{**PLAIN, "more": 1}],
    ],
)
def test_what_is_no_row_is_refused(client: TestClient, rows: list[dict[str, Any]]) -> None:
    assert client.post(f"{DATASETS}/rows", json={"name": "typed", "rows": rows}).status_code == 422
