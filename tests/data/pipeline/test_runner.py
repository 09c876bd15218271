"""Runs of pipelines: what comes out, what is told of it, and that nothing decides on it but the rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.operator import Context
from trellis_data.pipeline.problem import PipelineProblem, RunCancelled
from trellis_data.pipeline.report import Progress, RunReport
from trellis_data.pipeline.runner import Options, run

pytestmark = pytest.mark.usefixtures("small_operators")
TEXT = Layout(DataFormat.TEXT, {"text": "text"})
INLINE = Options(executor="inline", batch_rows=16, unit_rows=100)
Shards = Callable[..., list[Path]]


def rows(count: int = 600) -> list[dict[str, Any]]:
    """Every third text is short, and texts repeat after 200 rows."""
    return [{"id": i, "text": f"row {i % 200}" + " with words" * (i % 200 % 3)} for i in range(count)]


def pipeline(*steps: str | dict[str, Any]) -> Pipeline:
    made = [{"operator": step} if isinstance(step, str) else step for step in steps]
    return Pipeline.model_validate({"name": "a pipeline", "seed": 7, "steps": made})


ALL_KINDS = (
    {"operator": "test_drop_short", "name": "太短 / short", "params": {"shortest": 8}},
    "test_shout",
    "test_drop_seen",
    "test_length",
    "test_split",
)


def out(report: RunReport, work: Path, split: str = "train") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.concat_tables(
        [pq.read_table(path) for path in report.files(work)[split]]
    ).to_pylist()
    return found


def bytes_of(work: Path) -> dict[str, bytes]:
    """Everything that a run leaves but for times and memory."""
    found = {
        str(path.relative_to(work)): path.read_bytes()
        for folder in ("output", "dropped", "reduced")
        for path in sorted((work / folder).rglob("*"))
        if path.is_file() and path.name != "trellis-seconds.json"
    }
    report = RunReport.model_validate_json((work / "report.json").read_text())
    report.seconds, report.peak_memory_bytes = 0, 0
    for step in report.steps:
        step.seconds = 0
    return found | {"report": report.model_dump_json().encode()}


def test_rows_pass_all_steps_and_part_into_splits(shards: Shards, tmp_path: Path) -> None:
    work = tmp_path / "work"

    report = run(pipeline(*ALL_KINDS), shards(rows()), work, layout=TEXT, options=INLINE)

    train, test = out(report, work), out(report, work, "test")
    expected = {
        i: f"ROW {i % 200}" + " WITH WORDS" * (i % 200 % 3)
        for i in range(600)
        if len(f"row {i % 200}" + " with words" * (i % 200 % 3)) >= 8
    }
    first: dict[str, int] = {}
    for i, text in expected.items():
        first.setdefault(text, i)
    assert [row["id"] for row in train] == [i for i in first.values() if i % 10]
    assert [row["id"] for row in test] == [i for i in first.values() if i % 10 == 0]
    assert all(row["text"] == expected[row["id"]] and row["length"] == len(row["text"]) for row in train)
    assert set(train[0]) == {"id", "text", "length"}
    assert report.rows_out == len(first) == sum(each.rows for each in report.outputs.values())


def test_the_report_counts_every_row_of_every_step(shards: Shards, tmp_path: Path) -> None:
    report = run(pipeline(*ALL_KINDS), shards(rows()), tmp_path / "w", layout=TEXT, options=INLINE)

    short, shout, seen, *_ = report.steps
    assert (short.rows_in, short.kept, short.dropped) == (600, short.kept, 600 - short.kept)
    assert short.reasons == {"too_short": short.dropped}
    assert shout.changed == shout.rows_in == short.kept
    assert seen.findings["distinct"] == seen.kept
    assert [bar.rows for bar in report.funnel] == [600, short.kept, short.kept, *[seen.kept] * 3]
    assert shout.counts["letters"] > 0
    assert sum(shout.findings["lengths"]["counts"]) == shout.rows_in


def test_every_dropped_row_is_kept_with_its_reason_and_place(shards: Shards, tmp_path: Path) -> None:
    work = tmp_path / "work"

    report = run(pipeline(*ALL_KINDS), shards(rows()), work, layout=TEXT, options=INLINE)

    lost = [row for name in report.dropped.values() for row in pq.read_table(work / name).to_pylist()]
    kept = [row["id"] for split in report.outputs for row in out(report, work, split)]
    assert sorted(kept + [row["id"] for row in lost]) == list(range(600))
    assert all(row["trellis_position"] == row["id"] for row in lost)
    assert {row["trellis_reason"] for row in lost} == {"too_short", "seen_before"}
    assert set(report.dropped) == {"太短 / short", "test_drop_seen"}


def test_kept_dropped_rows_can_be_bounded(shards: Shards, tmp_path: Path) -> None:
    work = tmp_path / "work"
    options = Options(executor="inline", batch_rows=16, unit_rows=100, dropped=4)

    report = run(pipeline("test_drop_seen"), shards(rows()), work, layout=TEXT, options=options)

    assert report.steps[0].dropped > 4
    assert pq.read_table(work / report.dropped["test_drop_seen"]).num_rows == 4


def test_examples_show_rows_from_everywhere_before_and_after(shards: Shards, tmp_path: Path) -> None:
    many = rows(3000)

    report = run(pipeline("test_shout"), shards(many), tmp_path / "w", layout=TEXT, options=INLINE)

    examples = report.steps[0].examples
    assert len(examples) == 5
    assert max(each.position for each in examples) > 1000
    for each in examples:
        assert each.before == many[each.position]
        assert each.after == {**each.before, "text": each.before["text"].upper()}


def test_examples_are_cut_to_size(shards: Shards, tmp_path: Path) -> None:
    long = [{"id": 1, "text": "a" * 100_000}]

    report = run(pipeline("test_shout"), shards(long, 1), tmp_path / "w", layout=TEXT, options=INLINE)

    assert len(report.steps[0].examples[0].before["text"]) < 2100


def test_processes_give_the_same_bytes_as_one_after_the_other(shards: Shards, tmp_path: Path) -> None:
    files = shards(rows())
    inline, processes = tmp_path / "a", tmp_path / "b"

    run(pipeline(*ALL_KINDS), files, inline, layout=TEXT, options=INLINE)
    run(
        pipeline(*ALL_KINDS),
        files,
        processes,
        layout=TEXT,
        options=Options(processes=2, batch_rows=16, unit_rows=100),
    )

    assert bytes_of(inline) == bytes_of(processes)


def test_a_row_that_becomes_two_keeps_its_place(shards: Shards, tmp_path: Path) -> None:
    work = tmp_path / "w"

    report = run(pipeline("test_twice", "test_drop_seen"), shards(rows(9)), work, layout=TEXT, options=INLINE)

    lost = pq.read_table(work / report.dropped["test_drop_seen"]).to_pylist()
    assert report.rows_out == 9
    assert [row["trellis_position"] for row in lost] == list(range(9))


def test_nothing_left_is_an_output_with_columns(shards: Shards, tmp_path: Path) -> None:
    work = tmp_path / "w"
    nothing = {"operator": "test_drop_short", "params": {"shortest": 1000}}

    report = run(
        pipeline(nothing, "test_drop_seen", "test_length"), shards(rows()), work, layout=TEXT, options=INLINE
    )

    assert (report.rows_out, report.outputs["train"].rows) == (0, 0)
    assert pq.read_schema(report.files(work)["train"][0]).names == ["id", "text", "length"]


def test_files_without_rows_do_no_harm(shards: Shards, tmp_path: Path) -> None:
    work = tmp_path / "w"
    table = pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})

    report = run(pipeline(*ALL_KINDS), shards(table), work, layout=TEXT, options=INLINE)

    assert (report.rows_in, report.rows_out) == (0, 0)


def test_files_whose_columns_differ_by_nulls_fit_together(tmp_path: Path) -> None:
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"id": [1], "text": ["a"], "more": pa.nulls(1)}), one)
    pq.write_table(pa.table({"id": [2], "text": ["b"], "more": [2.5]}), two)

    report = run(pipeline("test_shout"), [one, two], tmp_path / "w", layout=TEXT, options=INLINE)

    assert [row["more"] for row in out(report, tmp_path / "w")] == [None, 2.5]


def test_files_whose_columns_contradict_are_named(tmp_path: Path) -> None:
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"text": ["a"]}), one)
    pq.write_table(pa.table({"text": [[1]]}), two)

    with pytest.raises(PipelineProblem, match=r"2\.parquet") as caught:
        run(pipeline("test_shout"), [one, two], tmp_path / "w", layout=TEXT, options=INLINE)

    assert caught.value.code == "schemas_differ"


def test_a_wrong_pipeline_is_refused_before_anything_is_written(shards: Shards, tmp_path: Path) -> None:
    with pytest.raises(PipelineProblem, match="test_shout"):
        run(pipeline("test_shoot"), shards(rows()), tmp_path / "w", layout=TEXT, options=INLINE)

    assert not (tmp_path / "w").exists()


def test_what_an_operator_raises_is_told_with_step_and_rows(shards: Shards, tmp_path: Path) -> None:
    bad = {"operator": "test_deadly", "name": "unlucky", "params": {"how": "raise"}}

    with pytest.raises(PipelineProblem, match="seven is unlucky") as caught:
        run(pipeline(bad), shards(rows()), tmp_path / "w", layout=TEXT, options=Options(processes=2))

    assert (caught.value.step, caught.value.code) == ("unlucky", "step_failed")
    assert "part-0.parquet" in str(caught.value)


def test_unfit_split_names_are_refused(shards: Shards, tmp_path: Path) -> None:
    bad = {"operator": "test_split", "params": {"name": "../outside"}}

    with pytest.raises(PipelineProblem, match="outside") as caught:
        run(pipeline(bad), shards(rows()), tmp_path / "w", layout=TEXT, options=INLINE)

    assert caught.value.code == "split_unfit"


def test_a_finished_run_is_not_done_again(shards: Shards, tmp_path: Path) -> None:
    files, work = shards(rows()), tmp_path / "w"
    first = run(pipeline(*ALL_KINDS), files, work, layout=TEXT, options=INLINE)
    told: list[Progress] = []

    again = run(pipeline(*ALL_KINDS), files, work, layout=TEXT, options=INLINE, on_progress=told.append)

    assert again == first
    assert told == []


def test_a_folder_of_another_run_is_refused_or_begun_anew(shards: Shards, tmp_path: Path) -> None:
    files, work = shards(rows()), tmp_path / "w"
    run(pipeline("test_shout"), files, work, layout=TEXT, options=INLINE)

    with pytest.raises(PipelineProblem, match="other pipeline"):
        run(pipeline("test_length"), files, work, layout=TEXT, options=INLINE)
    fresh = Options(executor="inline", batch_rows=16, unit_rows=100, fresh=True)
    report = run(pipeline("test_length"), files, work, layout=TEXT, options=fresh)

    assert report.steps[0].operator == "test_length"


def test_a_resource_that_was_edited_makes_another_run(shards: Shards, tmp_path: Path) -> None:
    files, work, words = shards(rows()), tmp_path / "w", tmp_path / "words.txt"
    words.write_text("one")
    context = Context(resources={"words": words})
    run(pipeline("test_shout"), files, work, layout=TEXT, options=INLINE, context=context)
    run(pipeline("test_shout"), files, work, layout=TEXT, options=INLINE, context=context)

    words.write_text("another")

    with pytest.raises(PipelineProblem, match="other resources"):
        run(pipeline("test_shout"), files, work, layout=TEXT, options=INLINE, context=context)


def test_progress_tells_rows_and_shards_of_each_phase(shards: Shards, tmp_path: Path) -> None:
    told: list[Progress] = []

    run(
        pipeline(*ALL_KINDS),
        shards(rows()),
        tmp_path / "w",
        layout=TEXT,
        options=INLINE,
        on_progress=told.append,
    )

    assert [each.phase for each in told if each.shards_done == each.shards] == [
        "apply",
        "scan",
        "reduce",
        "apply",
    ]
    assert told[-1].steps == ("test_drop_seen", "test_length", "test_split")
    assert (told[-1].rows_done, told[-1].stage, told[-1].stages) == (told[-1].rows, 2, 2)
    assert told[-1].rows_per_s > 0


@pytest.mark.parametrize("executor", ["inline", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_run_that_is_asked_to_end_goes_on_later(shards: Shards, tmp_path: Path, executor: Any) -> None:
    files, work, whole = shards(rows()), tmp_path / "w", tmp_path / "whole"
    steps = ({"operator": "test_slow", "params": {"seconds": 0.02}}, *ALL_KINDS)
    options = Options(executor=executor, processes=2, batch_rows=16, unit_rows=100)
    told: list[Progress] = []

    with pytest.raises(RunCancelled):
        run(
            pipeline(*steps), files, work, layout=TEXT, options=options,
            on_progress=told.append, should_stop=lambda: any(each.shards_done for each in told),
        )  # fmt: skip
    kept = len(list(work.glob("stages/00/units/*/report.json")))
    run(pipeline(*steps), files, work, layout=TEXT, options=options)
    run(pipeline(*steps), files, whole, layout=TEXT, options=options)

    assert kept >= 1
    assert bytes_of(work) == bytes_of(whole)
    assert not list(work.rglob("*unfinished*"))
