"""The examples of docs/sdk.md run as they stand there; only the trainings are made by a stand-in."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trellis
from fastapi.testclient import TestClient
from trellis import searching, tuning
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_train.agents.tune.program import WorkflowSource
from trellis_train.agents.tune.settings import load_config

TEXT = (REPOSITORY_ROOT / "docs" / "sdk.md").read_text()


def read_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def learn(config: dict[str, Any], folder: Path) -> Iterator[dict[str, float]]:
    """In the place of a training: the greater the learning rate, the better."""
    yield {"critic/score/mean": config["algorithm"]["optimizer"]["lr"]}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In a folder with the configuration of the page; the trainings that were asked for."""
    monkeypatch.chdir(tmp_path)
    (configuration,) = read_blocks("yaml")
    Path("tune.yaml").write_text(configuration)
    Path("model").mkdir()  # the checks before a training look only for its configuration
    Path("model/config.json").write_text("{}")
    Path("tasks.jsonl").write_text('{"question": "1+1", "answer": "2"}\n')
    asked: list[str] = []

    def run(config: str, workflow: str, *, output: Any = None, resume: bool) -> trellis.TuneResult:
        assert WorkflowSource.read(workflow).is_pickle
        asked.append(config)
        return trellis.TuneResult("succeeded", "runs", 100, {"critic/score/mean": 0.9})

    prepare = searching._prepare_training

    def check_only(*arguments: Any) -> searching.Train:
        assert isinstance(prepare(*arguments), searching.TrainInProcess)
        return learn

    monkeypatch.setattr(tuning, "run", run)
    monkeypatch.setattr(searching, "_prepare_training", check_only)
    return asked


@pytest.mark.slow
def test_training_and_search_run_as_the_page_says(written: list[str]) -> None:
    train, search, *_ = read_blocks("python")
    # Functions of a file, as the reader's are.
    names: dict[str, Any] = {"__name__": "__main__"}

    exec(compile(train, "sdk.md", "exec"), names)
    exec(compile(search, "sdk.md", "exec"), names)

    assert written == ["tune.yaml"]
    config, _ = load_config(Path("search/best.yaml"))
    assert config.algorithm.optimizer.lr == 1e-4


def test_the_stages_of_tool_use_are_the_commands_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[list[str]] = []

    def run(arguments: list[str]) -> Any:
        seen.append(arguments[:2])
        if arguments[0] == "evaluate":
            return {"overall": {"mean": 0.5, "std": 0.1, "count": 3}}
        if arguments[0] == "pairs":
            target = Path(arguments[arguments.index("--output") + 1])
            target.write_text('{"chosen": "a", "rejected": "b"}\n')
        return {"outcome": "succeeded", "folder": "runs"}

    monkeypatch.setattr("trellis.agent_trainers._run", run)
    monkeypatch.chdir(tmp_path)
    settings, stages = read_blocks("python")[2:4]
    names: dict[str, Any] = {"trellis": trellis}

    exec(compile(settings, "sdk.md", "exec"), names)
    exec(compile(stages, "sdk.md", "exec"), names)

    assert seen == [["train", "sft"], ["train", "grpo"], ["pairs", "--model"], ["evaluate", "--model"]]
    assert names["pairs"] == [{"chosen": "a", "rejected": "b"}]
    assert "{'mean': 0.5" in capsys.readouterr().out


def test_the_client_does_what_the_page_says(
    client: TestClient, model: Model, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forward(request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and request.url.path == "/api/v1/models":  # the fixture has no source
            return httpx.Response(200, json={"items": [{"id": model.id}], "next_cursor": None})
        answer = client.request(
            request.method,
            request.url.raw_path.decode(),
            content=request.read(),
            headers={**request.headers, "host": "testserver"},
        )
        return httpx.Response(answer.status_code, content=answer.content)

    made: Callable[..., trellis.Client] = trellis.Client
    monkeypatch.setattr(trellis, "Client", lambda: made(transport=httpx.MockTransport(forward)))
    monkeypatch.setenv("TRELLIS_URL", "http://testserver")
    monkeypatch.setenv("TRELLIS_TOKEN", client.headers["Authorization"].removeprefix("Bearer "))
    monkeypatch.chdir(tmp_path)
    Path("workflow.py").write_text("async def workflow(task, model):\n    return 1.0\n")
    (*_, talk) = read_blocks("python")

    exec(compile(talk, "sdk.md", "exec"), {"trellis": trellis})

    (job,) = client.get("/api/v1/jobs").json()["items"]
    assert (job["recipe"], job["state"] in ("stopped", "cancelled")) == ("tune", True)
