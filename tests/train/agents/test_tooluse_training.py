"""Supervised and preference training on the use of tools, run for real on a small model (B7, B8)."""

import json
from pathlib import Path

import pytest
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_testing.tool_use import ToolUse, make_tool_use

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]
WEIGHTS = {
    "tool_selection": 0.35,
    "multi_step_planning": 0.30,
    "timing_decision": 0.20,
    "tool_retrieval": 0.15,
}
STEPS, PAIR_STEPS = 12, 5


@pytest.fixture(scope="module")
def tool_use(tmp_path_factory: pytest.TempPathFactory) -> ToolUse:
    return make_tool_use(tmp_path_factory.mktemp("tool_use"))


@pytest.fixture(scope="module")
def taught(tool_use: ToolUse, tmp_path_factory: pytest.TempPathFactory) -> EngineRun:
    """Two passes of gradients make a step, as in the full-size runs."""
    params = {
        "total_steps": STEPS,
        "validate_every": 0,
        "batch_size": 4,
        "gradient_accumulation": 2,
        "learning_rate": 5e-3,
    }
    run = compose_job(
        tmp_path_factory.mktemp("sft"),
        recipe="agent_sft",
        model=tool_use.model,
        rows=tool_use.rows("sft", "train", 400),
        validation=tool_use.rows("sft", "dev", 16),
        params=params,
    )
    return run_engine(run)


@pytest.fixture(scope="module")
def preferring(tool_use: ToolUse, taught: EngineRun, tmp_path_factory: pytest.TempPathFactory) -> EngineRun:
    """An adapter on the model of the supervised training."""
    params = {
        "total_steps": PAIR_STEPS,
        "validate_every": 0,
        "batch_size": 4,
        "gradient_accumulation": 2,
        "lora_rank": 8,
        "lora_alpha": 32,
        "lora_dropout": 0.0,
        "learning_rate": 5e-3,
    }
    run = compose_job(
        tmp_path_factory.mktemp("dpo"),
        recipe="agent_dpo",
        model=taught.checkpoint()["hf_path"],
        rows=tool_use.rows("preference", "train", 40),
        validation=tool_use.rows("preference", "dev", 8),
        params=params,
    )
    return run_engine(run)


def test_the_loss_on_other_dialogs_falls_by_a_fifth(taught: EngineRun) -> None:
    measured = taught.curve("eval_loss")

    assert list(measured) == [0, STEPS]
    assert measured[STEPS] <= 0.8 * measured[0]
    assert all(loss > 0 for loss in taught.curve("loss").values())


def test_tasks_are_mixed_by_their_weights(taught: EngineRun) -> None:
    mix = json.loads((taught.folder / "prepared/mix.json").read_text())
    shares = {name: count / mix["rows"] for name, count in mix["task_types"].items()}

    assert sum(mix["task_types"].values()) == mix["rows"] > 100
    assert shares == pytest.approx(WEIGHTS, abs=0.01)


def test_margins_between_pairs_rise(preferring: EngineRun) -> None:
    margins = preferring.curve("eval_rewards/margins")

    assert margins[0] == pytest.approx(0, abs=1e-4)
    assert margins[PAIR_STEPS] > 0.05
    assert list(preferring.curve("rewards/margins").values())[-1] > 0.05


def test_the_adapter_lies_on_the_named_modules(preferring: EngineRun) -> None:
    checkpoint = Path(preferring.checkpoint()["path"])
    config = json.loads((checkpoint / "lora_adapter/adapter_config.json").read_text())

    assert (config["r"], config["lora_alpha"]) == (8, 32)
    assert set(config["target_modules"]) == {
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    }


def test_labels_are_the_assistants_turns_alone(tool_use: ToolUse) -> None:
    """B3, as the trainer gets it: no token of the system, the user or a tool is learned."""
    from transformers import AutoTokenizer
    from trellis_train.preference.conversations import UNLEARNED, encode_conversation

    tokenizer = AutoTokenizer.from_pretrained(tool_use.model)
    rows = [json.loads(line) for line in (tool_use.folder / "sft/dev.jsonl").read_text().splitlines()[:60]]
    assert any(message["role"] == "tool" for row in rows for message in row["messages"])

    for row in rows:
        tokens, labels = encode_conversation(tokenizer, row["messages"])
        learned = tokenizer.decode([label for label in labels if label != UNLEARNED])
        said = [each["content"] for each in row["messages"] if each["role"] == "assistant"]

        assert learned == "".join(f"{text}<|im_end|>\n" for text in said)
        assert [
            token for token, label in zip(tokens, labels, strict=True) if label not in (token, UNLEARNED)
        ] == []


def test_neighbouring_results_of_tools_are_context(tool_use: ToolUse) -> None:
    from transformers import AutoTokenizer
    from trellis_train.preference.conversations import UNLEARNED, encode_conversation

    tokenizer = AutoTokenizer.from_pretrained(tool_use.model)
    messages = [
        {"role": "user", "content": "both?"},
        {"role": "assistant", "content": "calls"},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
        {"role": "assistant", "content": "done"},
    ]

    _, labels = encode_conversation(tokenizer, messages)

    learned = tokenizer.decode([label for label in labels if label != UNLEARNED])
    assert learned == "calls<|im_end|>\ndone<|im_end|>\n"


def test_a_template_that_rewrites_earlier_turns_is_refused(tool_use: ToolUse) -> None:
    from transformers import AutoTokenizer
    from trellis_train.preference.conversations import TemplateRewrites, encode_conversation

    tokenizer = AutoTokenizer.from_pretrained(tool_use.model)
    tokenizer.chat_template = (
        "{% for message in messages %}{{ message.role }}: "
        "{{ message.content if loop.last else message.content.split('</think>')[-1] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    turns = [("user", "a"), ("assistant", "<think>x</think>b"), ("user", "c"), ("assistant", "d")]

    with pytest.raises(TemplateRewrites, match=r"message 2 \(assistant\)"):
        encode_conversation(tokenizer, [{"role": role, "content": text} for role, text in turns])


def test_a_reference_that_says_nothing_is_zero_everywhere() -> None:
    from datasets import Dataset
    from trellis_train.preference.reference_free import without_reference
    from trl import DPOTrainer

    trainer = without_reference(DPOTrainer)
    rows = trainer._precompute_ref_logps(None, Dataset.from_dict({"prompt": ["a", "b"]}), "train", 1)

    assert rows["ref_chosen_logps"][:] == rows["ref_rejected_logps"][:] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("params", "row", "said"),
    [
        ({"focus_tags": "flying"}, {}, "unknown task type 'flying'"),
        ({"weight_tool_selection": 0}, {"task_type": "tool_selection"}, "select no task type"),
        ({}, {"task_type": "flying"}, "Row 1 of dataset .*unknown task type 'flying'"),
        ({"use_online_continual": True, "continual_buffer": "../x"}, {}, "invalid buffer name"),
    ],
)
def test_rows_that_cannot_be_chosen_as_asked_are_told(
    params: dict, row: dict, said: str, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from trellis_contracts.recipe import DataFormat
    from trellis_train.data.prepare import BadData

    chat = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
    rows = [{"messages": chat, **row} for _ in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    source = Rows(tmp_path / "rows.parquet", DataFormat.MESSAGES)

    with pytest.raises(BadData, match=said):
        compose_job(
            tmp_path / "job",
            recipe="agent_sft",
            model="m",
            rows=source,
            params={**params, "validation_rows": 0, "batch_size": 1},
        )
