"""The rows and probes of a dry run: what rewards are shown is what training would show them."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.dry_run import Probe
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import DataSource
from trellis_train.rewards.probes import BadDryRun, draw_rows, make_probes


def source_of(folder: Path, data_format: DataFormat, rows: list[dict[str, Any]]) -> DataSource:
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return DataSource(
        dataset_id="dst_x", paths=[str(path)], format=data_format, sha256="0" * 64, row_count=len(rows)
    )


def test_columns_that_json_cannot_hold_are_left_out_or_become_text(tmp_path: Path) -> None:
    row = {
        "data_source": "own",
        "prompt": [{"role": "user", "content": "2+2?"}],
        "reward_model": {"ground_truth": "4"},
        "extra_info": {"level": 3, "made": datetime(2026, 1, 1), "of": {"day": datetime(2026, 1, 2)}},
    }

    (drawn,) = draw_rows(source_of(tmp_path, DataFormat.VERL_RL, [row]), 1, seed=0)

    shown = json.loads(json.dumps(drawn.row))
    assert shown == {"data_source": "own", "level": 3, "of": {"day": "2026-01-02 00:00:00"}}


def test_probes_are_made_of_each_row(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n}+1?", "answer": f"so\n#### {n + 1}"} for n in range(3)]

    drawn = draw_rows(source_of(tmp_path, DataFormat.PROMPT_ANSWER, rows), 256, seed=0)
    probes = make_probes(drawn, [])

    responses = {probe: [sample.response for _, sample in samples] for probe, samples in probes.items()}
    assert responses[Probe.GOLD] == [row["answer"] for row in rows]
    assert responses[Probe.ANSWER] == ["1", "2", "3"]
    assert responses[Probe.WRONG] == [rows[n]["answer"] for n in (1, 2, 0)]
    assert Probe.ROLLOUTS not in probes


def test_halves_repetitions_and_bare_formats_are_made_of_the_written_solution(tmp_path: Path) -> None:
    rows = [{"prompt": "1+1?", "answer": "one\n#### 2"}, {"prompt": "2+3?", "answer": "5"}]

    drawn = draw_rows(source_of(tmp_path, DataFormat.PROMPT_ANSWER, rows), 2, seed=0)
    probes = make_probes(drawn, [])

    responses = {probe: [sample.response for _, sample in samples] for probe, samples in probes.items()}
    assert responses[Probe.TRUNCATED] == ["one\n#", ""]
    assert responses[Probe.REPEATED] == ["one\n#### 2\none\n#### 2\none\n#### 2", "5\n5\n5"]
    assert responses[Probe.EMPTY] == ["", ""]
    (thought,) = set(responses[Probe.FORMAT_ONLY])
    assert thought.startswith("<think>")
    assert thought.endswith("</think>")
    assert not any(character.isdigit() for character in thought)
    for samples in probes.values():
        assert [(number, sample.prompt, sample.answer) for number, sample in samples] == [
            (0, "1+1?", "2"),
            (1, "2+3?", "5"),
        ]


def test_a_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    rows = [{"prompt": "1+1?", "answer": "2"}, {"prompt": " ", "answer": "3"}]

    with pytest.raises(BadDryRun, match="Row 2"):
        draw_rows(source_of(tmp_path, DataFormat.PROMPT_ANSWER, rows), 2, seed=0)


def test_rows_are_drawn_from_all_files_of_a_version(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n}+1?", "answer": str(n + 1)} for n in range(6)]
    paths = []
    for number in range(3):
        path = tmp_path / f"chunk-{number}.parquet"
        table = pa.Table.from_pylist(rows[number * 2 : number * 2 + 2])
        pq.write_table(table.select(table.column_names[:: 1 if number else -1]), path)
        paths.append(str(path))
    source = DataSource(
        dataset_id="dst_x", paths=paths, format=DataFormat.PROMPT_ANSWER, sha256="0" * 64, row_count=6
    )

    drawn = draw_rows(source, 4, seed=1)

    assert len(drawn) == 4
    assert all(row.answer == str(row.number + 1) for row in drawn)
    assert len({row.number // 2 for row in drawn}) > 1
