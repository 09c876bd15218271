"""A judge behind an endpoint on this machine that is busy, broken, dear or talks nonsense."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.pipeline import Pipeline, Step
from trellis_data.layout import Batch
from trellis_data.operator import Context, OperatorProblem
from trellis_data.outcome import Outcome
from trellis_data.pipeline.runner import Options, run
from trellis_data.scoring.endpoint_judge import EndpointJudge
from trellis_data.scoring.judge import Judge, JudgeParams
from trellis_data.scoring.scorer import Pair, Verdict
from trellis_testing.chat_endpoint import ChatEndpoint, running_chat_endpoint
from trellis_testing.operator_runs import answers


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with running_chat_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def judge_of(endpoint: ChatEndpoint, tmp_path: Path) -> Callable[..., EndpointJudge]:
    def build(max_cost: float = 1.0, retries: int = 2, **changes: Any) -> EndpointJudge:
        settings = {
            "base_url": endpoint.url, "model": "judge-model", "requests_per_minute": 60_000,
            "input_price": 1.0, "output_price": 2.0, "timeout_s": 5.0, **changes,
        }  # fmt: skip
        described = JudgeEndpoint(**settings)
        return EndpointJudge("strict", described, folder=tmp_path, max_cost=max_cost, retries=retries)

    return build


def judged(judge: Any, batch: Batch) -> Outcome:
    made = Judge(JudgeParams(scorer="strict"), Context(scorers={"strict": judge}))
    made.check(batch.table.schema, batch.layout)
    outcome = made.apply(batch)
    assert outcome.table.schema == made.schema_after(batch.table.schema)
    return outcome


def test_each_answer_gets_its_grade_from_0_to_1(endpoint: ChatEndpoint, judge_of: Any) -> None:
    endpoint.reply_to = lambda question: (200, '{"score": 9}' if "Paris {x}" in question else '{"score": 2}')

    outcome = judged(judge_of(), answers(("Capital of France?", "Paris {x}"), ("Capital of Italy?", "Bonn")))

    assert outcome.table["judge"].to_pylist() == pytest.approx([0.9, 0.2])
    assert outcome.changed.all()
    assert sum(outcome.findings["score"].counts) == 2
    assert all("Capital of" in question for question in endpoint.questions)


def test_what_is_busy_is_tried_again(endpoint: ChatEndpoint, judge_of: Any) -> None:
    endpoint.answers = [(429, "busy"), (503, "busy"), (200, '{"score": 10}')]

    assert judged(judge_of(), answers(("q", "a"))).table["judge"].to_pylist() == [1.0]


def test_equal_questions_are_paid_once_also_by_a_run_that_begins_again(
    endpoint: ChatEndpoint, judge_of: Any
) -> None:
    batch = answers(("q", "a"), ("q", "a"), ("q", "b"))

    first = judged(judge_of(), batch)
    second = judged(judge_of(), batch)

    assert first.table == second.table
    assert len(endpoint.requests) == 2


def test_a_reply_without_a_grade_leaves_the_row_without_a_score(
    endpoint: ChatEndpoint, judge_of: Any
) -> None:
    endpoint.reply_to = lambda question: (200, "fine!" if "bad" in question else '{"score": 5}')

    outcome = judged(judge_of(), answers(("q", "bad"), ("q", "good")))

    assert outcome.table["judge"].to_pylist() == [None, 0.5]
    assert outcome.counts == {"no_grade": 1}
    assert outcome.keep.all()


def test_the_cost_bound_holds(endpoint: ChatEndpoint, judge_of: Any) -> None:
    judge = judge_of(max_cost=3.0, input_price=1_000.0, output_price=1_000.0)

    outcome = judged(judge, answers(*(("q", f"answer {number}") for number in range(40))))

    assert 0 < outcome.counts["over_budget"] < 40
    assert judge.spent <= 3.0
    assert judge.spent == pytest.approx(0.11 * len(endpoint.requests))


@pytest.mark.parametrize(
    ("status", "is_paid"), [(408, True), (504, True), (429, False), (503, False), (422, False)]
)
def test_an_attempt_that_timed_out_is_paid_and_a_refused_one_is_not(
    endpoint: ChatEndpoint, judge_of: Any, status: int, is_paid: bool
) -> None:
    judge = judge_of(max_cost=9.0, retries=1, input_price=1_000.0, output_price=1_000.0)
    endpoint.answers = [(status, "no")]
    judged(judge, answers(("q", "answer")))
    heard = 0.11 * sum(1 for _ in endpoint.requests[1:])

    # A call that was not heard to its end counts as the dearest that it may have been.
    assert (judge.spent > heard + 0.1) is is_paid


def test_a_judge_that_is_away_stops_the_run(endpoint: ChatEndpoint, judge_of: Any) -> None:
    endpoint.default = (500, "broken")

    with pytest.raises(OperatorProblem) as caught:
        judged(judge_of(retries=0), answers(("q", "a"), ("q", "b")))

    assert caught.value.code == "judge_unreachable"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_stops_the_run_and_is_not_repeated(
    endpoint: ChatEndpoint, judge_of: Any, status: int
) -> None:
    endpoint.default = (status, "no")

    with pytest.raises(OperatorProblem) as caught:
        judged(judge_of(), answers(("q", "a")))

    assert caught.value.code == "judge_refuses"
    assert len(endpoint.requests) == 1


def test_the_key_is_read_where_the_judge_is_asked(
    endpoint: ChatEndpoint, judge_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = judge_of(key_variable="KEY_OF_THE_STAND_IN")

    with pytest.raises(OperatorProblem) as caught:
        judged(judge, answers(("q", "a")))
    monkeypatch.setenv("KEY_OF_THE_STAND_IN", "s3cret")
    judged(pickle.loads(pickle.dumps(judge)), answers(("q", "a")))

    assert caught.value.code == "judge_without_key"
    assert endpoint.requests[0]["authorization"] == "Bearer s3cret"


def test_anything_that_scores_can_be_the_judge() -> None:
    class Longest:
        def score(self, pairs: list[Pair]) -> list[Verdict]:
            return [Verdict(len(pair.answer) / 10) for pair in pairs]

    outcome = judged(Longest(), answers(("q", "aaaaa")))

    assert outcome.table["judge"].to_pylist() == [0.5]


def test_an_unknown_judge_is_refused_before_the_run() -> None:
    batch = answers(("q", "a"))
    outlined = Judge.outline(JudgeParams(scorer="nobody"), Context())

    with pytest.raises(OperatorProblem) as caught:
        outlined.check(batch.table.schema, batch.layout)

    assert caught.value.code == "judge_unknown"


def test_a_pipeline_takes_its_judges_along_into_other_processes(
    endpoint: ChatEndpoint, judge_of: Any, tmp_path: Path
) -> None:
    rows, path = answers(("q", "a"), ("q", "b")), tmp_path / "rows.parquet"
    pq.write_table(rows.table, path)
    step = Step(operator="judge", params={"scorer": "strict"})

    report = run(
        Pipeline(name="judged", steps=[step]),
        [path],
        tmp_path / "work",
        layout=rows.layout,
        context=Context(scorers={"strict": judge_of()}),
        options=Options(processes=2),
    )

    assert report.steps[0].changed == 2
    assert len(endpoint.requests) == 2
