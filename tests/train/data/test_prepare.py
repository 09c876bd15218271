"""Datasets as the platform stores them, and the files that the engines read."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat, Engine
from trellis_contracts.rows import CONVERSIONS
from trellis_contracts.spec import DataSource, JobSpec, ModelSource
from trellis_train.data import prepare as module
from trellis_train.data.prepare import BadData, prepare

GSM8K = Path(os.environ.get("TRELLIS_BENCHMARK_DIR", "../shared/data")) / "gsm8k" / "train.jsonl"
CHAT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]


def source(
    folder: Path,
    rows: list[dict],
    format_: DataFormat,
    name: str = "data",
    row_group_size: int | None = None,
    **columns: str,
) -> DataSource:
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=row_group_size)
    return DataSource(
        dataset_id="ds_1",
        paths=[str(path)],
        format=format_,
        columns=columns,
        sha256="0",
        row_count=len(rows),
    )


def spec_for(folder: Path, train: DataSource, *, form: DataFormat = DataFormat.VERL_RL, **changes) -> JobSpec:
    return JobSpec(
        **{
            "job_id": "job_1",
            "attempt": 1,
            "name": "a job",
            "recipe": "grpo",
            "engine": Engine.VERL_PPO,
            "row_format": form,
            "platform": "cpu",
            "gpus": 1,
            "seed": 0,
            "params": {"validation_rows": 0},
            "engine_overrides": [],
            "model": ModelSource(model_id="mdl_1", path="/m"),
            "train_data": train,
            "attempt_dir": str(folder),
            "checkpoint_dir": str(folder / "checkpoints"),
            "ingest_url": "http://localhost",
            **changes,
        }
    )


def questions(count: int) -> list[dict]:
    return [{"question": f"{n}+1?", "answer": f"so\n#### {n + 1}"} for n in range(count)]


def test_questions_become_rows_of_verls_rl_data(tmp_path: Path) -> None:
    train = source(tmp_path, questions(3), DataFormat.PROMPT_ANSWER)

    prepared = prepare(spec_for(tmp_path, train))

    assert prepared.train_path == tmp_path / "prepared" / "train.parquet"
    assert pq.read_table(prepared.train_path).to_pylist()[2] == {
        "data_source": "dataset",
        "prompt": [{"role": "user", "content": "2+1?"}],
        "ability": "general",
        "reward_model": {"style": "rule", "ground_truth": "3"},
        "extra_info": {"index": 2, "split": "train", "question": "2+1?"},
    }


def test_conversations_become_rl_rows_by_their_last_answer(tmp_path: Path) -> None:
    messages = [*CHAT, {"role": "user", "content": "and +1?"}, {"role": "assistant", "content": "\\boxed{3}"}]
    train = source(tmp_path, [{"messages": messages}], DataFormat.MESSAGES)

    (row,) = pq.read_table(prepare(spec_for(tmp_path, train)).train_path).to_pylist()

    assert row["prompt"] == messages[:3]
    assert row["reward_model"]["ground_truth"] == "3"


def test_questions_become_conversations_for_supervised_training(tmp_path: Path) -> None:
    train = source(tmp_path, [{"prompt": "1+1?", "completion": "2"}], DataFormat.PROMPT_ANSWER)

    prepared = prepare(spec_for(tmp_path, train, form=DataFormat.MESSAGES))

    assert pq.read_table(prepared.train_path).to_pylist() == [{"messages": CHAT}]


def test_verls_own_rows_are_kept_as_they_are(tmp_path: Path) -> None:
    row = {
        "data_source": "mine",
        "prompt": CHAT[:1],
        "reward_model": {"ground_truth": "2", "tolerance": 0.1},
        "agent_name": "tool_agent",
    }
    train = source(tmp_path, [row, row], DataFormat.VERL_RL)

    prepared = prepare(spec_for(tmp_path, train, params={"validation_rows": 1}))

    assert pq.read_table(prepared.train_path).to_pylist() == [row]
    assert prepared.validation_path is not None
    assert pq.read_table(prepared.validation_path).to_pylist() == [row]


def test_verls_own_rows_under_other_names_get_verls(tmp_path: Path) -> None:
    row = {"source": "mine", "prompt": "kept out", "chat": CHAT[:1], "reward_model": {"ground_truth": "2"}}
    train = source(tmp_path, [row], DataFormat.VERL_RL, data_source="source", prompt="chat")

    prepared = prepare(spec_for(tmp_path, train))

    assert pq.read_table(prepared.train_path).to_pylist() == [
        {"data_source": "mine", "prompt": CHAT[:1], "reward_model": {"ground_truth": "2"}}
    ]


#: One row of every format, and what it becomes in each form.
ROWS: dict[DataFormat, dict] = {
    DataFormat.PROMPT_ANSWER: {"question": "1+1?", "answer": "2"},
    DataFormat.MESSAGES: {"messages": CHAT},
    DataFormat.PREFERENCE: {"chosen": CHAT, "rejected": [CHAT[0], {"role": "assistant", "content": "3"}]},
    DataFormat.UNPAIRED_PREFERENCE: {"prompt": "1+1?", "completion": "2", "label": True},
    DataFormat.TEXT: {"text": "One and one are two."},
    DataFormat.VERL_RL: {
        "data_source": "sums",
        "prompt": CHAT[:1],
        "reward_model": {"style": "rule", "ground_truth": "2"},
    },
}
PAIR = {"prompt": CHAT[:1], "chosen": CHAT[1:], "rejected": [{"role": "assistant", "content": "3"}]}
PREPARED: dict[DataFormat, list[dict]] = {
    DataFormat.MESSAGES: [{"messages": CHAT}],
    DataFormat.PREFERENCE: [PAIR],
    DataFormat.UNPAIRED_PREFERENCE: [{"prompt": CHAT[:1], "completion": CHAT[1:], "label": True}],
    DataFormat.TEXT: [ROWS[DataFormat.TEXT]],
}
EVERY_CONVERSION = [(form, source_) for form, sources in CONVERSIONS.items() for source_ in sources]


@pytest.mark.parametrize(("form", "format_"), EVERY_CONVERSION)
def test_every_conversion_of_the_table_is_made(form: DataFormat, format_: DataFormat, tmp_path: Path) -> None:
    train = source(tmp_path, [ROWS[format_]], format_)

    prepared = prepare(spec_for(tmp_path, train, form=form))

    rows = pq.read_table(prepared.train_path).to_pylist()
    assert prepared.train_rows == len(rows)
    if form is DataFormat.VERL_RL:
        assert (rows[0]["prompt"], rows[0]["reward_model"]["ground_truth"]) == (CHAT[:1], "2")
    elif (form, format_) == (DataFormat.UNPAIRED_PREFERENCE, DataFormat.PREFERENCE):
        rejected = {"prompt": CHAT[:1], "completion": PAIR["rejected"], "label": False}
        assert rows == [*PREPARED[form], rejected]
    else:
        assert rows == PREPARED[form]


@pytest.mark.parametrize("form", [form for form in DataFormat if form is not DataFormat.UNKNOWN])
def test_what_is_not_in_the_table_is_refused(form: DataFormat, tmp_path: Path) -> None:
    for format_ in set(ROWS) - set(CONVERSIONS[form]) if form in CONVERSIONS else ():
        train = source(tmp_path, [ROWS[format_]], format_)
        with pytest.raises(BadData, match=f"'{format_}' format can't be converted to '{form}'"):
            prepare(spec_for(tmp_path, train, form=form))


def test_the_rows_of_a_pair_are_held_out_together(tmp_path: Path) -> None:
    pairs = [{"prompt": f"{n}?", "chosen": "yes", "rejected": "no"} for n in range(5)]
    train = source(tmp_path, pairs, DataFormat.PREFERENCE)

    prepared = prepare(
        spec_for(tmp_path, train, form=DataFormat.UNPAIRED_PREFERENCE, params={"validation_rows": 2})
    )

    assert (prepared.train_rows, prepared.validation_rows) == (6, 4)
    assert prepared.validation_path is not None
    held_out = pq.read_table(prepared.validation_path).to_pylist()
    assert [(row["prompt"][0]["content"], row["label"]) for row in held_out] == [
        ("3?", True),
        ("3?", False),
        ("4?", True),
        ("4?", False),
    ]


def test_named_columns_play_their_roles(tmp_path: Path) -> None:
    rows = [{"prompt": "wrong", "ask": "1+1?", "answer": "wrong", "reply": "2"}]
    train = source(tmp_path, rows, DataFormat.PROMPT_ANSWER, prompt="ask", answer="reply")

    prepared = prepare(spec_for(tmp_path, train, form=DataFormat.MESSAGES))

    assert pq.read_table(prepared.train_path).to_pylist() == [{"messages": CHAT}]


def test_the_last_rows_are_held_out_and_leave_training(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 4)
    train = source(tmp_path, questions(11), DataFormat.PROMPT_ANSWER)

    prepared = prepare(spec_for(tmp_path, train, params={"validation_rows": 3}))

    def indices(path: Path) -> list[int]:
        return [row["extra_info"]["index"] for row in pq.read_table(path).to_pylist()]

    assert indices(prepared.train_path) == list(range(8))
    assert prepared.validation_path is not None
    assert indices(prepared.validation_path) == [8, 9, 10]
    assert (prepared.train_rows, prepared.validation_rows) == (8, 3)


@pytest.mark.parametrize("validation_rows", [1, 2, 3, 4, 7, 10])
def test_held_out_rows_are_found_among_small_row_groups(tmp_path: Path, validation_rows: int) -> None:
    train = source(tmp_path, questions(11), DataFormat.PROMPT_ANSWER, row_group_size=3)

    prepared = prepare(spec_for(tmp_path, train, params={"validation_rows": validation_rows}))

    def indices(path: Path) -> list[int]:
        return [row["extra_info"]["index"] for row in pq.read_table(path).to_pylist()]

    assert indices(prepared.train_path) == list(range(11 - validation_rows))
    assert prepared.validation_path is not None
    held_out = pq.read_table(prepared.validation_path).to_pylist()
    assert indices(prepared.validation_path) == list(range(11 - validation_rows, 11))
    assert [row["prompt"][0]["content"] for row in held_out] == [
        f"{n}+1?" for n in range(11 - validation_rows, 11)
    ]


def test_rows_before_the_held_out_ones_are_not_decoded_again(tmp_path: Path, monkeypatch) -> None:
    train = source(tmp_path, questions(11), DataFormat.PROMPT_ANSWER, row_group_size=3)
    read: list[list[int]] = []
    iter_batches = pq.ParquetFile.iter_batches

    def recording(file: pq.ParquetFile, *args, row_groups: list[int], **kwargs):
        read.append(row_groups)
        return iter_batches(file, *args, row_groups=row_groups, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", recording)
    prepare(spec_for(tmp_path, train, params={"validation_rows": 4}))

    assert read == [[0, 1, 2], [2, 3]]


def test_a_bad_row_among_the_held_out_is_named(tmp_path: Path) -> None:
    rows = [*questions(8), {"question": "9+1?", "answer": " "}, *questions(2)]
    train = source(tmp_path, rows, DataFormat.PROMPT_ANSWER, row_group_size=3)

    with pytest.raises(BadData, match="Row 9 of dataset ds_1: 'answer' is empty"):
        prepare(spec_for(tmp_path, train, params={"validation_rows": 4}))


def test_the_files_of_a_version_are_read_as_one(tmp_path: Path) -> None:
    """Chunks that versions share: other orders of columns, and columns without values have no type."""
    rows = questions(6)
    one = source(tmp_path, rows[:2], DataFormat.PROMPT_ANSWER, name="one")
    turned = [{"answer": row["answer"], "question": row["question"]} for row in rows[2:4]]
    two = source(tmp_path, turned, DataFormat.PROMPT_ANSWER, name="two")
    noted = [{"note": None, **row} for row in rows[4:5]]
    three = source(tmp_path, noted, DataFormat.PROMPT_ANSWER, name="three")
    four = source(tmp_path, [{"note": "last", **rows[5]}], DataFormat.PROMPT_ANSWER, name="four")
    paths = [path for each in (one, two, three, four) for path in each.paths]
    train = one.model_copy(update={"paths": paths, "row_count": 6})

    prepared = prepare(spec_for(tmp_path, train, params={"validation_rows": 3}), tmp_path / "out")

    assert (prepared.train_rows, prepared.validation_rows) == (3, 3)
    written = [
        row["extra_info"]
        for path in (prepared.train_path, prepared.validation_path)
        for row in pq.read_table(path).to_pylist()
    ]
    assert [info["question"] for info in written] == [row["question"] for row in rows]
    assert [info["index"] for info in written] == list(range(6))


def test_rows_in_verls_own_form_keep_columns_that_only_some_files_have(tmp_path: Path) -> None:
    def row(number: int, **more) -> dict:
        return {
            "data_source": "own", "prompt": [{"role": "user", "content": f"{number}?"}],
            "reward_model": {"ground_truth": str(number)}, **more,
        }  # fmt: skip

    one = source(tmp_path, [row(1, level=None)], DataFormat.VERL_RL, name="one")
    two = source(tmp_path, [row(2, level=3)], DataFormat.VERL_RL, name="two")
    train = one.model_copy(update={"paths": one.paths + two.paths, "row_count": 2})

    prepared = prepare(spec_for(tmp_path, train), tmp_path / "out")

    assert [each["level"] for each in pq.read_table(prepared.train_path).to_pylist()] == [None, 3]


def test_files_whose_columns_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    one = source(tmp_path, [{"prompt": "1+1?", "answer": "2"}], DataFormat.PROMPT_ANSWER, name="one")
    two = source(tmp_path, [{"prompt": "1+1?", "answer": ["2"]}], DataFormat.PROMPT_ANSWER, name="two")
    train = one.model_copy(update={"paths": one.paths + two.paths, "row_count": 2})

    with pytest.raises(BadData):
        prepare(spec_for(tmp_path, train), tmp_path / "out")


def test_with_a_validation_dataset_nothing_is_held_out(tmp_path: Path) -> None:
    train = source(tmp_path, questions(5), DataFormat.PROMPT_ANSWER)
    validation = source(tmp_path, questions(2), DataFormat.PROMPT_ANSWER, name="validation")

    prepared = prepare(
        spec_for(tmp_path, train, validation_data=validation, params={"validation_rows": 3}), tmp_path / "out"
    )

    assert (prepared.train_rows, prepared.validation_rows) == (5, 2)
    assert prepared.train_path.parent == tmp_path / "out"


def test_a_bad_row_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 2)
    rows = [*questions(4), {"question": "5+1?", "answer": " "}]
    train = source(tmp_path, rows, DataFormat.PROMPT_ANSWER)

    with pytest.raises(BadData, match="Row 5 of dataset ds_1: 'answer' is empty"):
        prepare(spec_for(tmp_path, train))

    assert not (tmp_path / "prepared" / "train.parquet").exists()


@pytest.mark.parametrize(
    ("format_", "form"),
    [
        (DataFormat.PREFERENCE, DataFormat.VERL_RL),
        (DataFormat.TEXT, DataFormat.MESSAGES),
        (DataFormat.VERL_RL, DataFormat.MESSAGES),
    ],
)
def test_a_format_that_does_not_suit_the_recipe_is_refused(
    format_: DataFormat, form: DataFormat, tmp_path: Path
) -> None:
    train = source(tmp_path, questions(2), format_)

    with pytest.raises(BadData, match=format_):
        prepare(spec_for(tmp_path, train, form=form))


def test_more_rows_cannot_be_held_out_than_there_are(tmp_path: Path) -> None:
    train = source(tmp_path, questions(2), DataFormat.PROMPT_ANSWER)

    with pytest.raises(BadData, match="hold out"):
        prepare(spec_for(tmp_path, train, params={"validation_rows": 2}))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    missing = DataSource(
        dataset_id="ds_9",
        paths=[str(tmp_path / "no.parquet")],
        format=DataFormat.MESSAGES,
        sha256="0",
        row_count=1,
    )

    with pytest.raises(BadData, match="ds_9"):
        prepare(spec_for(tmp_path, missing))


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(str.strip)


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_no_text_is_lost_on_the_way(pairs: list[tuple[str, str]], tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("round-trip")
    rows = [{"prompt": prompt, "response": answer} for prompt, answer in pairs]
    train = source(folder, rows, DataFormat.PROMPT_ANSWER)

    supervised = pq.read_table(
        prepare(spec_for(folder, train, form=DataFormat.MESSAGES)).train_path
    ).to_pylist()
    conversations = source(folder, supervised, DataFormat.MESSAGES, name="conversations")
    rl = pq.read_table(prepare(spec_for(folder, conversations)).train_path).to_pylist()

    assert [(row["messages"][0]["content"], row["messages"][1]["content"]) for row in supervised] == pairs
    assert [row["prompt"][0]["content"] for row in rl] == [prompt for prompt, _ in pairs]


@pytest.mark.skipif(not GSM8K.exists(), reason=f"GSM8K is not at {GSM8K} (TRELLIS_BENCHMARK_DIR)")
def test_gsm8k_becomes_rl_data_with_numbers_as_answers(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in GSM8K.read_text(encoding="utf-8").splitlines()]
    train = source(tmp_path, rows, DataFormat.PROMPT_ANSWER)

    prepared = prepare(spec_for(tmp_path, train, params={"validation_rows": 256}))

    assert (prepared.train_rows, prepared.validation_rows) == (7217, 256)
    truths = [row["reward_model"]["ground_truth"] for row in pq.read_table(prepared.train_path).to_pylist()]
    assert truths[0] == "72"
    assert all(truth.replace(",", "").replace("-", "").replace(".", "").isdigit() for truth in truths)
