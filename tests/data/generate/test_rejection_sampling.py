"""Several answers to each prompt, the good ones kept: what is asked, what it costs, what is written."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_data.generate.checks import last_number
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem
from trellis_data.pipeline.problem import PipelineProblem, RunCancelled
from trellis_data.scoring.difficulty import Difficulty, DifficultyParams
from trellis_data.scoring.scorer import Pair, Verdict
from trellis_testing.chat_endpoint import ChatEndpoint

NUMERIC = {"kind": "rejection-sampling", "samples": 3, "check": {"kind": "numeric"}}
#: Per call, by the stand-in's count of 100 and 10 tokens and the prices of the settings.
COST = 120 / 1_000_000


def test_each_prompt_keeps_one_right_answer_with_its_pass_rate_and_origin(
    endpoint: ChatEndpoint, settings: Any, run: Any, rows: Any
) -> None:
    report = run(settings(NUMERIC, system="Be brief.", sampling={"temperature": 0.5}))

    made = rows()
    assert (report.rows, report.seeds, report.questions, report.calls) == (20, 20, 60, 60)
    assert report.cost == pytest.approx(60 * COST)
    assert (report.input_tokens, report.output_tokens, report.stopped) == (6000, 600, None)
    assert report.dropped == {"not_the_best": 40}
    assert made[3]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 3 plus 9?"},
        {"role": "assistant", "content": "It is 12."},
    ]
    assert {row["pass_rate"] for row in made} == {1.0}
    for position, row in enumerate(made):
        origin = row["generation"]
        assert origin.pop("seed") in {request["seed"] for request in endpoint.requests}
        assert origin == {
            "model": "writer",
            "host": endpoint.url.removeprefix("http://").removesuffix("/v1"),
            "method": "rejection-sampling",
            "template_hash": report.template_hash,
            "seed_rows": [position],
            "sample": 0,
            "temperature": 0.5,
            "top_p": 1.0,
        }


def test_pass_rates_become_difficulties(
    endpoint: ChatEndpoint, settings: Any, run: Any, tmp_path: Path
) -> None:
    right = iter(range(10_000))
    endpoint.reply_to = lambda question: (200, "12" if "3 plus 9" in question and next(right) % 4 else "-1")
    run(settings({**NUMERIC, "samples": 4, "keep": "all"}))
    table = pq.read_table(tmp_path / "out" / "output" / "train")

    operator = Difficulty(DifficultyParams(), Context())
    outcome = operator.apply(Batch(table, Layout(DataFormat.MESSAGES, {"messages": "messages"})))

    assert table["pass_rate"].to_pylist() == [0.75]
    assert outcome.table["difficulty"].to_pylist() == [0.25]


def test_every_answer_that_is_no_row_is_told_with_its_reason(
    endpoint: ChatEndpoint, settings: Any, run: Any, tmp_path: Path
) -> None:
    endpoint.reply_to = lambda question: (200, {"3": "", "4": "wrong: 5"}.get(question.split()[2], "0"))

    report = run(settings({**NUMERIC, "keep": "all"}))

    told = (tmp_path / "out/output/dropped.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in told]
    assert report.dropped == {"below_threshold": 54, "duplicate": 2, "empty_answer": 3}
    assert {line["reason"] for line in lines if line["seed_rows"] == [4]} == {"below_threshold"}
    assert report.rows + len(lines) == 60


def test_a_judge_chooses_the_best(endpoint: ChatEndpoint, settings: Any, run: Any, rows: Any) -> None:
    numbers = iter(range(10_000))
    endpoint.reply_to = lambda _: (200, "x" * (next(numbers) % 7 + 1))

    class Longest:
        def score(self, pairs: list[Pair]) -> list[Verdict]:
            return [Verdict(len(pair.answer) / 10) for pair in pairs]

    method = {**NUMERIC, "samples": 7, "check": {"kind": "judge", "name": "long"}, "threshold": 0.5}
    run(settings(method, concurrency=1), context=Context(scorers={"long": Longest()}))

    assert [row["reward"] for row in rows()] == pytest.approx([0.7] * 20)
    assert [row["pass_rate"] for row in rows()] == pytest.approx([3 / 7] * 20)


def test_a_judge_that_is_not_there_is_told_before_anything_is_paid(
    endpoint: ChatEndpoint, settings: Any, run: Any
) -> None:
    with pytest.raises(OperatorProblem) as caught:
        run(settings({**NUMERIC, "check": {"kind": "judge", "name": "nobody"}}))

    assert caught.value.code == "judge_unknown"
    assert endpoint.requests == []


def test_a_judge_without_money_ends_the_run(endpoint: ChatEndpoint, settings: Any, run: Any) -> None:
    class Poor:
        left = 10

        def score(self, pairs: list[Pair]) -> list[Verdict]:
            scored = pairs[: self.left]
            self.left -= len(scored)
            return [Verdict(1.0)] * len(scored) + [Verdict(None, "over_budget")] * (len(pairs) - len(scored))

    method = {**NUMERIC, "check": {"kind": "judge", "name": "poor"}, "keep": "best"}
    report = run(settings(method, concurrency=3), context=Context(scorers={"poor": Poor()}))

    assert (report.stopped, report.rows) == ("cost_bound", 4)
    assert report.dropped["over_budget"] == 2
    assert report.dropped["not_asked"] == 20 - len(endpoint.requests) // 3


def test_an_endpoint_that_does_not_count_costs_the_most_that_it_may(
    endpoint: ChatEndpoint, settings: Any, run: Any
) -> None:
    endpoint.usage = None

    report = run(settings(NUMERIC, max_cost=0.02))

    assert report.stopped == "cost_bound"
    assert report.cost <= 0.02
    assert len(endpoint.requests) == 0.02 // ((21 + 128 + 2 * 1024) / 1_000_000)


def test_prompts_without_a_reference_are_not_asked(
    endpoint: ChatEndpoint, settings: Any, run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "some.parquet"
    columns = {"question": ["1 plus 1?", "2 plus 2?", " ", "3 plus 3?"], "answer": ["2", None, "4", "six"]}
    pq.write_table(pa.table(columns), path)

    report = run(settings(NUMERIC), seeds=path)

    assert len(endpoint.requests) == 3
    assert (report.rows, report.seeds) == (1, 4)
    assert report.dropped == {"no_prompt": 1, "no_reference": 2, "not_the_best": 2}


def test_a_conversation_is_asked_up_to_its_last_answer(
    endpoint: ChatEndpoint, settings: Any, run: Any, rows: Any, tmp_path: Path
) -> None:
    turns = [("user", "Hi"), ("assistant", "Hello"), ("user", "4 plus 4?"), ("assistant", "8")]
    path = tmp_path / "chats.parquet"
    chat = [{"role": role, "content": text} for role, text in turns]
    pq.write_table(pa.Table.from_pylist([{"messages": chat}]), path)
    endpoint.reply_to = lambda _: (200, "8")
    exact = {**NUMERIC, "check": {"kind": "exact"}}

    run(settings(exact), seeds=path, layout=Layout(DataFormat.MESSAGES, {"messages": "messages"}))

    assert endpoint.requests[0]["messages"] == chat[:3]
    assert rows()[0]["messages"] == chat


@pytest.mark.parametrize("concurrency", [1, 16])
def test_the_cost_bound_holds_and_a_higher_one_goes_on(
    endpoint: ChatEndpoint, settings: Any, run: Any, rows: Any, concurrency: int
) -> None:
    dear = {"input_price": 1_000.0, "output_price": 1_000.0}
    options = {"endpoint": dear, "sampling": {"max_tokens": 32}, "concurrency": concurrency}

    first = run(settings(NUMERIC, max_cost=3.0, **options))
    asked = len(endpoint.requests)
    some = rows()
    second = run(settings(NUMERIC, max_cost=100.0, **options))

    # A call costs 0.11 and may cost 0.18 at most.
    assert first.stopped == "cost_bound"
    assert 2.75 < first.cost <= 3.0
    assert first.cost == pytest.approx(0.11 * asked)
    assert first.dropped["over_budget"] > 0
    assert (second.stopped, second.calls, second.rows) == (None, 60 - asked, 20)
    assert len(endpoint.requests) == 60
    assert 0 < len(some) < 20
    assert all(row in rows() for row in some)


def test_an_endpoint_that_breaks_off_is_counted_as_if_it_had_answered(
    endpoint: ChatEndpoint, settings: Any, run: Any
) -> None:
    endpoint.delay_s = 1.0
    #: What a call may cost: 17 bytes and the role, room for a template, the longest reply.
    most = (len("user" + "What is 0 plus 0?") + 128 + 2 * 1024) / 1_000_000

    report = run(settings(NUMERIC, max_cost=2.5 * most, retries=0, endpoint={"timeout_s": 0.2}))

    assert (report.stopped, report.rows, len(endpoint.requests)) == ("cost_bound", 0, 2)
    assert report.cost == pytest.approx(2 * most)
    assert report.problems["unreachable"] == 2


def test_the_same_replies_make_the_same_rows_whatever_the_concurrency(
    settings: Any, run: Any, tmp_path: Path
) -> None:
    run(settings(NUMERIC, concurrency=1))
    first = pq.read_table(tmp_path / "out/output/train")
    run(settings(NUMERIC, concurrency=13), fresh=True)

    assert pq.read_table(tmp_path / "out/output/train") == first


def test_what_is_busy_is_tried_again_and_what_is_done_costs_nothing(
    endpoint: ChatEndpoint, settings: Any, run: Any
) -> None:
    endpoint.answers = [(429, "busy"), (503, "busy")]

    first = run(settings(NUMERIC))
    again = run(settings(NUMERIC, max_cost=2.0))
    anew = run(settings(NUMERIC), fresh=True)

    assert len(endpoint.requests) == 62
    assert first == again
    assert (anew.calls, anew.rows, anew.cost) == (0, 20, first.cost)


def test_a_broken_endpoint_ends_the_run_and_the_next_one_goes_on(
    endpoint: ChatEndpoint, settings: Any, run: Any, tmp_path: Path
) -> None:
    answer = endpoint.reply_to
    endpoint.reply_to = lambda text: answer(text) if len(endpoint.requests) <= 12 else (500, "broken")
    options = {"concurrency": 3, "retries": 0}

    with pytest.raises(OperatorProblem) as caught:
        run(settings(NUMERIC, **options))
    had_rows = (tmp_path / "out" / "output").exists()
    endpoint.reply_to = answer
    report = run(settings(NUMERIC, **options))

    assert (caught.value.code, had_rows) == ("generator_unreachable", False)
    assert (report.calls, report.questions, report.rows) == (48, 60, 20)


def test_a_refusal_ends_the_run_and_a_refused_call_does_not(
    endpoint: ChatEndpoint, settings: Any, run: Any
) -> None:
    answer = endpoint.reply_to
    endpoint.reply_to = lambda text: (400, "too long") if " 3 plus" in text else answer(text)
    report = run(settings(NUMERIC))
    endpoint.reply_to = lambda _: (401, "no")

    with pytest.raises(OperatorProblem) as caught:
        run(settings(NUMERIC, seed=8), fresh=True)

    assert (report.rows, report.problems) == (19, {"call_refused": 3})
    assert caught.value.code == "generator_refuses"


def test_a_cancelled_run_keeps_what_it_paid_for(endpoint: ChatEndpoint, settings: Any, run: Any) -> None:
    with pytest.raises(RunCancelled):
        run(settings(NUMERIC, concurrency=3), should_stop=lambda: len(endpoint.requests) >= 12)
    paid = len(endpoint.requests)

    report = run(settings(NUMERIC, concurrency=3))

    assert 12 <= paid < 60
    assert (report.calls, report.rows) == (60 - paid, 20)


def test_a_folder_of_other_settings_is_refused(settings: Any, run: Any) -> None:
    run(settings(NUMERIC))

    with pytest.raises(PipelineProblem) as caught:
        run(settings({**NUMERIC, "samples": 2}))

    assert caught.value.code == "work_folder_taken"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("#### 1,234", "1234"),
        ("so $3.50.", "3.5"),
        ("x=-2", "-2"),
        ("2-3", "3"),
        ("\\boxed{7}", "7"),
        ("no", None),
    ],
)
def test_the_last_number_is_found(text: str, number: str | None) -> None:
    found = last_number(text)

    assert (None if found is None else float(found)) == (None if number is None else float(number))
