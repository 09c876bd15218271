"""Shell scripts that start verl: what becomes of them, and that nothing of them is run."""

from pathlib import Path
from typing import Any

import pytest
from trellis_recipes.compose import compose
from trellis_recipes.request import ComposeRequest
from trellis_recipes.script_import import BadScript, ImportedScript, import_script

GRPO = r"""#!/usr/bin/env bash
set -xeuo pipefail
# Where things are; a "quote" and a $variable in a comment are nothing.
MODEL_PATH=${MODEL_PATH:-"$HOME/models/small"}
export max_prompt=256   # tokens
max_response=$((1024 * 2))
n=8
LR=1e-6
ALGORITHM=(
    algorithm.adv_estimator=grpo
    algorithm.use_kl_in_reward=False   # in the loss instead
)
if [ -z "$EXPERIMENT" ]; then
    EXPERIMENT=first-$n
fi
STAMP=$(date +%s)

PYTHONUNBUFFERED=1 python3 -m verl.trainer.main_ppo \
    "${ALGORITHM[@]}" \
    data.train_files="$HOME/data/train.parquet" \
    data.val_files=['/data/a.parquet','/data/b.parquet'] \
    data.train_batch_size=64 \
    data.max_prompt_length=$max_prompt \
    data.max_response_length=${max_response} \
    data.truncation='error' \
    actor_rollout_ref.model.path=$MODEL_PATH \
    actor_rollout_ref.actor.optim.lr=$LR \
    actor_rollout_ref.actor.strategy=fsdp2 \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n="$n" \
    +actor_rollout_ref.rollout.engine_kwargs.vllm.max_num_seqs=64 \
    trainer.logger='["console","wandb"]' \
    trainer.experiment_name="$EXPERIMENT" \
    trainer.project_name=p-$STAMP \
    trainer.n_gpus_per_node=4 trainer.nnodes=2 \
    trainer.save_freq=-1 trainer.test_freq=5 \
    trainer.total_epochs=3 $@ 2>&1 | tee run.log
"""


def read(script: str) -> ImportedScript:
    return import_script(script, platform="cuda")


def reasons(found: ImportedScript) -> dict[str, str]:
    return {each.setting: each.code for each in found.left_out}


def ppo(*settings: str) -> ImportedScript:
    return read(" ".join(["python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo", *settings]))


def test_a_script_becomes_recipe_parameters_and_overrides() -> None:
    found = read(GRPO)

    assert (found.recipe, found.name, found.gpus) == ("grpo", "first-8", 8)
    assert found.model == "~/models/small"
    assert found.dataset == "~/data/train.parquet"
    assert found.validation_dataset == "/data/a.parquet, /data/b.parquet"
    expected = {
        "batch_size": 64, "max_prompt_length": 256, "max_response_length": 2048, "learning_rate": 1e-6,
        "mini_batch_size": 32, "group_size": 8, "epochs": 3, "validate_every": 5,
    }  # fmt: skip
    assert {name: found.params[name] for name in expected} == expected
    assert found.overrides["actor_rollout_ref.rollout.engine_kwargs.vllm.max_num_seqs"] == 64
    assert found.overrides["data.truncation"] == "error"
    assert reasons(found) == {"trainer.logger": "reserved_key", "trainer.project_name": "unknown_value"}
    assert found.problems == []


def test_what_comes_out_composes_to_what_the_script_says() -> None:
    found = read(GRPO)

    composition = compose(
        ComposeRequest(
            recipe=found.recipe,
            params=found.params,
            overrides=found.overrides,
            platform="cuda",
            gpus=found.gpus,
            model_path="/m",
            train_path="/t.parquet",
            checkpoint_dir="/c",
            seed=1,
        )
    )

    assert composition.errors == []
    rollout = composition.config["actor_rollout_ref"]["rollout"]
    assert (rollout["n"], rollout["engine_kwargs"]["vllm"]["max_num_seqs"]) == (8, 64)
    assert composition.config["actor_rollout_ref"]["actor"]["optim"]["lr"] == 1e-6


@pytest.mark.parametrize(
    ("settings", "recipe"),
    [
        ("algorithm.adv_estimator=gae", "ppo"),
        ("", "ppo"),
        ("algorithm.adv_estimator=rloo", "rloo"),
        ("algorithm.adv_estimator=remax", "remax"),
        ("algorithm.adv_estimator=reinforce_plus_plus", "reinforce_plus_plus"),
        ("algorithm.adv_estimator=grpo", "grpo"),
        ("algorithm.adv_estimator=grpo reward_model.reward_manager=dapo", "dapo"),
        ("algorithm.adv_estimator=grpo actor_rollout_ref.actor.policy_loss.loss_mode=gspo", "gspo"),
        ("algorithm.adv_estimator=grpo actor_rollout_ref.actor.policy_loss.loss_mode=cispo", "cispo"),
        (
            "algorithm.adv_estimator=grpo algorithm.norm_adv_by_std_in_grpo=False"
            " actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm",
            "dr_grpo",
        ),
    ],
)
def test_the_recipe_is_the_one_whose_algorithm_it_is(settings: str, recipe: str) -> None:
    assert read(f"python3 -m verl.trainer.main_ppo {settings}").recipe == recipe


def test_a_script_of_supervised_fine_tuning_is_read_too() -> None:
    found = read(
        "nproc=$1\n"
        "torchrun --standalone --nnodes=1 --nproc_per_node=$nproc -m verl.trainer.sft_trainer \\\n"
        "  data.train_files=/d.parquet data.train_batch_size=32 optim.lr=1e-5 engine=fsdp model.path=/m\n"
    )

    assert (found.recipe, found.model, found.dataset) == ("sft", "/m", "/d.parquet")
    assert (found.params["batch_size"], found.params["learning_rate"]) == (32, 1e-5)
    assert found.left_out == []


@pytest.mark.parametrize(
    ("setting", "key", "code"),
    [
        ("actor_rollout_ref.rollout.name=sglang", "actor_rollout_ref.rollout.name", "unknown_choice"),
        ("actor_rollout_ref.actor.megatron.param_offload=True", None, "option_refused"),
        (
            "+actor_rollout_ref.rollout.engine_kwargs.vllm.reasoning_parser_plugin=/x.py",
            None,
            "option_refused",
        ),
        ("custom_reward_function.path=/reward.py", None, "ineffective_key"),
        ("data.custom_cls.path=/x.py", None, "option_refused"),
        ("data.truncation='${oc.env:HOME}'", None, "invalid_value"),
        ("no.such.key=1", None, "unknown_engine_key"),
        ("trainer.default_local_dir=$CHECKPOINTS", None, "unknown_value"),
        ("data.seed=$(cat seed)", None, "unknown_value"),
        ("data.seed=`cat seed`", None, "unknown_value"),
        ("~data.seed=1", "data.seed", "unreadable"),
        ("data.seed=1,2", None, "unreadable"),
        ("--config-name=ppo_megatron_trainer", "--config-name", "command_option"),
    ],
)
def test_what_the_job_does_not_get_is_listed_with_the_reason(
    setting: str, key: str | None, code: str
) -> None:
    found = ppo(setting)

    (left,) = found.left_out
    assert (left.setting, left.code) == (key or setting.lstrip("+").partition("=")[0], code)
    assert left.reason
    assert left.setting not in found.overrides


@pytest.mark.parametrize(
    ("trainer", "setting", "code", "says"),
    [
        ("sft_trainer", "engine.use_mbridge=True", "option_refused", "Megatron-LM"),
        ("sft_trainer", "engine.tensor_model_parallel_size=2", "option_refused", "Megatron-LM"),
        ("sft_trainer", "engine.override_ddp_config.x=1", "option_refused", "Megatron-LM"),
        (
            "sft_trainer",
            "engine.data_parallel_shard_size=2",
            "option_refused",
            "engine that is not installed",
        ),
        ("sft_trainer", "optim.lr_decay_style=cosine", "option_refused", "'lr_scheduler_type'"),
        ("sft_trainer", "data.prompt_key=question", "reserved_key", "columns"),
        ("sft_trainer", "data.prompt_dict_keys=['question']", "option_refused", "column"),
        ("main_ppo", "distillation.enabled=True", "option_refused", "teacher"),
        ("main_ppo", "distillation.distillation_loss.loss_mode=k3", "option_refused", "teacher"),
        ("main_ppo", "distillation.num_workers=8", "option_refused", "teacher"),
        ("main_ppo", "global_profiler.tool=npu", "option_refused", "profilers"),
        (
            "main_ppo",
            "actor_rollout_ref.actor.profiler.tool_config.npu.level=level1",
            "option_refused",
            "NPU",
        ),
        ("main_ppo", "global_profiler.global_tool_config.npu.discrete=True", "option_refused", "NPU"),
        (
            "main_ppo",
            "actor_rollout_ref.actor.fsdp_config.turbo_config.distributed.tensor_parallel_size=2",
            "option_refused",
            "not installed",
        ),
    ],
)
def test_what_the_platform_does_not_have_is_said_and_no_other_setting_is_offered_for_it(
    trainer: str, setting: str, code: str, says: str
) -> None:
    (left,) = read(f"python3 -m verl.trainer.{trainer} {setting}").left_out

    assert (left.setting, left.code) == (setting.partition("=")[0], code)
    assert says in left.reason
    assert "nearest" not in left.reason


def test_switched_off_distillation_is_no_problem() -> None:
    assert ppo("distillation.enabled=False").left_out == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("X=5; {}=$X", 5),
        ("X=5\n{}=${{X}}", 5),
        ("{}=${{X:-7}}", 7),
        ("X=\n{}=${{X:-7}}", 7),
        ("{}=$((2 * (3 + 4)))", 14),
        ("A=6; {}=$((A / 4))", 1),
        ("X=1; X=2; {}=$X", 2),
        ("X=1; if true; then X=2; fi; {}=$X", 1),
        ("{}=${{A:-${{B:-9}}}}", 9),
        ("X=(1 2); {}=${{#X}}", None),
        ("X=3 ; {}='$X'", None),
        ("X=9**9; {}=$((9**9))", None),
    ],
)
def test_variables_are_worked_out_as_far_as_the_text_says(text: str, value: Any) -> None:
    before, _, after = text.partition("{}")
    script = f"{before}python3 -m verl.trainer.main_ppo data.seed{after}".replace("{{", "{").replace(
        "}}", "}"
    )

    found = read(script)

    assert found.overrides.get("data.seed") == value


def test_nothing_of_a_script_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    found = read(
        f"touch {mark}\nX=$(touch {mark}; echo 5)\nY=`touch {mark}`\nsource {mark}\neval 'touch {mark}'\n"
        f"python3 -m verl.trainer.main_ppo data.seed=$X trainer.total_epochs=$((`touch {mark}`)) > {mark}\n"
    )

    assert not mark.exists()
    assert {each.code for each in found.left_out} == {"unknown_value"}


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("", "No line"),
        ("echo hello", "No line"),
        ("python3 train.py data.seed=1", "No line"),
        ("python3 -m verl.trainer.main_generation x=1", "verl.trainer.main_generation"),
        ("python3 -m recipe.sppo.main_sppo x=1", "recipe.sppo.main_sppo"),
        ("python3 -m verl.trainer.main_ppo 'x=1", "never closed"),
        ("python3 -m verl.trainer.main_ppo x=${A", "never closed"),
        ("A=(1 2\npython3 -m verl.trainer.main_ppo", "never closed"),
        ("python3 -m verl.trainer.main_ppo " + "data.seed=1 " * 2001, "2001"),
    ],
)
def test_a_text_that_is_no_such_script_says_what_is_missing(script: str, names: str) -> None:
    with pytest.raises(BadScript, match=names):
        read(script)
