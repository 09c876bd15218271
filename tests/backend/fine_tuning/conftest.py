"""The official client in front of the API in this process, and files with the workers' work done."""

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from fastapi.testclient import TestClient
from openai.types import FileObject
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_testing.data_tasks import finish_data_tasks

Upload = Callable[..., FileObject]


def as_lines(rows: list[Any]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def chats(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "messages": [
                {"role": "user", "content": f"{number}+1?"},
                {"role": "assistant", "content": f"{number + 1}"},
            ]
        }
        for number in range(count)
    ]


def pairs(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "input": {"messages": [{"role": "user", "content": f"{number}+1?"}]},
            "preferred_output": [{"role": "assistant", "content": f"{number + 1}"}],
            "non_preferred_output": [{"role": "assistant", "content": "?"}],
        }
        for number in range(count)
    ]


def prompts(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "messages": [{"role": "user", "content": f"{number}+1?"}],
            "reference_answer": f"{number + 1}",
            "level": {"hard": number % 2 == 0},
        }
        for number in range(count)
    ]


@pytest.fixture
def official(client: TestClient, admin_token: str) -> openai.OpenAI:
    """The client of OpenAI's, unchanged; its requests end in this process."""
    return openai.OpenAI(
        base_url="http://testserver/v1", api_key=admin_token, http_client=client, max_retries=0
    )


@pytest.fixture
def upload(official: openai.OpenAI, settings: Settings, database: Database) -> Upload:
    """Uploads examples; their rows are read when it returns, unless told otherwise."""

    def send(rows: list[Any] | bytes, *, is_read: bool = True, name: str = "examples.jsonl") -> FileObject:
        content = rows if isinstance(rows, bytes) else as_lines(rows)
        file = official.files.create(file=(name, content), purpose="fine-tune")
        if is_read:
            finish_data_tasks(settings, database)
        return official.files.retrieve(file.id)

    return send
