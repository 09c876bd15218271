"""/v1/files with the official client: what is kept, what becomes of the lines, what is refused."""

from typing import Any

import openai
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.uploads.service import remove_expired
from trellis_testing.data_tasks import finish_data_tasks

from .conftest import Upload, as_lines, chats, pairs, prompts


def dataset_of(client: TestClient, file_id: str) -> dict[str, Any]:
    """The dataset that a file became."""
    found = client.get("/api/v1/datasets", params={"text": file_id}).json()["items"]
    return dict(found[0])


def rows_of(client: TestClient, file_id: str) -> list[dict[str, Any]]:
    dataset = dataset_of(client, file_id)
    rows = client.get(f"/api/v1/datasets/{dataset['id']}/rows").json()["rows"]
    return [row.get("values", row) for row in rows]


def test_a_file_is_kept_as_it_came_and_read_by_a_worker(
    official: openai.OpenAI, upload: Upload, settings: Settings, database: Database
) -> None:
    file = upload(chats(), is_read=False)
    assert (file.status, file.purpose, file.filename) == ("uploaded", "fine-tune", "examples.jsonl")
    assert file.bytes == len(as_lines(chats()))

    finish_data_tasks(settings, database)

    assert official.files.retrieve(file.id).status == "processed"
    assert official.files.content(file.id).content == as_lines(chats())
    # It stays, though uploads that nobody imports go.
    remove_expired(database, settings)
    assert official.files.content(file.id).content == as_lines(chats())


@pytest.mark.slow
def test_a_real_child_process_reads_it_alike(
    official: openai.OpenAI, upload: Upload, settings: Settings, database: Database, client: TestClient
) -> None:
    file = upload(pairs(), is_read=False)

    finish_data_tasks(settings, database, in_child=True)

    assert official.files.retrieve(file.id).status == "processed"
    assert dataset_of(client, file.id)["format"] == "preference"


def test_files_are_listed_page_by_page(official: openai.OpenAI, upload: Upload) -> None:
    ids = [upload(chats(), is_read=False).id for _ in range(3)]

    assert [file.id for file in official.files.list(limit=2)] == ids[::-1]
    assert [file.id for file in official.files.list(order="asc", limit=1)] == ids
    assert list(official.files.list(purpose="batch")) == []


def test_a_list_of_files_takes_the_same_queries_however_long_it_is(
    official: openai.OpenAI, upload: Upload, settings: Settings, database: Database
) -> None:
    statements: list[str] = []

    def count() -> int:
        statements.clear()
        official.files.list()
        return len(statements)

    upload(b"no JSON")
    event.listen(database.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    few = count()

    for number in range(2, 5):
        upload(b"no JSON" * number, is_read=False)
    finish_data_tasks(settings, database)

    assert count() == few
    assert [file.status for file in official.files.list().data] == ["error"] * 4
    assert all(file.status_details for file in official.files.list().data if file.status == "error")


def test_a_deleted_file_takes_its_rows_along(
    official: openai.OpenAI, upload: Upload, client: TestClient, settings: Settings
) -> None:
    file = upload(chats())
    dataset = dataset_of(client, file.id)

    assert official.files.delete(file.id).deleted

    with pytest.raises(openai.NotFoundError, match="not found"):
        official.files.retrieve(file.id)
    assert client.get(f"/api/v1/datasets/{dataset['id']}").status_code == 404
    assert not list((settings.data_root / "uploads").glob("up_*"))


@pytest.mark.parametrize(
    ("rows", "data_format"), [(chats(), "messages"), (pairs(), "preference"), (prompts(), "verl-rl")]
)
def test_each_kind_of_example_becomes_rows_of_a_format(
    client: TestClient, upload: Upload, rows: list[Any], data_format: str
) -> None:
    file = upload(rows)

    assert file.status == "processed", file.status_details
    dataset = dataset_of(client, file.id)
    assert (dataset["format"], dataset["row_count"]) == (data_format, len(rows))


def test_tools_and_weights_of_a_chat_are_kept(client: TestClient, upload: Upload) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    chat = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "1+"}, {"type": "text", "text": "1?"}]},
            {"role": "assistant", "content": "Hm.", "weight": 0},
            {"role": "user", "content": "Well?"},
            {"role": "assistant", "content": None, "tool_calls": [call], "weight": 1},
            {"role": "tool", "tool_call_id": "c", "content": "2"},
            {"role": "assistant", "content": "2"},
        ],
        "tools": [tool],
        "parallel_tool_calls": False,
    }

    file = upload([chat])

    (row,) = rows_of(client, file.id)
    assert row["messages"][0]["content"] == "1+1?"
    assert [each.get("weight") for each in row["messages"]] == [None, 0, None, 1, None, None]
    assert row["messages"][3]["tool_calls"][0]["function"]["name"] == "add"
    assert '"add"' in row["tools"]


CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
QUESTION = {"role": "user", "content": "1+1?"}
TWO_CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "d"}]}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (b'{"messages": [', "Line 1 is no example: not valid JSON"),
        (as_lines([chats()[0], {"text": "?"}]), "Line 2 is no example: it has neither"),
        (as_lines([chats()[0], pairs()[0]]), "Line 2 is no example: it is a pair"),
        (as_lines([{**chats()[0], "label": 1}]), "a chat has no field 'label'"),
        (
            as_lines([{"messages": [{"role": "assistant", "content": "x", "weight": 0}]}]),
            "no message of the assistant is learned",
        ),
        (
            as_lines([{"messages": [{"role": "assistant", "content": "x", "weight": 0.5}]}]),
            "the weight must be 0 or 1",
        ),
        (as_lines([{**chats()[0], "parallel_tool_calls": "no"}]), "must be true or false"),
        (
            as_lines([{"messages": [QUESTION, TWO_CALLS], "parallel_tool_calls": False}]),
            "'parallel_tool_calls' is false, and a message has several calls",
        ),
        (
            as_lines(
                [
                    {
                        "input": {"messages": [QUESTION], "parallel_tool_calls": False},
                        "preferred_output": [TWO_CALLS],
                        "non_preferred_output": [{"role": "assistant", "content": "?"}],
                    }
                ]
            ),
            "'parallel_tool_calls' is false, and a message has several calls",
        ),
        (
            as_lines([{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}]),
            "'image_url'; only texts are supported",
        ),
    ],
)
def test_a_file_with_a_bad_line_is_an_error_that_names_it(upload: Upload, rows: bytes, said: str) -> None:
    file = upload(rows)

    assert file.status == "error"
    assert said in (file.status_details or "")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"purpose": "batch"}, "purpose"),
        ({"expires_after": {"anchor": "created_at", "seconds": 3600}}, "expires_after"),
        ({"file": ("empty.jsonl", b"")}, "file"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    official: openai.OpenAI, settings: Settings, changes: dict[str, Any], param: str
) -> None:
    wanted: dict[str, Any] = {"file": ("a.jsonl", as_lines(chats())), "purpose": "fine-tune", **changes}

    with pytest.raises(openai.BadRequestError) as refused:
        official.files.create(**wanted)

    assert refused.value.param == param
    assert not list((settings.data_root / "uploads").glob("up_*"))


def test_nobody_reads_files_without_a_token(anonymous: TestClient) -> None:
    anonymous.headers.pop("Authorization", None)
    for path in ("/v1/files", "/v1/files/file-aaaaaaaaaaaa/content", "/v1/fine_tuning/jobs"):
        answer = anonymous.get(path)
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
