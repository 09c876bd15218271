"""Dialogs as rows: what is learned of them (B3), which task they train, how many of each are taken (B7)."""

import importlib.util
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_train.agents.starter import conversation_texts, make_tokenizer
from trellis_train.agents.tooluse.data.dialogs import make_dialogs
from trellis_train.agents.tooluse.data.tools import make_tools
from trellis_train.agents.tooluse.formatting.formatter import format_dialog, task_type_of, tools_called
from trellis_train.agents.tooluse.formatting.hermes import as_function
from trellis_train.agents.tooluse.formatting.sampling import (
    DEFAULT_TASK_WEIGHTS,
    TASK_TYPES,
    BadWeights,
    TaskType,
    largest_exact_count,
    quotas,
    sample_by_weights,
)
from trellis_train.agents.tooluse.formatting.task_types import BadDialog, decide_task_type
from trellis_train.data.prepare import SCHEMAS
from trellis_train.preference.conversations import UNLEARNED, encode_conversation

Row = dict[str, Any]


@pytest.fixture(scope="module")
def tools() -> dict[str, Row]:
    return {tool.name: tool.row for tool in make_tools(42).all}


@pytest.fixture(scope="module")
def dialogs() -> list[Row]:
    return list(itertools.islice(make_dialogs(make_tools(42), seed=42), 4000))


# -- what is learned --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(dialogs: list[Row], tools: dict[str, Row]) -> list[Row]:
    return [format_dialog(dialog, tools) for dialog in dialogs[:60]]


def qwen_template() -> str:
    """Qwen2.5's own, as TRL brings it."""
    spec = importlib.util.find_spec("trl")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("chat_templates").joinpath("qwen2_5.jinja").read_text()


@pytest.fixture(scope="module", params=["qwen2.5", "starter"])
def tokenizer(request: pytest.FixtureRequest, rows: list[Row]) -> Any:
    """A tokenizer trained on the dialogs, with the template of Qwen2.5 and with that of the starter model."""
    made = make_tokenizer(conversation_texts(rows), vocabulary=600)
    if request.param == "qwen2.5":
        made.chat_template = qwen_template()
    return made


def test_only_the_assistants_text_and_calls_are_learned_by_the_supervised_trainer(
    tokenizer: Any, dialogs: list[Row], rows: list[Row], tmp_path: Path
) -> None:
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    convert = choose_conversion(DataFormat.MESSAGES, DataFormat.MESSAGES, {})
    prepared = [convert(row, Place(number, "train"))[0] for number, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(prepared, SCHEMAS[DataFormat.MESSAGES]), tmp_path / "rows.parquet")
    config = {"pad_mode": "no_padding", "truncation": "error", "max_length": 100_000}
    # The dataset itself refuses rows whose turns are not the same tokens alone as in the conversation.
    dataset = MultiTurnSFTDataset([str(tmp_path / "rows.parquet")], tokenizer, config)

    assert len(dataset) == len(rows) == 60
    for place, row in enumerate(rows):
        item = dataset[place]
        ids, mask = item["input_ids"].tolist(), item["loss_mask"].tolist()
        assert_assistant_alone(tokenizer, dialogs[place], row, ids, mask)


def test_only_the_assistants_text_and_calls_are_labels_of_the_agents_trainer(
    tokenizer: Any, dialogs: list[Row], rows: list[Row]
) -> None:
    for dialog, row in zip(dialogs, rows, strict=False):
        tokens, labels = encode_conversation(tokenizer, row["messages"])
        mask = [int(label != UNLEARNED) for label in labels]
        assert_assistant_alone(tokenizer, dialog, row, tokens, mask)


def assert_assistant_alone(tokenizer: Any, dialog: Row, row: Row, ids: list[int], mask: list[int]) -> None:
    """What is learned is word for word what the assistant said, with the mark of its end; nothing else is."""
    learned = tokenizer.decode([token for token, is_on in zip(ids, mask, strict=True) if is_on])
    given = tokenizer.decode([token for token, is_on in zip(ids, mask, strict=True) if not is_on])
    assert learned == "".join(
        f"{write_by_hand(turn)}<|im_end|>\n" for turn in dialog["turns"] if turn["role"] == "assistant"
    )
    assert row["messages"][0]["role"] == "system"
    assert row["messages"][0]["content"] in given
    for turn in dialog["turns"]:
        if turn["role"] != "assistant":
            assert turn["content"] in given
        if turn["role"] == "tool":
            assert f"<tool_response>\n{turn['content']}\n</tool_response>" in given


def write_by_hand(turn: Row) -> str:
    """A turn of the assistant: its text, then each call in its tags."""
    parts = [turn["content"]] if turn["content"] else []
    for call in turn.get("calls", ()):
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        parts.append(f'<tool_call>\n{{"name": "{call["name"]}", "arguments": {arguments}}}\n</tool_call>')
    return "\n".join(parts)


def test_messages_are_what_qwens_template_makes_of_tools_and_calls(
    dialogs: list[Row], tools: dict[str, Row]
) -> None:
    tokenizer = make_tokenizer(["text"], vocabulary=300)
    tokenizer.chat_template = qwen_template()
    forms = Counter[int]()
    for dialog in dialogs[:200]:
        row = format_dialog(dialog, tools)
        written = tokenizer.apply_chat_template(row["messages"], tokenize=False)
        system = row["messages"][0]["content"].partition("\n\n# Tools")[0]
        structured = [{"role": "system", "content": system}]
        for turn in dialog["turns"]:
            calls = [{"type": "function", "function": call} for call in turn.get("calls", ())]
            forms[len(calls)] += 1
            structured.append({**turn, **({"tool_calls": calls} if calls else {})})
        functions = [as_function(tools[name]) for name in dialog["tools"]]
        assert tokenizer.apply_chat_template(structured, tools=functions, tokenize=False) == written
    assert forms[2] > 5, "no dialog with two calls in one turn was looked at"


def test_fewer_distractors_make_shorter_prompts_that_still_offer_what_is_called(
    dialogs: list[Row], tools: dict[str, Row]
) -> None:
    for dialog in dialogs[:50]:
        prompts = [format_dialog(dialog, tools, distractors=n)["messages"][0]["content"] for n in (0, 1, 4)]
        assert len(prompts[0]) < len(prompts[1]) < len(prompts[2])
        assert all(f'"{name}"' in prompts[0] for name in tools_called(dialog))


def test_a_row_has_the_fields_of_the_specification(dialogs: list[Row], tools: dict[str, Row]) -> None:
    row = format_dialog(dialogs[0], tools)

    assert set(row) == {"id", "input", "output", "task_type", "metadata", "messages"}
    assert row["input"] == dialogs[0]["goal"]
    assert row["output"].startswith(row["messages"][2]["content"])


def test_a_dialog_that_names_an_unknown_tool_is_refused_by_its_id(
    dialogs: list[Row], tools: dict[str, Row]
) -> None:
    with pytest.raises(BadDialog, match=r"agent_sft-00000.*'nothing'"):
        format_dialog({**dialogs[0], "tools": ["nothing"]}, tools)
    calling = next(dialog for dialog in dialogs if tools_called(dialog))
    with pytest.raises(BadDialog, match="not among its tools"):
        format_dialog({**calling, "tools": []}, tools)


# -- which task -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "called", "turns", "goal", "task"),
    [
        ({"task_type": "timing_decision"}, ["a", "b", "c"], 12, "Find it.", "timing_decision"),
        ({}, ["a", "b", "c"], 6, "Find it if you can.", "multi_step_planning"),
        (None, ["a", "a", "a"], 7, "Find it if you can.", "tool_retrieval"),
        ({}, ["a"], 8, "Find it if you can.", "multi_step_planning"),
        ({}, ["a"], 7, "Retrieve it when you can.", "tool_retrieval"),
        ({}, ["a"], 7, "SEARCH the shelf.", "tool_retrieval"),
        ({}, ["a"], 7, "帮我查找航班", "tool_retrieval"),
        ({}, ["a"], 7, "Check the weather.", "timing_decision"),
        ({}, ["a"], 7, "Wait for me.", "timing_decision"),
        ({}, ["a"], 7, "On one condition.", "timing_decision"),
        ({}, ["a"], 7, "如果下雨就取消", "timing_decision"),
        ({}, ["a"], 7, "Notify the whence of research.", "tool_selection"),
        ({}, [], 2, "Book a room.", "tool_selection"),
        ({}, [], 2, "订房间", "tool_selection"),
    ],
)
def test_the_first_rule_that_applies_decides_the_task(
    metadata: Row | None, called: list[str], turns: int, goal: str, task: str
) -> None:
    assert decide_task_type(metadata=metadata, tools=called, turns=turns, goal=goal) == task


def test_an_unknown_task_in_the_metadata_is_refused() -> None:
    with pytest.raises(BadDialog, match="unknown task type 'dancing'"):
        decide_task_type(metadata={"task_type": "dancing"}, tools=[], turns=1, goal="")


def test_the_rules_find_the_task_of_every_generated_dialog_without_its_metadata(dialogs: list[Row]) -> None:
    for dialog in dialogs:
        assert task_type_of({**dialog, "metadata": {}}) == dialog["metadata"]["task_type"], dialog["goal"]


# -- how many of each -------------------------------------------------------------------------------

WEIGHTS = st.dictionaries(
    st.sampled_from(TASK_TYPES), st.integers(0, 100).map(lambda n: n / 100), min_size=1
).filter(lambda weights: sum(weights.values()) > 0)
AVAILABLE = st.fixed_dictionaries({task: st.integers(0, 60) for task in TASK_TYPES})


@given(WEIGHTS, AVAILABLE, st.integers(0, 300))
def test_quotas_take_all_that_is_asked_for_or_all_there_is(
    weights: dict[TaskType, float], available: dict[TaskType, int], count: int
) -> None:
    taken = quotas(weights, available, count)

    usable = sum(available[task] for task, weight in weights.items() if weight > 0)
    assert sum(taken.values()) == min(count, usable)
    assert all(0 <= taken[task] <= available[task] for task in taken)
    assert all(taken[task] == 0 for task, weight in weights.items() if weight == 0)
    assert quotas(dict(reversed(weights.items())), available, count) == taken


@given(WEIGHTS, st.integers(0, 500))
def test_without_a_shortage_no_quota_is_a_whole_row_off_its_share(
    weights: dict[TaskType, float], count: int
) -> None:
    taken = quotas(weights, dict.fromkeys(TASK_TYPES, 500), count)

    total = sum(Fraction(str(weight)) for weight in weights.values())
    shares = {task: Fraction(str(weight)) * count / total for task, weight in weights.items()}
    assert all(abs(taken[task] - share) < 1 for task, share in shares.items())
    # Largest remainders first: who was rounded up had no smaller remainder than who was not.
    up = [shares[task] % 1 for task in taken if taken[task] > shares[task]]
    down = [shares[task] % 1 for task in taken if taken[task] < shares[task]]
    assert not up or not down or min(up) >= max(down)


@given(WEIGHTS, AVAILABLE, st.integers(0, 300))
def test_a_deficit_is_shared_by_the_weights_of_those_that_have_rows_left(
    weights: dict[TaskType, float], available: dict[TaskType, int], count: int
) -> None:
    taken = quotas(weights, available, count)

    left = [task for task, weight in weights.items() if weight > 0 and taken[task] < available[task]]
    for one, other in itertools.permutations(left, 2):
        # Both could give more: they stand in the proportion of their weights, but for rounding in each round.
        expected = taken[other] * weights[one] / weights[other]
        assert abs(taken[one] - expected) <= len(TASK_TYPES) * (1 + weights[one] / weights[other])


def test_quotas_by_hand() -> None:
    plenty = dict.fromkeys(TASK_TYPES, 1000)
    short = {**plenty, "multi_step_planning": 10}

    assert list(quotas(DEFAULT_TASK_WEIGHTS, plenty, 100).values()) == [35, 30, 20, 15]
    # 17.5, 15, 10, 7.5: equal remainders, so the first name of the alphabet (tool_retrieval) gets the row.
    assert list(quotas(DEFAULT_TASK_WEIGHTS, plenty, 50).values()) == [17, 15, 10, 8]
    # 20 rows of planning are missing: .35, .20, .15 of .70 make 10, 5.7, 4.3.
    assert list(quotas(DEFAULT_TASK_WEIGHTS, short, 100).values()) == [45, 10, 26, 19]


@given(AVAILABLE)
def test_the_largest_exact_count_is_exact_and_the_next_is_not(available: dict[TaskType, int]) -> None:
    count = largest_exact_count(DEFAULT_TASK_WEIGHTS, available)

    plenty = dict.fromkeys(TASK_TYPES, 10_000)
    exact = quotas(DEFAULT_TASK_WEIGHTS, plenty, count)
    more = quotas(DEFAULT_TASK_WEIGHTS, plenty, count + 1)
    assert all(exact[task] <= available[task] for task in TASK_TYPES)
    assert any(more[task] > available[task] for task in TASK_TYPES)


def other_weights() -> Iterator[dict[TaskType, float]]:
    yield DEFAULT_TASK_WEIGHTS
    yield {"tool_selection": 0.1, "multi_step_planning": 0.2, "timing_decision": 0.3, "tool_retrieval": 0.4}
    yield {"tool_selection": 1, "timing_decision": 2}


@pytest.mark.parametrize("weights", list(other_weights()))
def test_the_mix_of_a_sample_is_within_one_percent_of_the_weights(
    dialogs: list[Row], tools: dict[str, Row], weights: dict[TaskType, float]
) -> None:
    rows = [{"id": dialog["id"], "task_type": task_type_of(dialog)} for dialog in dialogs]

    sample = sample_by_weights(rows, weights, count=1000, seed=5)

    counts = Counter(row["task_type"] for row in sample)
    assert len({row["id"] for row in sample}) == len(sample) == 1000
    for task, weight in weights.items():
        assert abs(counts[task] / 1000 - weight / sum(weights.values())) <= 0.01
    assert sample == sample_by_weights(rows, weights, count=1000, seed=5)
    assert sample != sample_by_weights(rows, weights, count=1000, seed=6)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"dancing": 1}, "unknown task 'dancing'"),
        ({"tool_selection": -1}, "0 or more"),
        ({"tool_selection": float("nan")}, "0 or more"),
        ({"tool_selection": 0}, "above 0"),
        ({}, "above 0"),
    ],
)
def test_weights_that_are_none_are_refused(weights: Any, said: str) -> None:
    with pytest.raises(BadWeights, match=said):
        sample_by_weights([], weights, count=1, seed=0)
