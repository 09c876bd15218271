"""Preference pairs from sampled responses: the best against the worst, never too close (B8)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_contracts.hashing import hash_file
from trellis_testing.model_folders import write_model_folder
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.tooluse.pairs.__main__ import main
from trellis_train.agents.tooluse.pairs.making import MIN_MARGIN, make_pairs
from trellis_train.agents.tooluse.sampling import Sampling
from trellis_train.agents.tooluse.scoring.reward import score
from trellis_train.agents.tooluse.scoring.truth import GroundTruth, Step
from trellis_train.agents.tooluse.tasks import Task

TRUTH = GroundTruth(steps=[Step(name="find"), Step(name="book")], available_tools=["find", "book", "pay"])
FIND, BOOK, PAY = (render_tool_call(name, {}) for name in ("find", "book", "pay"))


def task(number: int = 0) -> Task:
    return Task(f"task-{number}", [{"role": "user", "content": f"request {number}"}], TRUTH)


@given(
    st.lists(
        st.lists(st.lists(st.sampled_from([FIND, BOOK, PAY, "text", "<tool_call>"]), max_size=4), min_size=4),
        max_size=6,
    )
)
def test_every_pair_has_at_least_the_margin_and_scores_that_recompute(drawn: list[list[list[str]]]) -> None:
    responses = [["".join(parts) for parts in texts] for texts in drawn]
    tasks = [task(number) for number in range(len(responses))]

    report = make_pairs(tasks, responses)

    assert report.prompts == len(report.pairs) + report.same + report.close
    for pair in report.pairs:
        texts = [text.strip() for text in responses[int(pair.sample_id.removeprefix("task-"))]]
        scores = [score(text, TRUTH).signed for text in texts]
        assert pair.margin >= MIN_MARGIN
        assert pair.margin == pytest.approx(max(scores) - min(scores))
        assert score(pair.chosen, TRUTH).signed == pytest.approx(pair.chosen_score) == max(scores)
        assert score(pair.rejected, TRUTH).signed == pytest.approx(pair.rejected_score)
        assert pair.chosen != pair.rejected


def test_the_best_of_the_samples_stands_against_the_worst() -> None:
    report = make_pairs([task()], [[FIND, FIND + BOOK, PAY, FIND + BOOK]])

    (pair,) = report.pairs
    assert (pair.chosen, pair.rejected) == (FIND + BOOK, PAY)
    assert set(pair.as_row()) == {
        "prompt", "chosen", "rejected", "chosen_score", "rejected_score", "margin", "sample_id",
    }  # fmt: skip


def test_responses_that_differ_in_their_arguments_make_a_pair() -> None:
    truth = GroundTruth(steps=[Step(name="find", arguments={"to": "Oslo"})], available_tools=["find"])
    oslo, paris = (render_tool_call("find", {"to": city}) for city in ("Oslo", "Paris"))

    (pair,) = make_pairs([Task("t", [], truth)], [[paris, oslo]]).pairs

    assert (pair.chosen, pair.rejected) == (oslo, paris)


def test_equal_texts_and_close_scores_make_no_pair() -> None:
    report = make_pairs([task(0), task(1)], [[FIND, FIND, f" {FIND}", FIND], ["well", "good", "fine", "yes"]])

    assert (report.pairs, report.same, report.close) == ([], 1, 1)


def test_the_command_samples_four_responses_and_writes_rows_to_train_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = tmp_path / "rows.jsonl", tmp_path / "pairs" / "pairs.jsonl"
    rows = [
        {"prompt": task(number).prompt, "reward_model": {"ground_truth": TRUTH.to_text()}}
        for number in range(3)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked: list[Sampling] = []

    def sampler(tasks: Sequence[Task], sampling: Sampling) -> list[list[str]]:
        asked.append(sampling)
        return [[FIND + BOOK, FIND, PAY, ""], [FIND] * 4, [BOOK + FIND, PAY, PAY, PAY]]

    model = write_model_folder(tmp_path / "model")
    exit_code = main(["--model", str(model), "--data", str(data), "--output", str(output)], sampler)

    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    written = [json.loads(line) for line in output.read_text().splitlines()]
    assert exit_code == 0
    assert (asked[0].samples, asked[0].temperature) == (4, 1.0)
    assert (summary["prompts"], summary["pairs"], summary["same"]) == (3, 2, 1)
    assert [row["chosen"][0]["content"] for row in written] == [FIND + BOOK, BOOK + FIND]
    assert all(row["margin"] >= MIN_MARGIN for row in written)
    record = json.loads((tmp_path / "pairs" / "pairs.provenance.json").read_text())
    assert summary["provenance"] == str(tmp_path / "pairs" / "pairs.provenance.json")
    assert record["model"] == {
        "path": str(model),
        "sha256": {"model.safetensors": hash_file(model / "model.safetensors")},
    }
    assert record["prompts"] == {"path": str(data), "sha256": hash_file(data)}
    assert (record["sampling"]["samples"], record["min_margin"]) == (4, MIN_MARGIN)
    assert (record["pairs"]["sha256"], record["pairs"]["pairs"]) == (hash_file(output), 2)
    assert record["reward"]["weights"]["tool_f1"] == 0.25


@pytest.mark.parametrize("option", [["--samples", "1"], ["--min-margin", "0"]])
def test_settings_that_make_no_pairs_are_refused(tmp_path: Path, option: list[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(["--model", "m", "--data", "d", "--output", str(tmp_path / "o"), *option])

    assert refusal.value.code == 2
