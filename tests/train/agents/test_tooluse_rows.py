"""Which rows an agent's supervised training learns: by kind, by use, and again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_testing.engine_runs import EngineRun, Rows, compose_job
from trellis_train.agents.tooluse.training.row_selection import REPLAYED_FILE
from trellis_train.data import prepare_alone
from trellis_train.data.prepare import BadData

pytestmark = pytest.mark.training
KINDS = {"tool_selection": 60, "multi_step_planning": 40, "timing_decision": 30, "tool_retrieval": 20}
#: The longer a row, the more it says.
WORDS = " ".join(f"word{number:03}" for number in range(100))
SHARES = {"multi_step_planning": 0.3, "timing_decision": 0.2, "tool_retrieval": 0.15, "tool_selection": 0.35}


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    for kind, count in KINDS.items():
        for number in range(count):
            asked = {"role": "user", "content": f"{name} {kind} {number} {WORDS[: 6 * number]}"}
            turns = [asked, {"role": "assistant", "content": f"answer {number}"}]
            yield {"id": f"{name}-{kind}-{number}", "task_type": kind, "messages": turns}


def prepare(
    folder: Path, job: str, *, counts: dict[str, int] = KINDS, name: str = "a", **params: Any
) -> EngineRun:
    source = folder / f"{job}-{name}.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows_of(name)))
    (folder / "jobs").mkdir(exist_ok=True)
    return compose_job(
        folder / "jobs" / job,
        recipe="agent_sft",
        model="m",
        rows=Rows.from_json_lines(source, DataFormat.MESSAGES),
        params={"validation_rows": 0, "batch_size": 1, **params},
    )


def mix_of(run: EngineRun) -> dict[str, int]:
    kinds: dict[str, int] = json.loads((run.folder / "prepared/mix.json").read_text())["task_types"]
    return kinds


def questions(run: EngineRun) -> list[str]:
    rows = pq.read_table(run.folder / "prepared/train.parquet").to_pylist()
    return [row["messages"][0]["content"] for row in rows]


def test_the_mix_takes_all_that_keeps_the_shares(tmp_path: Path) -> None:
    found = mix_of(prepare(tmp_path, "one"))

    count = sum(found.values())
    assert count >= 130
    assert {kind: number / count for kind, number in found.items()} == pytest.approx(SHARES, abs=0.01)


def test_what_one_kind_lacks_the_others_give_where_a_number_is_asked_for(tmp_path: Path) -> None:
    assert sum(mix_of(prepare(tmp_path, "one", max_samples=150)).values()) == 150


def test_a_coreset_keeps_the_shares(tmp_path: Path) -> None:
    run = prepare(
        tmp_path, "one", use_coreset_selection=True, coreset_target_size=40, coreset_strategy="loss_topk"
    )

    assert mix_of(run) == {
        "multi_step_planning": 12,
        "timing_decision": 8,
        "tool_retrieval": 6,
        "tool_selection": 14,
    }
    hardest = {f"a tool_retrieval {number}" for number in range(14, 20)}
    assert {" ".join(each.split()[:3]) for each in questions(run) if "tool_retrieval" in each} == hardest


def test_only_the_kinds_in_focus_are_learned(tmp_path: Path) -> None:
    run = prepare(tmp_path, "one", focus_tags="timing_decision, tool_retrieval", max_samples=30)

    assert mix_of(run) == {"timing_decision": 17, "tool_retrieval": 13}


def test_rows_that_are_left_out_and_replayed_are_counted(tmp_path: Path) -> None:
    replaying = {"use_online_continual": True, "continual_replay_ratio": 0.5, "continual_buffer": "counted"}
    prepare(tmp_path, "one", max_samples=20, **replaying)

    run = prepare(tmp_path, "two", name="b", max_samples=40, **replaying)

    mix = json.loads((run.folder / "prepared/mix.json").read_text())
    total = mix.pop("dataset_rows")
    assert (mix["rows"], mix["left_out_rows"], mix["replayed_rows"]) == (60, total - 40, 20)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"weight_timing_decision": 0}, "the weights select no task type of the 30 rows in focus"),
        ({"mix_tasks": False}, "none of the 4 rows has one of the selected task types"),
    ],
)
def test_where_no_row_is_left_the_error_has_a_code_and_tells_the_count(
    wrong: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "mix_tasks" in wrong:
        monkeypatch.setitem(globals(), "KINDS", {"tool_selection": 4})

    with pytest.raises(BadData, match=said) as raised:
        prepare(tmp_path, "one", focus_tags="timing_decision", **wrong)

    assert raised.value.code == "no_usable_rows"


def test_without_the_mix_rows_keep_their_order(tmp_path: Path) -> None:
    run = prepare(tmp_path, "one", mix_tasks=False, max_samples=5)

    assert [each.split()[2] for each in questions(run)] == ["0", "1", "2", "3", "4"]


def test_rows_of_an_earlier_job_are_replayed_and_stay_the_same_when_it_resumes(tmp_path: Path) -> None:
    replaying = {"use_online_continual": True, "continual_replay_ratio": 0.25, "continual_buffer": "tools"}

    first = prepare(tmp_path, "one", **replaying)
    second = prepare(tmp_path, "two", name="b", **replaying)
    new = [each for each in questions(second) if each.startswith("b")]
    old = [each for each in questions(second) if each.startswith("a")]

    assert all(each.startswith("a") for each in questions(first))
    assert len(old) == len(new) // 4
    assert set(old) <= set(questions(first))

    buffer = (tmp_path / "jobs/replay/tools.json").read_bytes()
    (second.folder / "prepared/train.parquet").unlink()
    from trellis_train.data.prepare import prepare as prepare_again

    before = questions(first) and [*new, *old]
    prepare_again(second.spec)
    assert questions(second) == before
    assert (tmp_path / "jobs/replay/tools.json").read_bytes() == buffer


def test_rows_that_are_only_counted_are_not_replayed_to_other_jobs(tmp_path: Path) -> None:
    replaying = {"use_online_continual": True, "continual_replay_ratio": 0.5, "continual_buffer": "counted"}
    prepare(tmp_path, "one", max_samples=20, **replaying)
    buffer = tmp_path / "jobs/replay/counted.json"
    before = buffer.read_bytes()
    second = prepare(tmp_path, "two", name="b", max_samples=40, **replaying)
    trained = questions(second)
    # As it was before the second job.
    buffer.write_bytes(before)
    noted = Path(second.spec.checkpoint_dir).parent / REPLAYED_FILE
    noted.unlink()
    spec_file = tmp_path / "spec.json"
    spec_file.write_text(second.spec.model_dump_json())

    assert prepare_alone.main(str(spec_file)) == 0

    assert questions(second) == trained
    assert buffer.read_bytes() == before
    assert not noted.exists()


def test_a_broken_buffer_is_told(tmp_path: Path) -> None:
    (tmp_path / "jobs/replay").mkdir(parents=True)
    (tmp_path / "jobs/replay/default.json").write_text('{"format": 1, "sha256": "x"}\n{"rows"')

    with pytest.raises(BadData, match="truncated or corrupted"):
        prepare(tmp_path, "one", use_online_continual=True)
