"""Newer weights in a running engine: what can be taken, what is reported, and when an engine has to end."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_contracts.attempt import ADAPTERS_FILE, EVENTS_FOLDER
from trellis_contracts.evaluation import AdapterList, AdapterTask, CheckpointSource
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec, ModelSource
from trellis_testing.model_folders import write_safetensors
from trellis_train import serve_gate
from trellis_train.engines import serve_weights
from trellis_train.engines.serve_weights import (
    WeightsRefused,
    WeightsReplacer,
    is_replaceable,
    require_same_shape,
)
from trellis_train.export import gathering as _gathering  # noqa: F401 - slow to import: not within a test
from trellis_train.hooks.event_spool import Spool
from trellis_train.serve_gate import WeightsGate

KEY = "secret"


def write_model(folder: Path, *, width: int = 4, **config: Any) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps({"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16", **config})
    )
    write_safetensors(folder / "model.safetensors", {"a.weight": ("BF16", [2, width])})
    return folder


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    (tmp_path / "attempt").mkdir()
    return tmp_path / "attempt"


def want(attempt: Path, *sources: Path, load_id: str = "load") -> None:
    tasks = [
        AdapterTask(
            endpoint_id=f"ep_{number}",
            load_id=f"{load_id}_{number}",
            served_name=f"job_a:{number}",
            checkpoint=CheckpointSource(job_id="job_a", engine=Engine.EXPORT, step=number, path=str(source)),
            replaces=True,
        )
        for number, source in enumerate(sources, 1)
    ]
    (attempt / ADAPTERS_FILE).write_text(AdapterList(adapters=tasks).model_dump_json())


def read_answers(attempt: Path) -> list[tuple[str, str | None]]:
    lines = [line for path in (attempt / EVENTS_FOLDER).iterdir() for line in path.read_text().splitlines()]
    return [(event["load_id"], event["reason"]) for event in map(json.loads, lines)]


class Stage:
    """A replacer, and an engine that answers each replacement with ``status``."""

    def __init__(self, attempt: Path, current: Path) -> None:
        self.asked: list[dict[str, str]] = []
        self.failures: list[str] = []
        self.status = 200
        stage = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert (self.path, self.headers["Authorization"]) == ("/replace_weights", f"Bearer {KEY}")
                stage.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                data = json.dumps({"error": {"message": "its words"}}).encode()
                self.send_response(stage.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        spec = JobSpec(
            job_id="job_s", attempt=1, name="Endpoint", recipe="serve", engine=Engine.SERVE, platform="cpu",
            gpus=0, seed=0, params={}, engine_overrides=[], attempt_dir=str(attempt),
            checkpoint_dir=str(attempt), model=ModelSource(model_id="mdl_a", path=str(current)),
            ingest_url="http://127.0.0.1:1",
        )  # fmt: skip
        self.replacer = WeightsReplacer(
            spec, f"http://127.0.0.1:{self.server.server_port}", KEY, Spool(attempt, "server"),
            folder=current, fail=self.failures.append,
        )  # fmt: skip


@contextmanager
def started(stage: Stage) -> Iterator[Stage]:
    try:
        yield stage
    finally:
        stage.server.shutdown()
        stage.server.server_close()


@pytest.fixture
def stage(tmp_path: Path, attempt: Path) -> Iterator[Stage]:
    with started(Stage(attempt, write_model(tmp_path / "one"))) as stage:
        yield stage


def test_weights_are_taken_once_and_their_files_kept_until_the_next(
    tmp_path: Path, attempt: Path, stage: Stage
) -> None:
    two = write_model(tmp_path / "two")
    stage.replacer.advance()
    want(attempt, two)
    stage.replacer.advance()
    stage.replacer.advance()
    (first,) = stage.asked
    was_kept = Path(first["folder"], "model.safetensors").is_file()
    want(attempt, two, load_id="again")
    stage.replacer.advance()

    assert first["name"] == "job_a:1"
    assert was_kept
    assert not Path(first["folder"]).exists()
    assert read_answers(attempt) == [("load_1", None), ("again_1", None)]
    assert stage.failures == []


def test_weights_that_are_no_longer_asked_for_never_reach_the_engine(
    tmp_path: Path, attempt: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Withdrawn while they are gathered.
    monkeypatch.setattr(serve_weights, "require_same_shape", lambda *_: want(attempt))
    want(attempt, write_model(tmp_path / "two"))
    stage.replacer.advance()

    assert (stage.asked, read_answers(attempt), stage.failures) == ([], [], [])


def test_weights_are_refused_for_which_the_disk_has_no_room(
    tmp_path: Path, attempt: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1))
    want(attempt, write_model(tmp_path / "two"))
    stage.replacer.advance()

    ((_, reason),) = read_answers(attempt)
    assert "the disk has 0.0 GB left" in str(reason)
    assert (stage.asked, stage.failures) == ([], [])


def test_the_weights_of_the_start_are_removed_once_others_have_taken_their_place(
    tmp_path: Path, attempt: Path
) -> None:
    gathered, two = write_model(attempt / "weights-of-the-start"), write_model(tmp_path / "two")
    with started(Stage(attempt, gathered)) as stage:
        stage.status = 409
        want(attempt, two)
        stage.replacer.advance()
        was_kept = (gathered / "model.safetensors").is_file()
        stage.status = 200
        want(attempt, two, load_id="again")
        stage.replacer.advance()

    assert was_kept
    assert [path.name for path in gathered.iterdir()] == ["config.json"]


@pytest.mark.parametrize(("status", "ends"), [(409, False), (500, True), (404, True)])
def test_an_engine_that_is_busy_goes_on_and_one_that_failed_ends(
    tmp_path: Path, attempt: Path, stage: Stage, status: int, ends: bool
) -> None:
    stage.status = status
    want(attempt, write_model(tmp_path / "two"))
    stage.replacer.advance()

    assert read_answers(attempt) == [("load_1", "its words")]
    assert (stage.failures != []) is ends


def test_weights_of_another_shape_never_reach_the_engine(tmp_path: Path, attempt: Path, stage: Stage) -> None:
    want(attempt, write_model(tmp_path / "wide", width=8), tmp_path / "nowhere")
    stage.replacer.advance()

    (wide, nowhere) = read_answers(attempt)
    assert "other names, shapes or types" in str(wide[1])
    assert "not found" in str(nowhere[1])
    assert (stage.asked, stage.failures) == ([], [])


def test_only_the_values_of_the_weights_may_differ(tmp_path: Path) -> None:
    one = write_model(tmp_path / "one", transformers_version="5.0")
    require_same_shape(write_model(tmp_path / "two", transformers_version="5.1"), one)

    with pytest.raises(WeightsRefused, match="configuration"):
        require_same_shape(write_model(tmp_path / "three", rope_theta=5), one)
    (tmp_path / "two" / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(WeightsRefused, match=r"chat_template\.jinja"):
        require_same_shape(tmp_path / "two", one)


def test_architectures_whose_reload_was_not_compared_are_left_alone(tmp_path: Path) -> None:
    assert is_replaceable(write_model(tmp_path / "a"))
    assert not is_replaceable(write_model(tmp_path / "b", architectures=["NemotronHForCausalLM"]))
    assert not is_replaceable(write_model(tmp_path / "c", quantization_config={"quant_method": "awq"}))


class Gated:
    """An engine behind the gate: it answers a request when it is let go on."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.may_go_on = asyncio.Event()
        self.fails = False
        self.path = SimpleNamespace(name="old")
        models = SimpleNamespace(base_model_paths=[self.path])
        self.state = SimpleNamespace(engine_client=self, openai_serving_models=models)
        self.gate = WeightsGate(self._answer)

    async def _answer(self, scope: Any, _receive: Any, _send: Any) -> None:
        if scope["path"] == "/health":
            self.events.append("health")
            return
        self.events.append(f"begins with {self.path.name}")
        await self.may_go_on.wait()
        self.events.append("ends")

    async def pause_generation(self, *, mode: str, clear_cache: bool) -> None:
        self.events.append(f"pause {mode} {clear_cache}")

    async def resume_generation(self) -> None:
        self.events.append("resume")

    async def collective_rpc(self, method: str, args: tuple[str, ...]) -> None:
        if self.fails:
            raise RuntimeError("no such weight")
        self.events.append(f"{method} {args[0]}")

    async def ask(self, path: str = "/v1/completions") -> int | None:
        body, status = json.dumps({"folder": "/new", "name": "new"}).encode(), None

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)

        await self.gate({"type": "http", "path": path, "app": self}, receive, send)
        return status


def gated(play: Callable[[Gated], Awaitable[None]]) -> Gated:
    async def run() -> Gated:
        engine = Gated()
        await play(engine)
        return engine

    return asyncio.run(run())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_no_request_is_answered_with_two_weights() -> None:
    async def play(engine: Gated) -> None:
        first = asyncio.create_task(engine.ask())
        await settle()
        replacing = asyncio.create_task(engine.ask("/replace_weights"))
        await settle()
        second = asyncio.create_task(engine.ask())
        await settle()
        await engine.ask("/health")
        assert await engine.ask("/replace_weights") == 409
        engine.may_go_on.set()
        await asyncio.gather(first, second)
        assert await replacing == 200

    assert gated(play).events == [
        "begins with old", "health", "ends", "pause abort True", "take_weights /new", "resume",
        "begins with new", "ends",
    ]  # fmt: skip


def test_an_engine_that_stays_busy_keeps_its_weights_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_gate, "DRAIN_S", 0.01)

    async def play(engine: Gated) -> None:
        first = asyncio.create_task(engine.ask())
        await settle()
        assert await engine.ask("/replace_weights") == 409
        engine.may_go_on.set()
        await engine.ask()
        await first

    assert gated(play).events == ["begins with old", "begins with old", "ends", "ends"]


def test_an_engine_that_failed_in_between_answers_nobody() -> None:
    async def play(engine: Gated) -> None:
        engine.fails = True
        assert await engine.ask("/replace_weights") == 500
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.ask(), 0.05)

    assert gated(play).events == ["pause abort True"]
