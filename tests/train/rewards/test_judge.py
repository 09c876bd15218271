"""The judge against an endpoint on this machine that is busy, broken, slow, or talks nonsense."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.grades import BadReply, parse_grade
from trellis_contracts.ledger import read_spent
from trellis_testing.chat_endpoint import ChatEndpoint, running_chat_endpoint
from trellis_train.evaluate.custom.judge_prompts import read_better
from trellis_train.rewards.judge import JudgeScorer
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

KEY = "key-of-the-stand-in"
TEMPLATE = "P:{prompt} A:{answer} R:{response} {lowest}-{highest}"


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with running_chat_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def judge_of(endpoint: ChatEndpoint, tmp_path: Path) -> Callable[..., JudgeScorer]:
    def build(*, key: str | None = KEY, **changes: Any) -> JudgeScorer:
        settings = {
            "base_url": endpoint.url, "model": "judge-model", "key_variable": "K",
            "requests_per_minute": 60_000, "input_price": 1.0, "output_price": 2.0, "timeout_s": 5.0,
        }  # fmt: skip
        options = {"template": TEMPLATE, "lowest": 0, "highest": 10, "max_cost": 1.0, "retries": 3}
        described = JudgeEndpoint(**{name: changes.pop(name, value) for name, value in settings.items()})
        return JudgeScorer("strict", described, key=key, folder=tmp_path, **{**options, **changes})

    return build


def ask(judge: JudgeScorer, *responses: str) -> list[Any]:
    async def go() -> list[Any]:
        samples = [
            Sample(response=text, messages=[{"role": "user", "content": "2+2?"}]) for text in responses
        ]
        return await asyncio.gather(*(judge.score(sample) for sample in samples), return_exceptions=True)

    return asyncio.run(go())


def test_the_grade_is_scaled_and_the_question_holds_everything(endpoint: ChatEndpoint, judge_of: Any) -> None:
    assert ask(judge_of(), "four {braces}") == [0.5]

    request = endpoint.requests[0]
    question = request["messages"][0]["content"]
    assert question.startswith("P:2+2? A: R:four {braces} 0-10")
    assert (request["model"], request["authorization"]) == ("judge-model", f"Bearer {KEY}")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_tried_again(endpoint: ChatEndpoint, judge_of: Any, status: int) -> None:
    endpoint.answers = [(status, "busy"), (status, "busy"), (200, '{"score": 10}')]

    assert ask(judge_of(), "four") == [1.0]
    assert len(endpoint.requests) == 3


def test_an_endpoint_that_stays_broken_is_an_error_of_that_response(
    endpoint: ChatEndpoint, judge_of: Any
) -> None:
    endpoint.default = (500, "broken")

    (found,) = ask(judge_of(retries=1), "four")

    assert isinstance(found, Exception)
    assert not isinstance(found, RewardUnusable)
    assert len(endpoint.requests) == 2


def test_a_slow_endpoint_is_given_up(endpoint: ChatEndpoint, judge_of: Any) -> None:
    endpoint.delay_s = 3.0

    (found,) = ask(judge_of(timeout_s=0.3, retries=0), "four")

    assert "timed out" in str(found).lower()


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_ends_the_run_and_is_not_repeated(
    endpoint: ChatEndpoint, judge_of: Any, status: int
) -> None:
    endpoint.default = (status, "no")

    (found,) = ask(judge_of(), "four")

    assert isinstance(found, RewardUnusable)
    assert KEY not in str(found)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "reply",
    ["5", "The score is 5.", '{"grade": 5}', '{"score": "5"}', '{"score": 11}', '{"score": true}', "", "[5]",
     '{"score": NaN}', '{"score": 5} {"score": 6}'],
)  # fmt: skip
def test_a_reply_without_a_grade_is_an_error(endpoint: ChatEndpoint, judge_of: Any, reply: str) -> None:
    endpoint.default = (200, reply)

    (found,) = ask(judge_of(), "four")

    assert isinstance(found, BadReply)


def test_a_grade_may_stand_in_a_code_block() -> None:
    assert parse_grade('```json\n{"score": 3, "why": "x"}\n```', lowest=0, highest=10) == 3.0


def test_equal_questions_are_asked_once(endpoint: ChatEndpoint, judge_of: Any) -> None:
    assert ask(judge_of(), "four", "four", "four", "five") == [0.5] * 4
    assert len(endpoint.requests) == 2


def test_requests_are_spaced(endpoint: ChatEndpoint, judge_of: Any) -> None:
    # From before the first request: on a busy machine that one may arrive late, and the next on time.
    began_at = time.monotonic()
    ask(judge_of(requests_per_minute=600), *(f"answer {number}" for number in range(6)))

    assert max(endpoint.times) - began_at >= 0.49


def test_the_cost_bound_stops_calls_before_it_is_passed(
    endpoint: ChatEndpoint, judge_of: Any, tmp_path: Path
) -> None:
    # 100 and 10 tokens cost 0.11 dollars; a call may cost up to about 10 dollars with these prices.
    judge = judge_of(input_price=1_000.0, output_price=1_000.0, max_cost=5.0)

    found = [
        ask(judge_of(input_price=1_000.0, output_price=1_000.0, max_cost=5.0), f"a{n}")[0] for n in range(60)
    ]

    errors = [each for each in found if isinstance(each, RewardUnusable)]
    assert found[0] == 0.5
    assert errors
    assert "cost limit" in str(errors[0])
    assert read_spent(tmp_path) == pytest.approx(0.11 * len(endpoint.requests))
    assert judge.cost <= 5.0


def test_an_endpoint_that_does_not_count_costs_the_most(
    endpoint: ChatEndpoint, judge_of: Any, tmp_path: Path
) -> None:
    endpoint.usage = None

    assert ask(judge_of(), "four") == [0.5]
    assert read_spent(tmp_path) > 1024 * 2.0 / 1e6


def test_every_attempt_that_is_not_heard_to_its_end_costs_the_most_that_it_may(
    endpoint: ChatEndpoint, judge_of: Any, tmp_path: Path
) -> None:
    endpoint.delay_s = 1.0

    ask(judge_of(timeout_s=0.2, retries=1), "four")

    assert len(endpoint.requests) == 2
    assert read_spent(tmp_path) > 2 * 1024 * 2.0 / 1e6


def test_a_connection_that_is_lost_costs_the_most_that_the_call_may(
    endpoint: ChatEndpoint, judge_of: Any, tmp_path: Path
) -> None:
    def hang_up(_: str) -> Any:
        raise ConnectionAbortedError

    endpoint.reply_to = hang_up

    (found,) = ask(judge_of(retries=0), "four")

    assert isinstance(found, openai.APIConnectionError)
    assert len(endpoint.requests) == 1
    assert read_spent(tmp_path) > 1024 * 2.0 / 1e6


def test_what_was_refused_or_never_arrived_costs_nothing(
    endpoint: ChatEndpoint, judge_of: Any, tmp_path: Path
) -> None:
    endpoint.default = (500, "broken")

    ask(judge_of(retries=0), "four")
    (found,) = ask(judge_of(retries=0, base_url="http://127.0.0.1:9/v1"), "four")

    assert isinstance(found, openai.APIConnectionError)
    assert read_spent(tmp_path) == 0.0


def test_repeated_attempts_do_not_pass_the_cost_bound(
    endpoint: ChatEndpoint, judge_of: Any, tmp_path: Path
) -> None:
    endpoint.delay_s = 1.0
    # An attempt may cost between 1 and 2 dollars with these prices.
    judge = judge_of(input_price=1_000.0, output_price=1_000.0, max_cost=3.0, timeout_s=0.2, retries=9)

    (found,) = ask(judge, "four")

    assert isinstance(found, RewardUnusable)
    assert "cost limit" in str(found)
    assert 1 <= len(endpoint.requests) <= 2
    assert 1.0 < read_spent(tmp_path) <= 3.0


def test_without_its_key_a_judge_is_not_asked(judge_of: Any) -> None:
    with pytest.raises(RewardUnusable, match="set K for the workers"):
        judge_of(key=None)


@pytest.mark.timeout(20)
def test_a_reply_of_spaces_behind_an_open_fence_is_no_grade_and_takes_no_time() -> None:
    for read in (lambda text: parse_grade(text, lowest=0, highest=10), read_better):
        with pytest.raises(BadReply):
            read("```" + " " * 5000 + "x")
