"""Adapters of a running engine: brought into PEFT's format, loaded, unloaded, or reported as refused."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.attempt import ADAPTERS_FILE, ADAPTERS_FOLDER, EVENTS_FOLDER
from trellis_contracts.evaluation import AdapterList, AdapterTask, CheckpointSource
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec, ModelSource
from trellis_testing.model_folders import write_safetensors
from trellis_train.engines.serve_adapters import AdapterLoader
from trellis_train.export import adapters as _adapters  # noqa: F401 - slow to import: not within a test
from trellis_train.hooks.event_spool import Spool

KEY = "secret"


class LoraServer:
    """vLLM's part of loading adapters."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.refusal: str | None = None
        #: Status of every request to unload; 200: it is done.
        self.unload_status = 200
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["Authorization"] == f"Bearer {KEY}"
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append((self.path, body))
                status = 200 if server.refusal is None else 400
                if "unload" in self.path:
                    status = server.unload_status
                data = json.dumps("Success" if status == 200 else {"error": {"message": server.refusal}})
                data = data.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[LoraServer]:
    server = LoraServer()
    yield server
    server.close()


@pytest.fixture
def loader(tmp_path: Path, server: LoraServer) -> AdapterLoader:
    (tmp_path / "base").mkdir()
    spec = JobSpec(
        job_id="job_a", attempt=1, name="Endpoint", recipe="serve", engine=Engine.SERVE, platform="cpu",
        gpus=0, seed=0, params={}, engine_overrides=[], attempt_dir=str(tmp_path),
        checkpoint_dir=str(tmp_path),
        model=ModelSource(model_id="mdl_a", path=str(tmp_path / "base")), ingest_url="http://127.0.0.1:1",
    )  # fmt: skip
    return AdapterLoader(spec, server.url, KEY, Spool(tmp_path, "server"))


def add_checkpoint(folder: Path, step: int) -> AdapterTask:
    adapter = folder / f"global_step_{step}" / "lora_adapter"
    adapter.mkdir(parents=True)
    (adapter / "adapter_config.json").write_text(json.dumps({"r": 8, "base_model_name_or_path": "elsewhere"}))
    write_safetensors(adapter / "adapter_model.safetensors", {"a.lora_A.weight": ("F32", [8, 4])})
    source = CheckpointSource(job_id="job_b", engine=Engine.VERL_SFT, step=step, path=str(adapter.parent))
    return AdapterTask(
        endpoint_id=f"ep_{step}", load_id=f"load_{step}", served_name=f"job_b:{step}", checkpoint=source
    )


def want(folder: Path, *tasks: AdapterTask) -> None:
    path = folder / ADAPTERS_FILE
    path.write_text(AdapterList(adapters=list(tasks)).model_dump_json())


def read_events(folder: Path) -> list[tuple[str, str | None]]:
    lines = [line for path in (folder / EVENTS_FOLDER).iterdir() for line in path.read_text().splitlines()]
    events = [json.loads(line) for line in lines]
    return [(event["endpoint_id"], event["reason"]) for event in events if event["kind"] == "adapter"]


def test_adapters_are_loaded_and_unloaded_as_the_platform_asks(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader
) -> None:
    one, two = add_checkpoint(tmp_path, 1), add_checkpoint(tmp_path, 2)

    loader.advance()
    want(tmp_path, one)
    loader.advance()
    loader.advance()
    want(tmp_path, one, two)
    loader.advance()
    want(tmp_path, two)
    loader.advance()

    folder = tmp_path / ADAPTERS_FOLDER
    assert server.asked == [
        ("/v1/load_lora_adapter", {"lora_name": "job_b:1", "lora_path": str(folder / "load_1")}),
        ("/v1/load_lora_adapter", {"lora_name": "job_b:2", "lora_path": str(folder / "load_2")}),
        ("/v1/unload_lora_adapter", {"lora_name": "job_b:1"}),
    ]
    assert (folder / "load_1").is_dir(), "a request that waits in the engine may still need it"
    config = json.loads((folder / "load_2" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(tmp_path / "base")
    assert read_events(tmp_path) == [("ep_1", None), ("ep_2", None)]


def test_what_the_engine_refuses_is_reported_once_with_its_reason(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader
) -> None:
    server.refusal = "unsupported target modules"
    want(tmp_path, add_checkpoint(tmp_path, 1))

    loader.advance()
    loader.advance()

    assert read_events(tmp_path) == [("ep_1", "unsupported target modules")]
    assert len(server.asked) == 1


def test_a_checkpoint_that_is_gone_does_not_keep_the_next_from_loading(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader
) -> None:
    gone, there = add_checkpoint(tmp_path, 1), add_checkpoint(tmp_path, 2)
    (tmp_path / "global_step_1").rename(tmp_path / "elsewhere")
    want(tmp_path, gone, there)

    loader.advance()

    (first, reason), second = read_events(tmp_path)
    assert (first, second) == ("ep_1", ("ep_2", None))
    assert reason is not None
    assert "not found" in reason


def test_a_loaded_adapter_stays_where_its_files_are_gone_and_another_is_refused(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader
) -> None:
    one, two = add_checkpoint(tmp_path, 1), add_checkpoint(tmp_path, 2)
    want(tmp_path, one)
    loader.advance()

    want(tmp_path, *(task.model_copy(update={"checkpoint": None}) for task in (one, two)))
    loader.advance()

    assert read_events(tmp_path) == [("ep_1", None), ("ep_2", "Its files are gone.")]
    assert [path for path, _ in server.asked] == ["/v1/load_lora_adapter"]


def test_one_that_cannot_be_unloaded_does_not_keep_the_next_from_loading(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader
) -> None:
    one, two = add_checkpoint(tmp_path, 1), add_checkpoint(tmp_path, 2)
    want(tmp_path, one)
    loader.advance()
    server.unload_status = 500

    want(tmp_path, two)
    loader.advance()

    assert read_events(tmp_path) == [("ep_1", None), ("ep_2", None)]


def test_a_new_request_for_a_name_replaces_what_is_loaded_under_it(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader
) -> None:
    one = add_checkpoint(tmp_path, 1)
    want(tmp_path, one)
    loader.advance()
    server.unload_status = 500
    want(tmp_path)
    loader.advance()
    server.unload_status = 404

    want(tmp_path, one.model_copy(update={"load_id": "later"}))
    loader.advance()

    paths = [path for path, _ in server.asked]
    assert paths == [
        "/v1/load_lora_adapter",
        "/v1/unload_lora_adapter",
        "/v1/unload_lora_adapter",
        "/v1/load_lora_adapter",
    ]
    assert server.asked[-1][1]["lora_path"] == str(tmp_path / ADAPTERS_FOLDER / "later")


def test_an_engine_without_room_for_adapters_refuses_each_with_the_reason(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader
) -> None:
    refusing = AdapterLoader(
        loader._spec, server.url, KEY, Spool(tmp_path, "server"), refusal="GPT2 does not support LoRA yet."
    )
    want(tmp_path, add_checkpoint(tmp_path, 1))

    refusing.advance()

    assert read_events(tmp_path) == [("ep_1", "GPT2 does not support LoRA yet.")]
    assert server.asked == []


@pytest.mark.parametrize("where", ["lora_adapter", "huggingface"])
@pytest.mark.parametrize("name", ["template", "tokens"])
def test_an_adapter_with_prompts_of_its_own_is_refused(
    tmp_path: Path, server: LoraServer, loader: AdapterLoader, name: str, where: str
) -> None:
    task = add_checkpoint(tmp_path, 1)
    own, base = Path(task.checkpoint.path) / where, tmp_path / "base"
    own.mkdir(exist_ok=True)
    (own / "config.json").write_text("{}")
    vocabulary = {"model": {"vocab": {"a": 0}}, "added_tokens": []}
    for folder in (own, base):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
        (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    if name == "template":
        (own / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ 1 }}"}))
    else:
        more = [{"id": 1, "content": "<tool>"}]
        (own / "tokenizer.json").write_text(json.dumps({**vocabulary, "added_tokens": more}))
    want(tmp_path, task)

    loader.advance()

    ((_, reason),) = read_events(tmp_path)
    assert name in str(reason)
    assert server.asked == []
