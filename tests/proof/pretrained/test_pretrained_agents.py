"""Agent recipes on a pretrained model with nothing chosen but recipe, model and data take their steps."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import DataFormat, Engine
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_testing.pretrained import SEED, Pretrained
from trellis_train.agents import environments
from trellis_train.preference.conversations import encode_conversation

pytestmark = [pytest.mark.training, pytest.mark.timeout(1800)]
STEPS = 2


@dataclass(frozen=True)
class Work:
    """What a recipe is given, and what shows that it trained and measured."""

    kind: str
    #: Of the environment's datasets, as the manifest names it.
    dataset: str
    format: DataFormat
    trained: str
    held_out: str


TOOLBOX = "val-core/toolbox/tool_selection/acc/mean@1"
WORK = {
    "agent_sft": Work("toolbox", "sft/train", DataFormat.MESSAGES, "loss", "eval_loss"),
    "agent_dpo": Work("toolbox", "preference/train", DataFormat.PREFERENCE, "loss", "eval_rewards/margins"),
    "agent_grpo": Work("toolbox", "train", DataFormat.VERL_RL, "critic/score/mean", TOOLBOX),
    "agent_ppo": Work("toolbox", "train", DataFormat.VERL_RL, "critic/vf_loss", TOOLBOX),
    "agent_retrieval": Work("toolbox", "retrieval/train", DataFormat.VERL_RL, "train/loss", "eval/recall@10"),
    "linksearch": Work("linksearch", "train", DataFormat.VERL_RL, "critic/score/mean", "eval/accuracy"),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Environments by kind as they are made without parameters, each once."""
    made: dict[str, Path] = {}

    def find(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            environments.make(kind, made[kind], {})
        return made[kind]

    return find


@dataclass(frozen=True)
class Jobs:
    """Composes jobs of the recipes; nothing runs yet."""

    pretrained: Pretrained
    folders: Callable[[str], Path]

    def compose(self, folder: Path, recipe: str) -> EngineRun:
        work = WORK[recipe]
        environment = self.folders(work.kind)
        return compose_job(
            folder,
            recipe=recipe,
            model=self.pretrained.model,
            rows=Rows.from_json_lines(self.file(recipe), work.format),
            params={"total_steps": STEPS},
            environment=environment if recipe == "linksearch" else None,
            seed=SEED,
            preset="cpu-small",
        )

    def file(self, recipe: str) -> Path:
        work = WORK[recipe]
        environment = self.folders(work.kind)
        return environment / environments.read_manifest(environment).datasets[work.dataset]

    def rows(self, recipe: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file(recipe).read_bytes().splitlines()]


@pytest.fixture(scope="module")
def jobs(pretrained: Pretrained, folders: Callable[[str], Path]) -> Jobs:
    return Jobs(pretrained, folders)


@pytest.mark.parametrize("recipe", list(WORK))
def test_two_steps_are_taken_with_nothing_but_model_and_data(
    recipe: str, jobs: Jobs, join_ray: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    work, job = WORK[recipe], jobs.compose(tmp_path / recipe, recipe)

    cluster = join_ray() if job.spec.engine is Engine.VERL_PPO else {}
    run = run_engine(job, environment=cluster, timeout_s=1700)

    trained, held_out = run.curve(work.trained), run.curve(work.held_out)
    print(recipe, "trained", trained, "held out", held_out, "seconds", round(run.seconds))
    assert list(trained) == list(range(1, STEPS + 1))
    assert list(held_out) == [0, STEPS]
    assert run.events("checkpoint")


@pytest.mark.parametrize("recipe", ["agent_sft", "agent_dpo", "agent_grpo", "agent_ppo"])
def test_hardly_a_row_is_too_long_for_the_defaults(recipe: str, jobs: Jobs, tmp_path: Path) -> None:
    """A row whose prompt fills all there is room for is left out; a dialog that is cut loses its end."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(jobs.pretrained.model)
    params = jobs.compose(tmp_path / recipe, recipe).spec.params
    most = params.get("max_prompt_length") or params["max_length"]

    rows = jobs.rows(recipe)[:300]
    if recipe == "agent_sft":
        lengths = [len(encode_conversation(tokenizer, row["messages"])[0]) for row in rows]
    else:
        lengths = [count_prompt_tokens(tokenizer, row["prompt"]) for row in rows]
    too_long = sum(length > most for length in lengths)
    print(recipe, "tokens", max(lengths), "of", most, "too long", too_long, "of", len(rows))
    assert too_long <= len(rows) // 10


def count_prompt_tokens(tokenizer: Any, messages: Sequence[dict[str, str]]) -> int:
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])
