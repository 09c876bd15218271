"""Rows as supervised training sees them, against verl's own dataset in the process that trains."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_contracts.token_view import TokenView
from trellis_data.formats.detection import detect
from trellis_data.layout import Layout
from trellis_data.versions.store import Entry, Store
from trellis_train.data.prepare import SCHEMAS
from trellis_train.starter.model import TURN_START, write_model

# Each process imports the tokenizers and trainers of an engine.
pytestmark = pytest.mark.slow

TALK: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is 1 plus 2?"},
            {"role": "assistant", "content": "It is 3. 你好"},
            {"role": "user", "content": "And then?"},
            {"role": "assistant", "content": "4"},
        ]
    },
    {"messages": [{"role": "user", "content": "?"}]},
    {"messages": [{"role": "user", "content": "Say it."}, {"role": "assistant", "content": ""}]},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, 0)
    return folder


class Viewer:
    """The program, which answers one request after the other."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trellis_train.data.token_view"],
            stdin=subprocess.PIPE,  # it leaves when this end closes
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            text=True,
            bufsize=1,
            start_new_session=True,
        )

    def ask(self, folder: Path, model: Path, rows: list[dict[str, Any]], **request: Any) -> int:
        """The status of a request for rows of a version."""
        folder.mkdir(exist_ok=True)
        pq.write_table(table := pa.Table.from_pylist(rows), folder / "in.parquet")
        found = detect(table)
        layout = Layout(found[0].format, found[0].columns) if found else Layout(DataFormat.UNKNOWN)
        store = Store.create(folder / "store")
        version = store.record({"train": [folder / "in.parquet"]}, Entry("rows", "tests", layout))
        task = {"kind": "tokens", "model": "mdl_aaaaaaaaaaaa", "split": "train", **request}
        asked = {"request": task, "store": str(store.root), "version": version.id, "model_dir": str(model)}
        (folder / "request.json").write_text(json.dumps(asked))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{folder}\n")
        return int(self._process.stdout.readline())

    def view(self, folder: Path, model: Path, rows: list[dict[str, Any]], **request: Any) -> TokenView:
        """The answer to such a request."""
        assert self.ask(folder, model, rows, **request) == 0, (folder / "log").read_text()
        return TokenView.model_validate_json((folder / "result.json").read_bytes())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    started = Viewer(tmp_path_factory.mktemp("viewer"))
    yield started
    started.close()


def test_what_is_shaded_is_what_verl_masks(viewer: Viewer, tmp_path: Path, model: Path) -> None:
    from transformers import AutoTokenizer
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    shown = viewer.view(tmp_path / "task", model, TALK, max_length=40)
    pq.write_table(
        pa.Table.from_pylist([TALK[0], TALK[2]], SCHEMAS[DataFormat.MESSAGES]), tmp_path / "train.parquet"
    )
    tokenizer = AutoTokenizer.from_pretrained(model)
    config = {"pad_mode": "no_padding", "max_length": 4096, "truncation": "right"}
    trained = MultiTurnSFTDataset([str(tmp_path / "train.parquet")], tokenizer, config)

    for row, item in ((shown.rows[0], trained[0]), (shown.rows[2], trained[1])):
        learned = tokenizer.decode(item["input_ids"][item["loss_mask"] == 1])
        assert row.token_count == len(item["input_ids"])
        assert "".join(each.text for each in row.segments) == tokenizer.decode(item["input_ids"])
        assert "".join(each.text for each in row.segments if each.is_trained) == learned
        assert sum(each.token_count for each in row.segments) == row.token_count
    assert [(each.role, each.is_trained) for each in shown.rows[0].segments] == [
        ("system", False),
        ("user", False),
        ("assistant", False),
        ("assistant", True),
        ("user", False),
        ("assistant", False),
        ("assistant", True),
    ]
    assert [row.is_truncated for row in shown.rows] == [True, False, False]
    assert shown.rows[0].trained_count == 0
    assert shown.rows[1].problem
    assert shown.rows[1].problem_code


def test_a_turn_of_weight_0_is_read_and_not_learned(viewer: Viewer, tmp_path: Path, model: Path) -> None:
    from transformers import AutoTokenizer
    from trellis_train.data.message_weights import WEIGHED_MESSAGES, weigh
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    plain = TALK[0]["messages"]
    talk = {"messages": [*plain[:2], {**plain[2], "weight": 0}, plain[3], {**plain[4], "weight": 1}]}

    (shown,) = viewer.view(tmp_path / "task", model, [talk]).rows

    said = "".join(each.text for each in shown.segments if each.is_trained)
    assert "4" in said
    assert "It is 3" not in said
    schema = pa.schema([("messages", WEIGHED_MESSAGES)])
    pq.write_table(pa.Table.from_pylist([talk], schema), tmp_path / "train.parquet")
    tokenizer = AutoTokenizer.from_pretrained(model)
    config = {"pad_mode": "no_padding", "max_length": 4096, "truncation": "right"}
    (item,) = weigh(MultiTurnSFTDataset)([str(tmp_path / "train.parquet")], tokenizer, config)
    assert tokenizer.decode(item["input_ids"][item["loss_mask"] == 1]) == said
    assert shown.token_count == len(item["input_ids"])


def test_a_window_of_rows_is_numbered_by_the_split(viewer: Viewer, tmp_path: Path, model: Path) -> None:
    rows = [{"question": f"q{n}", "answer": f"a{n}"} for n in range(9)]

    shown = viewer.view(tmp_path, model, rows, offset=7, limit=5)

    assert [row.row for row in shown.rows] == [7, 8]
    assert shown.rows[0].segments[-1].text.startswith("a7")


def test_every_token_of_a_text_is_learned(viewer: Viewer, tmp_path: Path, model: Path) -> None:
    shown = viewer.view(tmp_path, model, [{"text": "Once upon a time there was a long text."}])

    assert [each.is_trained for each in shown.rows[0].segments] == [True]
    assert shown.rows[0].trained_count == shown.rows[0].token_count > 1


def test_rows_that_are_not_trained_on_are_told(viewer: Viewer, tmp_path: Path, model: Path) -> None:
    assert viewer.ask(tmp_path, model, [{"colour": 1}]) == 65
    assert json.loads((tmp_path / "failure.json").read_text())["code"] == "format_not_trainable"


def test_a_folder_without_tokenizer_is_told(viewer: Viewer, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert viewer.ask(tmp_path / "task", tmp_path / "empty", TALK) == 65
    assert json.loads((tmp_path / "task" / "failure.json").read_text())["code"] == "tokenizer_unreadable"


def test_a_model_whose_template_has_changed_is_read_anew(viewer: Viewer, tmp_path: Path) -> None:
    """Though the tokenizer that was used last is kept."""
    write_model(tmp_path / "model", 0)
    before = viewer.view(tmp_path / "before", tmp_path / "model", TALK)
    template = tmp_path / "model" / "chat_template.jinja"
    assert TURN_START in template.read_text()
    template.write_text(template.read_text().replace(TURN_START, "<|endoftext|>"))

    after = viewer.view(tmp_path / "after", tmp_path / "model", TALK)

    assert before.rows[0].segments[0].text.startswith(TURN_START)
    assert after.rows[0].segments[0].text.startswith("<|endoftext|>")
