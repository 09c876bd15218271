"""The pipelines that we ship, on rows made for them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_data.pipeline.check import stated_layout
from trellis_data.pipeline.document import dump_pipeline, load_pipeline, load_pipeline_file
from trellis_data.pipeline.report import RunReport
from trellis_data.pipeline.runner import Options, run

EXAMPLES = Path(__file__).resolve().parents[3] / "factory" / "trellis_data" / "pipeline" / "examples"
_PLACES = [
    "river",
    "market",
    "harbour",
    "library",
    "station",
    "garden",
    "museum",
    "bridge",
    "castle",
    "school",
]
_THINGS = ["bread", "paper", "music", "timber", "coffee", "letters", "apples", "carpets", "lanterns", "boats"]


def sentence(i: int) -> str:
    place, thing, other = _PLACES[i % 10], _THINGS[i // 10 % 10], _PLACES[i // 100 % 10]
    return (
        f"Near the old {place} people sell {thing} every morning, and number {i * 7919} of them "
        f"walk back to the {other} before the sun sets over hill {i * 104729}."
    )


def chats() -> list[dict[str, Any]]:
    def chat(question: str, answer: str) -> dict[str, Any]:
        turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return {"messages": turns}

    good = [chat(f"Tell me about place {i}.", sentence(i)) for i in range(300)]
    return [
        *good,
        good[5],
        chat("Anything?", ""),
        chat("<p>Who?</p>", f"Write to someone@example.com. {sentence(999)}"),
        chat("Again", "spam and ham " * 200),
    ]


def pairs() -> list[dict[str, Any]]:
    good = [{"prompt": f"Where do they sell things, case {i}?", "answer": sentence(i)} for i in range(100)]
    return [*good, good[3]]


def texts() -> list[dict[str, Any]]:
    good = [{"text": sentence(i)} for i in range(200)]
    german = "Am Morgen verkaufen die Leute am Fluss frisches Brot und gehen dann wieder nach Hause zurück."
    return [*good, {"text": german}, {"text": "short"}, good[7]]


def run_example(name: str, rows: list[dict[str, Any]], folder: Path) -> RunReport:
    pipeline = load_pipeline_file(EXAMPLES / f"{name}.yaml")
    table = pa.Table.from_pylist(rows)
    path = folder / "rows.parquet"
    pq.write_table(table, path, row_group_size=64)
    layout = stated_layout(pipeline, table.schema)
    assert layout is not None
    return run(
        pipeline, [path], folder / "run", layout=layout, options=Options(executor="inline", unit_rows=100)
    )


def reasons(report: RunReport) -> dict[str, int]:
    return {step.operator: step.dropped for step in report.steps if step.dropped}


def test_conversations_are_cleaned_and_split(tmp_path: Path) -> None:
    report = run_example("clean-chat", chats(), tmp_path)

    assert reasons(report) == {"empty_answers": 1, "repetition": 1, "minhash_duplicates": 1}
    assert set(report.outputs) == {"train", "validation", "test"}
    assert report.rows_out == 301
    kept = [
        row["messages"][1]["content"]
        for files in report.files(tmp_path / "run").values()
        for path in files
        for row in pq.read_table(path).to_pylist()
    ]
    assert not any("someone@example.com" in text for text in kept)


@pytest.mark.slow
def test_the_best_pairs_stay(tmp_path: Path) -> None:
    report = run_example("score-and-filter", pairs(), tmp_path)

    assert reasons(report) == {"exact_duplicates": 1, "filter_by_score": 50}
    assert "quality" in pq.read_schema(report.files(tmp_path / "run")["train"][0]).names


def test_documents_of_other_languages_and_copies_go(tmp_path: Path) -> None:
    report = run_example("pretraining-text", texts(), tmp_path)

    assert reasons(report) == {"language": 1, "length": 1, "simhash_duplicates": 1}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_read_and_written_back_and_run_here(path: Path) -> None:
    pipeline = load_pipeline_file(path)

    assert load_pipeline(dump_pipeline(pipeline)) == pipeline
    assert f'"{path.stem}"' in Path(__file__).read_text()
