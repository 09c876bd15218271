"""`trellis tune` for real: the example agent acts and is trained, and a search trains its trials."""

import csv
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from trellis.searching import read_base, with_settings
from trellis_testing.agent_starter import teach
from trellis_testing.loadable_folders import load_folders
from trellis_testing.starter import Starter
from trellis_train.agents.environments import make
from trellis_train.agents.starter import common_phrases, conversation_texts, make_tokenizer, write_model
from trellis_train.agents.tune.settings import load_config

pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(1200),
    pytest.mark.proves("tune"),
]

EXAMPLE = Path(__file__).parents[2] / "sdk" / "examples" / "react_maths"
#: The last learning rate is none that the recipe takes.
STEPS, RATES = 2, (1e-4, 2e-4, 5.0)
#: Of the example, what a CPU's small model needs otherwise.
SMALL = {
    "algorithm.repeat_times": 4,
    "buffer.batch_size": 4,
    "buffer.total_steps": STEPS,
    "explorer.eval_interval": STEPS,
    "trainer.save_interval": STEPS,
}


SEVENS = """
from trellis import TunableChatModel


async def workflow(task: dict, model: TunableChatModel) -> float:
    reply = await model(task["messages"])
    return 1.0 if reply.text.strip().endswith("7") else 0.0
"""


def tune(folder: Path, *arguments: object) -> str:
    command = [sys.executable, "-m", "trellis_cli", "tune", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def write_config(path: Path, settings: dict[str, Any]) -> Path:
    """The example's configuration with other settings at dotted keys."""
    config = with_settings(read_base(EXAMPLE / "tune.yaml"), {**SMALL, **settings})
    OmegaConf.save(OmegaConf.create(config), path)
    return path


def tasks(path: Path) -> dict[str, Any]:
    columns = {"prompt_key": "question", "response_key": "answer"}
    return {"path": str(path), "format": columns, "rollout_args": {"max_tokens": 48}}


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maths") / "environment"
    make("maths", folder, {"train": 64, "eval": 4})
    return folder


@pytest.fixture(scope="module")
def acting(problems: Path) -> Path:
    """A model that has seen how the example's agent calculates and finishes."""
    rows = [act_out(json.loads(line)) for line in (problems / "train.jsonl").read_text().splitlines()]
    texts = conversation_texts(rows)
    tokenizer = make_tokenizer(texts, phrases=common_phrases(rows), vocabulary=600)
    folder = problems.parent
    write_model(folder / "untaught", tokenizer, seed=0)
    teach(folder / "untaught", rows, folder / "model", steps=60)
    return folder / "model"


def act_out(problem: dict[str, str]) -> dict[str, Any]:
    """The conversation in which the agent solves a problem: ``3 + 4 = 7, 7 * 4 = 28`` and ``#### 28``."""
    spec = importlib.util.spec_from_file_location("react_workflow", EXAMPLE / "workflow.py")
    assert spec is not None
    assert spec.loader is not None
    agent = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(agent)
    working, _, answer = problem["answer"].partition("\n#### ")
    messages = [
        {"role": "system", "content": agent.SYSTEM},
        {"role": "user", "content": problem["question"]},
    ]
    for step in working.split(", "):
        expression, _, value = step.partition(" = ")
        messages += [call("calculate", expression=expression), {"role": "tool", "content": value}]
    return {"messages": [*messages, call("finish", answer=answer)], "tools": agent.TOOLS}


def call(name: str, **arguments: str) -> dict[str, Any]:
    calls = [{"type": "function", "function": {"name": name, "arguments": arguments}}]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def test_the_example_acts_and_is_trained(problems: Path, acting: Path, tmp_path: Path) -> None:
    # C9
    config = write_config(
        tmp_path / "tune.yaml",
        {
            "checkpoint_root_dir": str(tmp_path),
            "model.model_path": str(acting),
            "buffer.explorer_input.taskset": tasks(problems / "train.jsonl"),
            "buffer.explorer_input.eval_tasksets": [tasks(problems / "eval.jsonl")],
        },
    )

    ended = json.loads(tune(tmp_path, "run", config, EXAMPLE / "workflow.py", "--json").splitlines()[-1])

    assert (ended["outcome"], ended["step"]) == ("succeeded", STEPS)
    assert load_folders(Path(ended["folder"]), ended) == {"training state", "policy of a checkpoint"}
    metrics = ended["metrics"]
    assert metrics["agent/workflow/calls/mean"] >= 1
    assert metrics["agent/turns/mean"] > 1
    assert metrics["reward/errors"] == 0
    assert {"eval/avg_reward", "baseline/avg_reward", "agent/workflow/right/mean"} <= set(metrics)


def test_a_search_trains_its_trials_and_one_that_fails_harms_no_other(
    starter: Starter, tmp_path: Path
) -> None:
    # C10, with rows at a relative path, as the example has them.
    workflow, file = tmp_path / "workflow.py", tmp_path / "tasks.jsonl"
    workflow.write_text(SEVENS)
    rows = [{"question": f"{number}+4=", "answer": str(number + 4)} for number in range(8)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = write_config(
        tmp_path / "tune.yaml",
        {
            "model": {"model_path": str(starter.taught), "max_prompt_tokens": 64, "max_response_tokens": 32},
            "buffer.explorer_input": {"taskset": tasks(Path(file.name))},
        },
    )
    space = json.dumps({"algorithm.optimizer.lr": RATES})

    tune(tmp_path, "search", config, workflow, "--space", space, "--output", "search")

    trials = list(csv.DictReader((tmp_path / "search" / "trials.csv").open()))
    assert [float(each["algorithm.optimizer.lr"]) for each in trials] == list(RATES)
    assert [(bool(each["error"]), bool(each["critic/score/mean"])) for each in trials] == [
        (False, True),
        (False, True),
        (True, False),
    ]
    assert "learning_rate" in trials[-1]["error"]
    assert load_folders(tmp_path, trials) == {"policy of a checkpoint"}
    best, _ = load_config(tmp_path / "search" / "best.yaml")
    assert best.algorithm.optimizer.lr in RATES[:-1]
