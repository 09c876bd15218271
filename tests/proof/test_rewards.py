"""Rewards from outside, in real runs: a person's own file, a trained reward model, and a judge that is asked.

Every response of every step must have the score that the reward gives it when it is called here, apart from
the run.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.rewards import RewardFileSource, RewardResources
from trellis_contracts.spec import ModelSource
from trellis_testing.chat_endpoint import Answer, ChatEndpoint, running_chat_endpoint
from trellis_testing.engine_runs import EngineRun
from trellis_testing.starter import Starter

from .preference import PreferenceRuns
from .reinforcement import (
    MINI_BATCH,
    PARAMS,
    STEPS,
    ReinforcementRuns,
    expect_gain,
    question_of,
    read_responses,
)

pytestmark = [pytest.mark.training, pytest.mark.timeout(1800), pytest.mark.variant]

#: Enough to see that rewards are right after updates too.
FEW_STEPS = 3
#: Of a mixture of two.
WEIGHTS = {"reward_model": 0.75, "judge": 0.25}
TEMPLATE = "P:{prompt}\nA:{answer}\nR:{response}\n"
#: What busy endpoints do now and then costs no score.
REFUSALS: tuple[Answer, ...] = ((429, "too many"), (503, "busy"))
Response = dict[str, Any]

OWN_FILE = '''
import re


def score(prompt, response, answer, row):
    """A right sum counts whole, one that hedges a quarter; the sum is worked out from the prompt."""
    total = str(sum(int(number) for number in re.findall(r"[0-9]+", prompt)))
    if answer != total or row["messages"][-1]["content"] != prompt:
        raise ValueError("the parts of the request are not of one row")
    return {"score": 1.0 if response == total else 0.25 if response == "~" + total else 0.0}
'''


def expect_scores(run: EngineRun, steps: int, score: Callable[[Response], float]) -> None:
    """The score of each response is what ``score`` says here; none failed, and they differ."""
    assert list(run.curve("critic/score/mean")) == list(range(1, steps + 1))
    assert set(run.curve("reward/errors").values()) == {0.0}
    for step in range(1, steps + 1):
        responses = read_responses(run, step)
        assert len(responses) == run.spec.params["batch_size"] * run.spec.params["group_size"]
        found = [response["score"] for response in responses]
        assert found == pytest.approx([score(response) for response in responses], abs=1e-4)
        assert len(set(found)) > 1


@pytest.mark.proves("grpo")
class TestOwnFile:
    @pytest.fixture(scope="class")
    def run(self, reinforcement: ReinforcementRuns, tmp_path_factory: pytest.TempPathFactory) -> EngineRun:
        path = tmp_path_factory.mktemp("own-file") / "rwf_own.py"
        path.write_text(OWN_FILE)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        source = RewardFileSource(name="own.py", path=str(path), sha256=digest)
        return reinforcement.run(
            "grpo",
            "own-file",
            rewards=[{"name": "python", "options": {"file": "rwf_own"}}],
            resources=RewardResources(files={"rwf_own": source}),
            **PARAMS["grpo"],
        )

    @pytest.fixture(scope="class")
    def score(self) -> Callable[[Response], float]:
        scope: dict[str, Any] = {}
        exec(OWN_FILE, scope)

        def score(response: Response) -> float:
            question = question_of(response["input"])
            row = {"messages": [{"role": "user", "content": question}]}
            found = scope["score"](question, response["output"], response["gts"], row)
            return float(found["score"])

        return score

    def test_each_response_has_the_score_of_the_file(
        self, run: EngineRun, score: Callable[[Response], float]
    ) -> None:
        expect_scores(run, STEPS, score)

    def test_training_raises_the_mean_reward(
        self, run: EngineRun, reinforcement: ReinforcementRuns, score: Callable[[Response], float]
    ) -> None:
        expect_gain("grpo with an own file", run, reinforcement.control(), score)


def scorer_of(model: Path) -> Callable[[str, str], float]:
    """What a reward model, loaded as any user would, says of an answer to a question."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    scorer = AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(model)

    @cache
    def score(question: str, answer: str) -> float:
        said = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        tokens = tokenizer.apply_chat_template(said, return_tensors="pt", return_dict=True)
        with torch.no_grad():
            return float(scorer(**tokens).logits.sigmoid())

    return score


def grade(answer: str, response: str) -> int:
    """What the judge gives."""
    return 10 if response == answer else 4 if response == f"~{answer}" else 1


@pytest.mark.proves("ppo", "reward_model")
class TestRewardModelAndJudge:
    """One run is rewarded by both, and each is looked at."""

    @pytest.fixture(scope="class")
    def model(self, starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """What the reward model recipe makes of the taught starter."""
        runs = PreferenceRuns(tmp_path_factory.mktemp("reward-model"), starter)
        return Path(
            runs.get("reward_model", "reward_model", total_steps=80, learning_rate=1e-3).checkpoint()[
                "hf_path"
            ]
        )

    @pytest.fixture(scope="class")
    def endpoint(self) -> Iterator[ChatEndpoint]:
        def reply_to(question: str) -> Answer:
            found = re.match(r"P:.*\nA:(.*)\nR:(.*)\n\n\nReply with", question, re.DOTALL)
            assert found, question
            return 200, json.dumps({"score": grade(*found.groups())})

        with running_chat_endpoint() as endpoint:
            endpoint.answers = [*REFUSALS]
            endpoint.reply_to = reply_to
            yield endpoint

    @pytest.fixture(scope="class")
    def run(self, reinforcement: ReinforcementRuns, model: Path, endpoint: ChatEndpoint) -> EngineRun:
        source = ModelSource(model_id="mdl_scorer", path=str(model))
        judge = JudgeEndpoint(base_url=endpoint.url, model="judge-model", requests_per_minute=60_000)
        options = {
            "reward_model": {"model": "mdl_scorer", "squash": True},
            "judge": {"endpoint": "strict", "template": TEMPLATE, "lowest": 0, "highest": 10},
        }
        return reinforcement.run(
            "ppo",
            "reward-model-and-judge",
            rewards=[
                {"name": name, "weight": weight, "options": options[name]} for name, weight in WEIGHTS.items()
            ],
            resources=RewardResources(models={"mdl_scorer": source}, judges={"strict": judge}),
            total_steps=FEW_STEPS,
            mini_batch_size=MINI_BATCH,
        )

    def test_each_response_has_the_weighted_sum_of_both(self, run: EngineRun, model: Path) -> None:
        scorer = scorer_of(model)

        def score(response: Response) -> float:
            by_model = scorer(question_of(response["input"]), response["output"])
            by_judge = grade(response["gts"], response["output"]) / 10
            return WEIGHTS["reward_model"] * by_model + WEIGHTS["judge"] * by_judge

        expect_scores(run, FEW_STEPS, score)

    def test_the_parts_of_what_the_platform_shows_are_theirs(self, run: EngineRun, model: Path) -> None:
        scorer = scorer_of(model)
        events = [event for event in run.events("rollouts") if event["split"] == "train"]
        rollouts = [rollout for event in events for rollout in event["rollouts"]]

        assert len(events) == FEW_STEPS
        for rollout in rollouts:
            parts = rollout["reward_parts"]
            by_model = scorer(question_of(rollout["prompt"]), rollout["response"])
            assert parts["reward_model"] == pytest.approx(by_model, abs=1e-4)
            assert parts["judge"] == pytest.approx(grade(rollout["ground_truth"], rollout["response"]) / 10)
        for part in WEIGHTS:
            assert len({rollout["reward_parts"][part] for rollout in rollouts}) > 1

    def test_the_judge_was_asked_once_about_each_answer(self, run: EngineRun, endpoint: ChatEndpoint) -> None:
        asked = {
            (question_of(each["input"]), each["output"])
            for step in range(1, FEW_STEPS + 1)
            for each in read_responses(run, step)
        }

        assert len(set(endpoint.questions)) == len(asked)
        assert len(endpoint.requests) == len(asked) + len(REFUSALS)
