"""AgentScope's own training file runs as it is, and what the run has instead of its values is said."""

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_train.agents.tune import mapping
from trellis_train.agents.tune.mapping import EVAL_TOP_P, MappedJob, map_config
from trellis_train.agents.tune.settings import load_config, read_config
from trellis_train.engines.hydra_config import CONFIG_NAME, compose_schema

REAL_FILE = Path(__file__).with_name("agentscope_react_agent.yaml")
ENGINES = "explorer.rollout_model.engine_num"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRINITY_MODEL_PATH", raising=False)
    monkeypatch.delenv("TRINITY_CHECKPOINT_ROOT_DIR", raising=False)
    mapping._warned.clear()


def map_real(changes: dict[str, Any] | None = None, platform: str = "cuda") -> MappedJob:
    """The file with other values at dotted keys."""
    written = yaml.safe_load(REAL_FILE.read_text())
    for dotted, value in (changes or {}).items():
        *parents, last = dotted.split(".")
        part = written
        for name in parents:
            part = part[name]
        part[last] = value
    return map_config(*read_config(written), platform=platform)


def compose_job(job: MappedJob, **more: Any) -> Composition:
    """The run that the platform makes of the job."""
    return compose(
        ComposeRequest(
            recipe=job.recipe,
            params={**job.params, "workflow": "wfl_1"},
            overrides=job.overrides,
            platform="cuda",
            gpus=job.gpus,
            model_path=job.model,
            train_path="/prepared/train.parquet",
            checkpoint_dir="/checkpoints",
            seed=job.seed,
            **more,
        )
    )


def test_the_file_is_read_as_it_is_and_composes_to_a_run_of_verl() -> None:
    job = map_config(*load_config(REAL_FILE), platform="cuda")
    composition = compose_job(job)

    assert composition.errors == []
    config = compose_schema(CONFIG_NAME, composition.engine_overrides)
    rollout, actor = config.actor_rollout_ref.rollout, config.actor_rollout_ref.actor
    assert (rollout.n, rollout.max_model_len, rollout.enforce_eager) == (8, 24576, True)
    assert (config.data.max_prompt_length, config.data.max_response_length) == (8192, 16384)
    assert (actor.ppo_mini_batch_size, actor.fsdp_config.ulysses_sequence_parallel_size) == (32, 2)
    assert (config.trainer.nnodes, config.trainer.n_gpus_per_node) == (1, 8)


def test_weights_that_are_synchronized_more_often_than_asked_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        job = map_real()
        map_real()

    told = [message for message in caplog.messages if "sync_interval" in message]
    assert told == [note for note in job.notes if "sync_interval" in note]
    assert told[0].startswith(
        "synchronizer.sync_interval is 2, but weights are synchronized after every step"
    )


@pytest.mark.parametrize("value", [0, -1])
def test_an_interval_that_is_none_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="sync_interval must be more than 0"):
        map_real({"synchronizer.sync_interval": value})


@pytest.mark.parametrize(
    ("engines", "tensor_parallel", "told"),
    [(4, 1, "4, but 8 engines run"), (2, 2, "2, but 4 engines run"), (8, 1, None), (4, 2, None)],
)
def test_another_number_of_engines_than_runs_is_reported(
    engines: int, tensor_parallel: int, told: str | None
) -> None:
    job = map_real({ENGINES: engines, "explorer.rollout_model.tensor_parallel_size": tensor_parallel})
    (note,) = [note for note in job.notes if ENGINES in note] or [None]
    assert note == told or (note or "").startswith(f"{ENGINES} is {told}: one for every")


def test_engines_that_the_gpus_do_not_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="more than the 8 GPUs"):
        map_real({ENGINES: 5, "explorer.rollout_model.tensor_parallel_size": 2})


def with_evaluation(**chosen: Any) -> dict[str, Any]:
    return {"buffer.explorer_input.eval_tasksets": [{"path": "/data/eval.jsonl", **chosen}]}


def test_top_p_of_an_evaluation_reaches_verl() -> None:
    job = map_real(with_evaluation(rollout_args={"temperature": 0.7, "top_p": 0.8}))
    assert (job.params["validation_temperature"], job.overrides[EVAL_TOP_P]) == (0.7, 0.8)
    composed = compose_job(job, validation_path="/prepared/validation.parquet")
    assert composed.errors == []
    config = compose_schema(CONFIG_NAME, composed.engine_overrides)
    assert config.actor_rollout_ref.rollout.val_kwargs.top_p == 0.8


def test_an_evaluation_is_sampled_as_the_model_says_where_it_says_nothing() -> None:
    job = map_real({**with_evaluation(), "model.temperature": 0.6, "model.top_p": 0.9})
    assert (job.params["validation_temperature"], job.overrides[EVAL_TOP_P]) == (0.6, 0.9)


def test_what_an_evaluation_cannot_choose_is_reported() -> None:
    job = map_real(with_evaluation(name="eval", rollout_args={"max_tokens": 512, "logprobs": 1}))

    (note,) = [note for note in job.notes if "max_tokens" in note]
    assert note.startswith("buffer.explorer_input.eval_tasksets.0.rollout_args.max_tokens is 512, but")
    assert "buffer.explorer_input.eval_tasksets.0.rollout_args.logprobs" in job.unused
    assert "buffer.explorer_input.eval_tasksets.0.name" in job.unused


def test_an_evaluation_with_the_replies_of_the_training_needs_no_word() -> None:
    changes = with_evaluation(rollout_args={"max_tokens": 64})
    job = map_real(
        {**changes, "buffer.explorer_input.taskset.rollout_args": {"temperature": 1.0, "max_tokens": 64}}
    )
    assert [note for note in job.notes if "max_tokens" in note] == []


def test_an_evaluation_from_another_storage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"eval_tasksets.0.storage_type must be file, not 'sql'"):
        map_real(with_evaluation(storage_type="sql"))


@pytest.mark.parametrize(
    ("change", "unused"),
    [
        ({"explorer.eval_interval": 5}, "explorer.eval_interval"),
        ({"trainer.use_dynamic_bsz": False}, "trainer.max_token_len_per_gpu"),
        ({"buffer.total_steps": 5}, "buffer.total_epochs"),
    ],
)
def test_a_key_that_another_one_makes_useless_is_named(change: dict[str, Any], unused: str) -> None:
    assert unused not in map_real().unused
    assert unused in map_real(change).unused
