"""Models of the platform that a workflow asks: found where the API is now, which may have moved."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import ADDRESS_FILE, AUXILIARY_KEYS_FILE
from trellis_contracts.endpoints import ChatEndpoint
from trellis_contracts.workflows import ModelError
from trellis_train.agents.tune import services as services_module
from trellis_train.agents.tune.services import Services

#: A port that nobody listens on.
GONE = 9
HELLO = [{"role": "user", "content": "hello"}]


def tell(folder: Path, port: int) -> None:
    """As the workers do once the API is there."""
    (folder / ADDRESS_FILE).write_text(f"http://127.0.0.1:{port}\n")


def make_services(folder: Path, port: int, **changes: Any) -> Services:
    """Of an attempt that was started while the API was at ``port``."""
    endpoint = ChatEndpoint(base_url=f"http://127.0.0.1:{port}/v1", model="critic-1", timeout_s=20)
    (folder / AUXILIARY_KEYS_FILE).write_text('{"critic": "the key"}')
    task = {
        "kind": "tune",
        "auxiliary_models": {"critic": endpoint},
        "platform_models": ["critic"],
        **changes,
    }
    return Services.of_task(AgentTask.model_validate(task), folder)


def ask(services: Services) -> str:
    call = {"of": "auxiliary", "name": "critic", "messages": HELLO, "tools": [], "options": {}}
    return str(asyncio.run(services.answer(call))["text"])


def test_a_model_is_asked_where_the_api_has_moved(tmp_path: Path, chat_server: Any) -> None:
    services = make_services(tmp_path, GONE)
    tell(tmp_path, chat_server.port)

    assert ask(services) == "9"

    assert chat_server.asked[0][1]["Authorization"] == "Bearer the key"


def test_a_call_waits_while_the_api_moves(tmp_path: Path, chat_server: Any) -> None:
    services = make_services(tmp_path, GONE)
    timer = threading.Timer(0.5, tell, (tmp_path, chat_server.port))
    timer.start()

    assert ask(services) == "9"
    timer.join()


def test_what_a_stranger_at_the_old_port_answers_is_no_answer(tmp_path: Path, make_chat_server: Any) -> None:
    stranger, api = make_chat_server(), make_chat_server()
    services = make_services(tmp_path, stranger.port)
    stranger.status, stranger.on_request = 401, lambda: tell(tmp_path, api.port)

    assert ask(services) == "9"
    assert (len(stranger.asked), len(api.asked)) == (1, 1)


def test_an_api_that_stays_away_is_not_waited_for_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services_module, "_AWAY_S", 0.1)
    monkeypatch.setattr(services_module, "_AWAY_RETRY_S", 0.02)
    services = make_services(tmp_path, GONE)

    with pytest.raises(ModelError, match="critic is not responding: ConnectError"):
        ask(services)


def test_a_model_elsewhere_stays_where_it_is(tmp_path: Path, make_chat_server: Any) -> None:
    elsewhere, api = make_chat_server(), make_chat_server()
    services = make_services(tmp_path, elsewhere.port, platform_models=[])
    tell(tmp_path, api.port)

    assert ask(services) == "9"
    assert (len(elsewhere.asked), len(api.asked)) == (1, 0)


@pytest.mark.parametrize("content", ["", "file:///etc/passwd", "\xff"])
def test_an_address_that_is_none_is_not_followed(tmp_path: Path, chat_server: Any, content: str) -> None:
    services = make_services(tmp_path, chat_server.port)
    (tmp_path / ADDRESS_FILE).write_bytes(content.encode("latin-1"))

    assert ask(services) == "9"
