"""What somebody brings trains as the documentation says: a graph of LangGraph in an environment of its own,
with a tool and a database of its own, on a pretrained model."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from trellis_testing.pretrained import Pretrained

pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(1500),
    pytest.mark.proves("tune"),
]

EXAMPLE = Path(__file__).parents[3] / "sdk" / "examples" / "langgraph_sql"
STOCK = {"apples": 7, "pears": 3, "plums": 12, "figs": 5}
STEPS = 3


@pytest.fixture(scope="module")
def shop(pretrained: Pretrained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that somebody has: package, rows and configuration."""
    folder = tmp_path_factory.mktemp("shop")
    shutil.copytree(EXAMPLE, folder / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    with sqlite3.connect(folder / "agent" / "shop.db") as database:
        database.execute("CREATE TABLE stock (item TEXT PRIMARY KEY, count INTEGER)")
        database.executemany("INSERT INTO stock VALUES (?, ?)", STOCK.items())
    database.close()
    rows = [{"question": f"How many {item} are in stock?", "answer": str(n)} for item, n in STOCK.items()]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "name": "shop",
        "checkpoint_root_dir": str(folder / "runs"),
        "model": {"model_path": str(pretrained.model), "max_prompt_tokens": 384, "max_response_tokens": 192},
        "algorithm": {"repeat_times": 2, "optimizer": {"lr": 1.0e-5}},
        "buffer": {
            "total_epochs": 10,
            "total_steps": STEPS,
            "batch_size": 2,
            "explorer_input": {
                "taskset": {"path": str(folder / "tasks.jsonl"), "rollout_args": {"max_tokens": 64}}
            },
        },
        "explorer": {
            "runner_per_model": 4,
            "max_timeout": 300,
            "rollout_model": {"tool_template": "hermes"},
        },
        "trainer": {"save_interval": STEPS},
    }
    (folder / "tune.yaml").write_text(yaml.safe_dump(config))
    return folder


def tune(folder: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "trellis_cli", "tune", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=1200, check=False)


def test_a_graph_with_its_own_packages_tool_and_database_is_trained(shop: Path) -> None:
    checked = tune(shop, "validate", "agent", "--config", "tune.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr

    done = tune(shop, "run", "tune.yaml", "agent", "--json")

    assert done.returncode == 0, done.stderr[-4000:]
    ended: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (ended["outcome"], ended["step"], ended["failed_sessions"]) == ("succeeded", STEPS, {})
    assert Path(ended["hf_path"], "model.safetensors").exists()
    assert ended["metrics"]["agent/turns/mean"] >= 1
    assert ended["sessions"] == STEPS * 4


def test_its_failing_twin_says_file_and_line(shop: Path) -> None:
    twin = shop / "twin"
    shutil.copytree(shop / "agent", twin)
    code = (twin / "workflow.py").read_text().replace('task["question"]', 'task["qestion"]')
    (twin / "workflow.py").write_text(code)
    line = next(n for n, text in enumerate(code.splitlines(), start=1) if "qestion" in text)

    checked = tune(shop, "validate", "twin", "--config", "tune.yaml")
    ended = tune(shop, "run", "tune.yaml", "twin", "--json", "--output", shop / "failed")

    said = f"KeyError: 'qestion' (workflow.py, line {line})"
    assert checked.returncode != 0
    assert said in checked.stdout
    assert ended.returncode != 0
    assert said in ended.stderr
