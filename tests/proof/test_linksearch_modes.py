"""Link Search in real runs of its other modes, with an adapter, and with many episodes at a time."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import DataFormat, Engine
from trellis_testing.engine_runs import EngineRun, Rows
from trellis_testing.exports import run_export

from .linksearch import QUERIES, ROLLOUTS, Searcher, of_split, read_logs

pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(900),
    pytest.mark.proves("linksearch"),
]

MANY, MOST_TIMES_AS_LONG = 32, 3.0
#: Each with a validation behind it, the quickest of which counts: a neighbour slows some of them down.
TIMED_STEPS = 6
Join = Callable[[], dict[str, str]]


def episodes_of(run: EngineRun) -> list[dict[str, Any]]:
    """The training episodes of its one step."""
    found = of_split(read_logs(run)[1], "train")
    assert len(found) == QUERIES * ROLLOUTS
    assert run.metrics(1)["actor/grad_norm"] > 0
    return found


def test_rollout_learns_every_token_after_the_prompt_from_the_score_alone(
    searcher: Searcher, join_ray: Join, tmp_path: Path
) -> None:
    episodes = episodes_of(searcher.train(tmp_path / "job", join_ray(), total_steps=1, mode="rollout"))

    assert max(log["rubric"]["turns"] for log in episodes) >= 2
    assert any(log["mask"]["ones"] > log["mask"]["sampled"] for log in episodes)
    for log in episodes:
        assert (log["mask"]["ones"], log["mask"]["zeros"]) == (log["tokens"]["response"], 0)
        assert log["reward"] == log["rubric"]["score"]
        assert log["reward_parts"] == {}


def test_simple_has_one_turn_and_the_reward_of_its_first_try(
    searcher: Searcher, join_ray: Join, tmp_path: Path
) -> None:
    episodes = episodes_of(searcher.train(tmp_path / "job", join_ray(), total_steps=1, mode="simple"))

    assert {log["rubric"]["turns"] for log in episodes} == {1}
    for log in episodes:
        assert log["mask"]["ones"] == log["mask"]["sampled"]
        assert log["reward"] == pytest.approx(sum(log["reward_parts"].values()))
        assert set(log["reward_parts"]) == {"call", "tool", "sql", "recall_part"}
    assert any(log["reward_parts"]["sql"] > 0 for log in episodes)


def test_an_adapter_learns_and_becomes_a_model(searcher: Searcher, join_ray: Join, tmp_path: Path) -> None:
    run = searcher.train(tmp_path / "job", join_ray(), total_steps=2, lora_rank=4, learning_rate=1e-3)

    exported = run_export(
        tmp_path / "export",
        Path(run.checkpoint()["path"]),
        base=searcher.model,
        step=2,
        engine=Engine.VERL_PPO,
    )

    checkpoint = Path(run.spec.checkpoint_dir) / "checkpoint-2"
    assert (checkpoint / "adapter_model.safetensors").stat().st_size > 1000
    assert exported.exit_code == 0, exported.log
    assert changed_weights(searcher.model, exported.output)


def changed_weights(before: Path, after: Path) -> list[str]:
    import torch
    from transformers import AutoModelForCausalLM

    ours, theirs = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
        for folder in (before, after)
    )
    assert ours.keys() == theirs.keys()
    return [name for name in ours if not torch.equal(ours[name], theirs[name])]


def test_many_episodes_take_little_longer_than_one(
    searcher: Searcher, join_ray: Join, tmp_path: Path
) -> None:
    """The same query, answered without chance: episodes of one length, once alone and once side by side."""
    alone, together = (
        time_episodes(searcher, join_ray, tmp_path / f"job-{count}", count) for count in (1, MANY)
    )
    print(
        f"one episode {alone:.2f} s, {MANY} episodes {together:.2f} s: {together / alone:.1f} times as long"
    )

    assert together <= MOST_TIMES_AS_LONG * alone


def time_episodes(searcher: Searcher, join_ray: Join, folder: Path, count: int) -> float:
    """Seconds from the begin of the first of ``count`` copies of a query to the end of the last."""
    run = searcher.train(
        folder,
        join_ray(),
        validation=copies(searcher, folder, count),
        total_steps=TIMED_STEPS,
        batch_size=1,
        mini_batch_size=1,
        group_size=2,
        micro_batch_size=2,
        validate_every=1,
        validation_temperature=0.0,
        learning_rate=0.0,
        patience=0,
        target_accuracy=None,
    )
    logs = read_logs(run)
    validations = [of_split(logs[step], "eval") for step in range(1, TIMED_STEPS + 1)]
    assert {len(episodes) for episodes in validations} == {count}
    assert len({log["tokens"]["response"] for episodes in validations for log in episodes}) == 1
    return min(wall_time(episodes) for episodes in validations)


def wall_time(episodes: list[dict[str, Any]]) -> float:
    spans = [(datetime.fromisoformat(log["began_at"]).timestamp(), log["duration_s"]) for log in episodes]
    return max(begin + duration for begin, duration in spans) - min(begin for begin, _ in spans)


def copies(searcher: Searcher, folder: Path, count: int) -> Rows:
    folder.mkdir(parents=True, exist_ok=True)
    row = json.loads((searcher.environment / "rows" / "eval.jsonl").read_text().splitlines()[0])
    target = folder / "copies.jsonl"
    rows = [{**row, "extra_info": {**row["extra_info"], "id": f"copy-{number}"}} for number in range(count)]
    target.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return Rows.from_json_lines(target, DataFormat.VERL_RL)
