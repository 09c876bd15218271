"""Configurations as people have them from AgentScope: read as they are, or refused with a reason."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import constants
from trellis_cli import tune
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import DataSource
from trellis_testing.stand_in_modelscope import StandInModelScope
from trellis_train.agents.tune import places
from trellis_train.agents.tune.mapping import MappedJob, map_config
from trellis_train.agents.tune.model import make_reply, split_thinking
from trellis_train.agents.tune.options import BadOptions, Options
from trellis_train.agents.tune.places import bring
from trellis_train.agents.tune.settings import load_config
from trellis_train.agents.tune.trial import find_place_faults
from trellis_train.data.prepare import _convert

#: The keys and values of a tuner's example: what such files say, whatever trains.
EXAMPLE = {
    "project": "AgentScope",
    "name": "GSM8K-Qwen3-0.6B",
    "checkpoint_root_dir": "${oc.env:TRINITY_CHECKPOINT_ROOT_DIR,./checkpoints}",
    "algorithm": {"algorithm_type": "multi_step_grpo", "repeat_times": 8},
    "model": {
        "model_path": "${oc.env:TRINITY_MODEL_PATH,Qwen/Qwen3-0.6B}",
        "max_response_tokens": 16384,
        "max_model_len": 24576,
        "temperature": 0.9,
    },
    "cluster": {"node_num": 2, "gpu_per_node": 8},
    "buffer": {
        "total_epochs": 1,
        "batch_size": 32,
        "train_batch_size": 256,
        "explorer_input": {
            "taskset": {"name": "gsm8k", "path": "openai/gsm8k", "subset_name": "main", "split": "train"}
        },
    },
    "explorer": {
        "runner_per_model": 16,
        "max_timeout": 600,
        "rollout_model": {
            "engine_num": 4,
            "tensor_parallel_size": 1,
            "enable_openai_api": True,
            "enable_history": True,
            "enable_auto_tool_choice": True,
            "tool_call_parser": "hermes",
            "reasoning_parser": "deepseek_r1",
            "enable_thinking": True,
        },
        "auxiliary_models": [],
    },
    "synchronizer": {
        "sync_style": "dynamic_by_explorer",
        "sync_method": "nccl",
        "sync_interval": 1,
        "sync_timeout": 1800,
    },
    "trainer": {"save_interval": 100, "use_dynamic_bsz": True, "ulysses_sequence_parallel_size": 1},
    "monitor": {"monitor_type": "tensorboard"},
}


def write(folder: Path, changes: dict[str, Any] | None = None) -> Path:
    """The example with other values at dotted keys."""
    config = yaml.safe_load(yaml.safe_dump(EXAMPLE))
    for dotted, value in (changes or {}).items():
        *parents, last = dotted.split(".")
        part = config
        for name in parents:
            part = part.setdefault(name, {})
        part[last] = value
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def read(path: Path) -> MappedJob:
    return map_config(*load_config(path), platform="cuda")


def test_the_example_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRINITY_MODEL_PATH", raising=False)
    job = read(write(tmp_path))

    assert (job.model, job.folder) == ("Qwen/Qwen3-0.6B", "./checkpoints/AgentScope/GSM8K-Qwen3-0.6B")
    assert (job.train.path, job.train.subset, job.train.split) == ("openai/gsm8k", "main", "train")
    assert (job.params["max_prompt_length"], job.params["max_response_length"]) == (8192, 16384)
    assert (job.params["temperature"], job.params["reasoning_parser"]) == (0.9, "deepseek_r1")
    assert job.params["mini_batch_size"] == 32
    assert job.overrides["data.apply_chat_template_kwargs.enable_thinking"] is True
    assert (job.gpus, job.has_event_files) == (16, True)
    # What there is no use for is named, and none of what has one.
    assert set(job.unused) == {
        "explorer.rollout_model.enable_auto_tool_choice",
        "explorer.rollout_model.enable_history",
        "explorer.rollout_model.enable_openai_api",
        "buffer.explorer_input.taskset.name",
        "synchronizer.sync_timeout",
    }


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("monitor.monitor_type", "wandb", "monitor_type must be tensorboard, not 'wandb'"),
        ("synchronizer.sync_interval", 0, "sync_interval must be more than 0"),
        ("synchronizer.sync_method", "checkpoint", "sync_method must be nccl"),
        ("synchronizer.sync_style", "never", "sync_style must be fixed or dynamic_by_explorer"),
        ("explorer.rollout_model.engine_num", 17, "more than the 16 GPUs"),
        ("explorer.rollout_model.engine_num", 0, "engine_num must be more than 0"),
        ("explorer.rollout_model.reasoning_parser", "glm45", "must be deepseek_r1 or qwen3"),
        ("explorer.rollout_model.tool_call_parser", "mistral", "tool_call_parser must be hermes"),
        ("model.load_in_4bit", True, "model.load_in_4bit: verl .* no way to hold it in fewer"),
        ("explorer.auxiliary_models", [{"name": "a", "base_url": "x", "model": "m"}], "must be an http"),
        ("explorer.auxiliary_models", [{"model_path": "Qwen/Qwen3-8B"}], "model_path"),
        ("trainer.unknown", 1, "unknown"),
    ],
)
def test_what_would_have_no_effect_is_refused_with_its_place(
    key: str, value: Any, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=problem):
        load_config(write(tmp_path, {key: value}))


class Hub:
    """Stands in for the hub: remembers what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, []  # type: tuple[Path, list[Any]]

    def load_dataset(self, path: str, name: str | None, *, split: str, token: str | None) -> Any:
        from datasets import Dataset

        self.asked.append((path, name, split))
        if path == "nobody/nothing":
            raise FileNotFoundError("Dataset 'nobody/nothing' doesn't exist on the Hub")
        return Dataset.from_list([{"question": "1+1?", "answer": "#### 2"}])

    def model_file(self, name: str, file: str, *, token: str | None, endpoint: str | None) -> str:
        self.asked.append((name, file))
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        path = self.folder / name / file
        path.write_text("{}")
        return str(path)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub(tmp_path / "hub")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("datasets.load_dataset", hub.load_dataset)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub.model_file)
    return hub


def test_ids_of_the_hub_are_looked_up_and_rows_fetched_once(hub: Hub, tmp_path: Path) -> None:
    job = read(write(tmp_path, {"explorer.rollout_model.enable_thinking": False}))

    first, faults = bring(job, has_weights=False)
    again, _ = bring(job, has_weights=False)
    found, tasks = find_place_faults(first)

    assert (faults, found) == ([], [])
    assert first.model == str(hub.folder / "Qwen/Qwen3-0.6B")
    assert [task["question"] for task in tasks] == ["1+1?"]
    assert again.train.path == first.train.path
    assert hub.asked.count(("openai/gsm8k", "main", "train")) == 1


def test_a_model_of_modelscope_is_looked_up_without_its_weights_and_brought_with_them(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = StandInModelScope({"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": b"w"})
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", served.url)
    monkeypatch.delenv("MODELSCOPE_API_TOKEN", raising=False)
    job = read(write(tmp_path, {"model.model_path": "modelscope:team/tiny"}))

    looked_up, faults = bring(job, has_weights=False)
    before = sorted(served.downloaded)
    brought, _ = bring(job, has_weights=True)
    served.close()

    assert (faults, before) == ([], ["config.json", "tokenizer.json"])
    assert looked_up.model == brought.model
    assert (Path(brought.model) / "model.safetensors").read_bytes() == b"w"


def test_only_addresses_that_a_hub_may_lead_to_are_opened(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded: list[str] = []
    monkeypatch.setattr(places, "guard_hub", guarded.append)
    # As if ModelScope were a public address: files at this machine's own are what it must not lead to.
    monkeypatch.setattr("trellis_data.addresses._is_local", lambda host: False)
    served = StandInModelScope({"config.json": b"{}", "model.safetensors": b"w"})
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", served.url)

    bring(read(write(tmp_path)), has_weights=False)
    _, faults = bring(read(write(tmp_path, {"model.model_path": "modelscope:team/tiny"})), has_weights=True)
    served.close()

    assert set(guarded) == {constants.ENDPOINT}
    assert [(fault.code, fault.param) for fault in faults] == [("NO_MODEL", "model.model_path")]
    assert served.downloaded == []


def test_ids_that_are_nowhere_are_told_with_their_keys(hub: Hub, tmp_path: Path) -> None:
    job = read(
        write(
            tmp_path,
            {
                "buffer.explorer_input.taskset.path": "nobody/nothing",
                "model.model_path": str(tmp_path / "away"),
            },
        )
    )
    _, faults = bring(job, has_weights=False)
    assert [(fault.code, fault.param) for fault in faults] == [
        ("NO_MODEL", "model.model_path"),
        ("NO_DATASET", f"{places.TASKSET_KEY}.path"),
    ]
    assert "doesn't exist on the Hub" in str(faults[1])


def test_a_name_of_quantized_weights_is_refused_with_the_alternative(hub: Hub, tmp_path: Path) -> None:
    job = read(write(tmp_path, {"model.model_path": "unsloth/Qwen3-8B-unsloth-bnb-4bit"}))

    _, faults = bring(job, has_weights=False)

    assert [(fault.code, fault.param) for fault in faults] == [("NO_MODEL", "model.model_path")]
    assert "unsloth/Qwen3-8B is the same model in 16 bits" in str(faults[0])
    assert all(asked[0] != "unsloth/Qwen3-8B-unsloth-bnb-4bit" for asked in hub.asked)


def test_thinking_needs_a_template_that_knows_it(hub: Hub, tmp_path: Path) -> None:
    job, _ = bring(read(write(tmp_path)), has_weights=False)
    (fault,) = find_place_faults(job)[0]
    assert (fault.code, fault.param) == ("NO_EFFECT", "explorer.rollout_model.enable_thinking")
    (Path(job.model) / "chat_template.jinja").write_text("{% if enable_thinking %}{% endif %}")
    assert find_place_faults(job)[0] == []


def test_a_file_has_no_subset(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "1", "answer": "1"}\n')
    (tmp_path / "config.json").write_text("{}")  # a model that is here: nothing is looked up at the hub
    changes = {"buffer.explorer_input.taskset.path": str(rows), "model.model_path": str(tmp_path)}

    _, faults = bring(read(write(tmp_path, changes)), has_weights=False)

    assert [(f.code, f.param) for f in faults] == [("BAD_ROWS", f"{places.TASKSET_KEY}.subset_name")]


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("<think>2+2</think>\n\n4", "2+2", "4"),
        ("2+2</think>4", "2+2", "4"),  # the template opens it in the prompt
        ("<think>and so on", "and so on", ""),
        ("4", "", "4"),
    ],
)
def test_thinking_is_kept_apart_from_what_is_said(text: str, thought: str, said: str) -> None:
    assert split_thinking(text) == (thought, said)
    assert make_reply(said, 1, 1, is_cut=False, has_tools=False)["text"] == said


def test_a_parser_is_one_of_those_that_there_are() -> None:
    assert Options.parse({"reasoning_parser": "qwen3"}).reasoning_parser == "qwen3"
    with pytest.raises(BadOptions, match="one of none, deepseek_r1, qwen3"):
        Options.parse({"reasoning_parser": "glm45"})


def with_evaluations(tmp_path: Path, *chosen: dict[str, Any]) -> dict[str, Any]:
    (tmp_path / "config.json").write_text("{}")  # a model that is here: nothing is looked up at the hub
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "1", "answer": "1"}\n')
    return {
        "buffer.explorer_input.taskset": {"path": str(rows)},
        "buffer.explorer_input.eval_tasksets": list(chosen),
        "model.model_path": str(tmp_path),
    }


def test_several_evaluations_are_measured_each_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "sums.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n' * 3)
    (tmp_path / "words.jsonl").write_text('{"asked": "Say hi", "wanted": "#### hi"}\n' * 2)
    words = {"prompt_key": "asked", "response_key": "wanted"}
    changes = with_evaluations(
        tmp_path,
        {"name": "sums", "path": str(tmp_path / "sums.jsonl")},
        {"name": "words", "path": str(tmp_path / "words.jsonl"), "format": words},
    )

    mapped = read(write(tmp_path, changes))
    job, faults = bring(mapped, has_weights=False)

    assert (faults, [key for key in mapped.unused if "eval_tasksets" in key]) == ([], [])
    assert job.validation is not None
    rows = pq.read_table(job.validation.path).to_pylist()
    assert [row["data_source"] for row in rows] == ["sums"] * 3 + ["words"] * 2
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[4]["prompt"] == [{"role": "user", "content": "Say hi"}]
    assert rows[4]["reward_model"]["ground_truth"] == "hi"
    assert [each for each in find_place_faults(job)[0] if "enable_thinking" not in str(each)] == []
    # The job prepares them as they are, with their names.
    local = tune._rows(json.loads(json.dumps(asdict(job.validation))))
    source = DataSource(
        dataset_id="evaluations", paths=[str(local.path)], format=local.format, columns=local.columns,
        sha256="0", row_count=5,
    )  # fmt: skip
    assert _convert(DataFormat.VERL_RL, source, tmp_path / "v.parquet", "validation", 0, 5) == 5
    prepared = pq.read_table(tmp_path / "v.parquet")
    assert set(prepared["data_source"].to_pylist()) == {"sums", "words"}


def test_an_evaluation_that_cannot_be_read_is_named_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bad.jsonl").write_text('{"question": "1", "answer": "1"}\n{"question": "2"}\n')
    (tmp_path / "none.jsonl").write_text("")
    chosen = [
        {"name": name, "path": str(tmp_path / f"{name}.jsonl")} for name in ("rows", "bad", "none", "away")
    ]

    job, faults = bring(read(write(tmp_path, with_evaluations(tmp_path, *chosen))), has_weights=False)

    key = places.EVAL_KEY
    assert [(fault.code, fault.param) for fault in faults] == [
        ("BAD_ROWS", f"{key}.1.path"),
        ("BAD_ROWS", f"{key}.2.path"),
        ("NO_DATASET", f"{key}.3.path"),
    ]
    assert job.validation is None


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"name": "a"}, "need different names, which label their metrics: a, a"),
        ({"name": "b/c"}, "eval_tasksets.1.name must be a name without '/'"),
        ({"name": "b", "rollout_args": {"temperature": 0.5}}, "the same rollout_args.temperature"),
        ({"name": "b", "rollout_args": {"top_p": 0.5}}, "the same rollout_args.top_p"),
    ],
)
def test_several_evaluations_that_cannot_be_told_apart_or_sampled_together_are_refused(
    second: dict[str, Any], said: str, tmp_path: Path
) -> None:
    changes = with_evaluations(tmp_path, {"name": "a", "path": "x"}, {"path": "y", **second})

    with pytest.raises(ValueError, match=said):
        read(write(tmp_path, changes))
