"""The engine of an endpoint: what vLLM is started with, who may ask it, and how its end is told."""

import argparse
import asyncio
import json
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_contracts.attempt import ENGINE_KEY_FILE
from trellis_contracts.spec import ServeTask
from trellis_train.engines import serve
from trellis_train.engines.serve import (
    _describe_output,
    describe_exit,
    find_address,
    find_free_port,
    find_reason,
)
from trellis_train.serve import build_command, find_tool_parser, find_tool_problem
from trellis_train.serve_guard import RequireKey


def options(**changes: Any) -> argparse.Namespace:
    values: dict[str, Any] = {
        "folder": "/models/m", "name": "m", "host": "127.0.0.1", "port": 9, "tensor_parallel": 1,
        "max_model_len": None, "max_tokens": None, "tools": False, "platform": "cpu",
        "embeddings": False, "max_lora_rank": None, "max_loras": 1, "replaceable": False,
    }  # fmt: skip
    return argparse.Namespace(**{**values, **changes})


def test_a_name_like_an_option_is_taken_for_a_name() -> None:
    command = build_command(options(name="--trust-remote-code", max_model_len=-1, max_tokens=64))

    assert "--trust-remote-code" not in command
    assert "--served-model-name=--trust-remote-code" in command
    assert "--max-model-len=-1" in command
    assert '--override-generation-config={"max_new_tokens": 64}' in command


def test_an_engine_with_adapters_has_room_for_them_and_another_pays_nothing() -> None:
    with_adapters = build_command(options(max_lora_rank=32, max_loras=4))

    assert with_adapters[-3:] == ["--enable-lora", "--max-lora-rank=32", "--max-loras=4"]
    assert not any("lora" in option for option in build_command(options()))


def test_weights_can_be_replaced_behind_the_key_alone() -> None:
    command = build_command(options(replaceable=True))

    # vLLM adds them in this order, each around those before.
    assert [each for each in command if each.startswith("--middleware=")] == [
        "--middleware=trellis_train.serve_gate.WeightsGate",
        "--middleware=trellis_train.serve_guard.RequireKey",
    ]
    assert "--worker-extension-cls=trellis_train.serve_worker.WeightsTaker" in command
    assert not any("serve_worker" in each or "serve_gate" in each for each in build_command(options()))


def test_an_encoder_is_served_by_the_pooling_runner() -> None:
    assert "--runner=pooling" in build_command(options(embeddings=True))
    assert "--runner=pooling" not in build_command(options())


@pytest.mark.parametrize(
    ("is_encoder", "expected"),
    [
        (True, ["--embeddings"]),
        (False, ["--tools", "--max-model-len=-1", "--max-tokens=64"]),
    ],
)
def test_what_is_asked_of_the_output_suits_the_model(is_encoder: bool, expected: list[str]) -> None:
    task = ServeTask(endpoint_id="ep_a", served_name="m", max_tokens=64, is_encoder=is_encoder)

    assert _describe_output(task) == expected


@pytest.mark.parametrize(
    ("template", "parser"),
    [
        ("{{ '<tool_call>' }}", "hermes"),
        ("{{ '<tool_call>\\n<function=' + call.name + '>' }}", "qwen3_coder"),
        ("<tool_call>{{ call.name }}\n<arg_key>{{ key }}</arg_key>", "glm45"),
        ("<seed:tool_call><function={{ call.name }}>", None),
        ("[TOOL_CALLS]", "mistral"),
        ("{{ messages }}", None),
    ],
)
def test_the_parser_of_tool_calls_suits_the_template(
    tmp_path: Path, template: str, parser: str | None
) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert find_tool_parser(tmp_path) == parser
    (tmp_path / "chat_template.jinja").write_text("no calls")
    assert find_tool_parser(tmp_path) is None


CALLS = "{% for tool in tools %}{{ tool }}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (CALLS + "<tool_call>", None),
        (CALLS, "unknown_call_format"),
        ("You have no tools. {{ messages }} <tool_call>", "not_in_template"),
        ("{% generation %}" + CALLS + "<tool_call>{% endgeneration %}", None),
        ("{% generation %}no tools{% endgeneration %}", "not_in_template"),
        ("", "not_in_template"),
        (
            [{"name": "default", "template": "x"}, {"name": "tool_use", "template": CALLS}],
            "unknown_call_format",
        ),
    ],
)
def test_a_template_tells_whether_tools_reach_the_model(
    tmp_path: Path, template: Any, problem: str | None
) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))

    assert find_tool_problem(tmp_path) == problem


class FakeServer:
    """Starts, or not, as its task says."""

    ended: list[int | None]

    def __init__(self, _spec: Any, task: ServeTask, _folder: Path) -> None:
        self.max_lora_rank = task.max_lora_rank

    def wait_until_it_answers(self) -> None:
        if self.max_lora_rank is not None:
            raise serve.EngineNotStarted("GPT2 does not support LoRA yet.")

    def end(self) -> None:
        self.ended.append(self.max_lora_rank)


def test_a_model_without_adapters_is_started_without_room_for_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    FakeServer.ended = []
    monkeypatch.setattr(serve, "Server", FakeServer)
    task = ServeTask(endpoint_id="ep_a", served_name="m", max_tokens=64, max_lora_rank=16)
    spec: Any = None

    server, refusal = serve.start_server(spec, task, tmp_path)

    assert FakeServer.ended == [16]
    assert isinstance(server, FakeServer)
    assert server.max_lora_rank is None
    assert "does not support LoRA" in str(refusal)


def test_a_server_whose_weights_are_not_to_be_trusted_ends_though_it_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ENGINE_KEY_FILE).write_text("secret")
    started: list[list[str]] = []

    def start(command: list[str], **_: Any) -> SimpleNamespace:
        started.append(command)
        return SimpleNamespace(stdout=[], poll=lambda: None)

    monkeypatch.setattr(subprocess, "Popen", start)
    task = ServeTask(endpoint_id="ep_a", served_name="m", max_tokens=64, is_replaceable=True)
    spec: Any = SimpleNamespace(attempt_dir=str(tmp_path), platform="cpu")
    server = serve.Server(spec, task, tmp_path)

    server.give_up("no such weight")

    with pytest.raises(serve.EngineDied, match="no such weight"):
        server.watch()
    assert "--replaceable" in started[0]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/health", [], 200),
        ("/v1/chat/completions", [(b"authorization", b"Bearer secret")], 200),
        ("/v1/chat/completions", [], 401),
        ("/invocations", [(b"authorization", b"Bearer wrong")], 401),
        ("/health/../invocations", [], 401),
    ],
)
def test_nobody_is_answered_without_the_key(
    monkeypatch: pytest.MonkeyPatch, path: str, headers: list[tuple[bytes, bytes]], status: int
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    sent: list[Any] = []

    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    scope = {"type": "http", "path": path, "headers": headers}
    asyncio.run(RequireKey(answer)(scope, receive, send))

    assert sent[0]["status"] == status


def test_the_reason_of_a_failed_start_is_the_engines_own() -> None:
    lines = [
        "(EngineCore pid=7) ERROR 11-26 07:00:00 [core.py:1] ValueError: Architectures ['X'] are unknown\n",
        "RuntimeError: Engine core initialization failed. See root cause above.\n",
    ]

    assert find_reason(lines) == "ValueError: Architectures ['X'] are unknown"
    assert find_reason(["all is well"]) is None


def test_an_exit_is_told_in_words() -> None:
    assert [describe_exit(code) for code in (0, 1, -9)] == [
        "exited with code 0",
        "exited with code 1",
        "was killed by SIGKILL",
    ]


@pytest.mark.parametrize("head", ["", "127.0.0.1:6379", "localhost:6379"])
def test_on_one_machine_it_listens_on_loopback(monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    monkeypatch.setenv("RAY_ADDRESS", head)

    assert find_address() == "127.0.0.1"
    with socket.socket() as free:
        free.bind(("127.0.0.1", find_free_port("127.0.0.1")))


def test_in_a_cluster_it_listens_where_the_node_reaches_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.9.9.9:6379")

    assert find_address().startswith("127.")
    assert find_address() != "0.0.0.0"
