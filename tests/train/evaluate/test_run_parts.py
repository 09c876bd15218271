"""The parts of a run that need no engine: what is drawn, asked, kept and refused."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_contracts.attempt import EVENTS_FOLDER, TOKEN_FILE
from trellis_contracts.evaluation import (
    SAMPLES_FOLDER,
    BenchmarkFiles,
    BenchmarkTask,
    CheckpointSource,
    Gsm8kOrder,
    Sample,
    Score,
    Verdict,
)
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec
from trellis_testing.evaluation_runs import Evaluation
from trellis_train.evaluate import measuring
from trellis_train.evaluate.benchmark import BenchmarkUnusable, Message, Problem, Scored
from trellis_train.evaluate.drawing import choose_seed, draw
from trellis_train.evaluate.harness.answers import AnswerLog
from trellis_train.evaluate.harness.measuring import load_task
from trellis_train.evaluate.inference import Answer
from trellis_train.evaluate.likelihoods import Likelihood, LogLikelihood, add_up, lay_out
from trellis_train.evaluate.manifest import fingerprint
from trellis_train.evaluate.measuring import Measurement
from trellis_train.evaluate.rendering import NoChatTemplate, Renderer
from trellis_train.evaluate.reporting import Reporter
from trellis_train.evaluate.weights import provide_weights
from trellis_train.evaluate.writing import SampleLog
from trellis_train.hooks.event_spool import Spool
from trellis_train.starter.model import make_tokenizer

PROBLEMS = [Problem(str(place), "2", {}, text=f"Question {place}") for place in range(20)]


class Stub:
    """A benchmark whose scorer does what the output says."""

    label = "stub"
    metrics = ("right",)
    group_kinds = ()
    needs = "generate"
    samples_per_problem = 1
    default_max_tokens = 8
    stop: Sequence[str] = ("\n",)

    def problems(self) -> Sequence[Problem]:
        return PROBLEMS

    def prompt(self, problem: Problem, chat: bool) -> list[Message] | str:
        return [{"role": "user", "content": str(problem.text)}] if chat else str(problem.text)

    def score(self, problem: Problem, output: str, *, is_truncated: bool) -> Scored:
        if output == "break":
            raise ZeroDivisionError("the scorer divides by nothing")
        verdict = {"right": Verdict.CORRECT, "": Verdict.UNANSWERED}.get(output, Verdict.WRONG)
        value = float(verdict is Verdict.CORRECT)
        return Scored(verdict, value, parts={"right": value})

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        return []

    def manifest(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


def order(**fields: Any) -> BenchmarkTask:
    files = BenchmarkFiles(paths={"test": ["rows.jsonl"]}, sha256="0" * 64)
    return BenchmarkTask(label="stub", order=Gsm8kOrder(**fields), files=files)


@pytest.fixture
def measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measurement:
    monkeypatch.setattr(measuring, "open_benchmark", lambda task, seed: Stub())
    found = Measurement(order(limit=5), 0, Reporter(Spool(tmp_path, "evaluator")))
    found.load()
    found.prepare(make_tokenizer(), tmp_path, {})
    return found


def answer_all(measurement: Measurement, *outputs: tuple[str, str]) -> list[Sample]:
    """Answer the requests with texts and reasons to finish; the samples."""
    for (id_, _), (text, reason) in zip(measurement.requests(), outputs, strict=True):
        measurement.take(Answer(id_, text, finish_reason=reason, output_tokens=len(text)))
    while not measurement.is_measured:
        measurement.collect(1.0)
    return measurement._log.read()


def test_a_broken_scorer_fails_its_sample_and_no_other(measurement: Measurement) -> None:
    samples = answer_all(
        measurement, ("break", "stop"), ("right", "stop"), ("x", "stop"), ("x", "length"), ("", "length")
    )

    assert [sample.verdict for sample in samples] == [
        Verdict.FAILED, Verdict.CORRECT, Verdict.WRONG, Verdict.TRUNCATED, Verdict.TRUNCATED,
    ]  # fmt: skip
    assert samples[0].error == "ZeroDivisionError: the scorer divides by nothing"
    result = measurement.finish()
    assert (result.scores[0].value, result.counts.failed, result.counts.truncated) == (0.2, 1, 2)


def test_a_right_answer_that_was_cut_stays_right(measurement: Measurement) -> None:
    samples = answer_all(measurement, *[("right", "length")] * 5)

    assert {sample.verdict for sample in samples} == {Verdict.CORRECT}


def test_an_error_of_the_engine_fails_the_sample(measurement: Measurement) -> None:
    requests = list(measurement.requests())
    measurement.take(Answer(requests[0][0], error="The engine aborted the request (error)."))
    measurement.refuse(requests[1][0], "too long")

    samples = measurement._log.read()

    assert [(sample.verdict, sample.error) for sample in samples] == [
        (Verdict.FAILED, "The engine aborted the request (error)."),
        (Verdict.FAILED, "too long"),
    ]


def test_another_attempt_asks_only_for_what_is_missing(
    measurement: Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = list(measurement.requests())
    measurement.refuse(requests[1][0], "no")
    measurement.leave()

    later = Measurement(order(limit=5), 0, Reporter(Spool(tmp_path, "evaluator")))
    later.load()
    later.prepare(make_tokenizer(), tmp_path, {})

    assert [id_ for id_, _ in later.requests()] == [requests[place][0] for place in (0, 2, 3, 4)]


def sample(position: int) -> Sample:
    return Sample(
        position=position, key=str(position), prompt="p", output="o", gold="g", verdict=Verdict.WRONG, score=0
    )


@given(st.integers(min_value=1, max_value=400))
def test_of_a_torn_file_every_whole_line_is_kept(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = SampleLog(folder, "stub", "same")
    log.open(lambda _: None)
    for position in range(3):
        log.append(sample(position))
    log.close(1.0)
    path = folder / SAMPLES_FOLDER / "stub.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    expected = path.read_bytes().count(b"\n")

    again = SampleLog(folder, "stub", "same")
    found: list[Sample] = []
    again.open(found.append)
    again.append(sample(7))

    assert [each.position for each in found] == list(range(expected))
    assert [each.position for each in again.read()] == [*range(expected), 7]


def test_samples_of_another_fingerprint_are_removed(tmp_path: Path) -> None:
    log = SampleLog(tmp_path, "stub", "one")
    log.open(lambda _: None)
    log.append(sample(0))
    log.close(1.0)

    found: list[Sample] = []
    SampleLog(tmp_path, "stub", "another").open(found.append)

    assert found == []
    assert not (tmp_path / SAMPLES_FOLDER / "stub.jsonl").exists()


def test_fifty_problems_are_among_the_hundred() -> None:
    fifty, hundred = draw(PROBLEMS, 5, seed=3), draw(PROBLEMS, 10, seed=3)

    assert fifty == hundred[:5]
    assert draw(PROBLEMS, None, seed=3)[:10] == hundred
    assert draw(PROBLEMS, 10, seed=4) != hundred


def test_each_generation_has_a_seed_of_its_own() -> None:
    seeds = {choose_seed(seed, key, number) for seed in range(3) for key in "abc" for number in range(3)}

    assert len(seeds) == 27
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_choices_of_one_token_are_one_prompt() -> None:
    request = Likelihood([([1, 2], [7]), ([1, 2], [8]), ([1, 2], [9])])

    [question] = lay_out(request)

    assert (question.tokens, question.children) == ([1, 2], [7, 8, 9])


def test_choices_that_begin_alike_share_prompts() -> None:
    request = Likelihood([([1], [5, 7]), ([1], [5, 8]), ([1], [5, 9])])

    questions = lay_out(request)

    assert [(each.tokens, each.children) for each in questions] == [([1], [5]), ([1, 5], [7, 8, 9])]


def test_long_choices_are_read_within_prompts_of_their_own() -> None:
    request = Likelihood([([1], [5, 6, 7]), ([1], [8, 9, 10])])

    questions = lay_out(request)

    assert [(each.tokens, each.children) for each in questions] == [
        ([1, 5, 6, 7], None),
        ([1, 8, 9, 10], None),
    ]


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=5))
def test_both_ways_of_asking_give_the_same_sums(continuations: list[list[int]]) -> None:
    request = Likelihood([([9], each) for each in continuations])

    found = add_up(request, [_answer_as_vllm(question) for question in lay_out(request)])

    for each, continuation in zip(found, continuations, strict=True):
        whole = [9, *continuation]
        expected = sum(_log_prob(whole[:place], whole[place]) for place in range(1, len(whole)))
        assert math.isclose(each.value, expected)
        assert each.is_greedy == all(whole[p] == _greedy(whole[:p]) for p in range(1, len(whole)))


def _log_prob(prefix: list[int], token: int) -> float:
    return -float((sum(prefix) * 31 + token * 17) % 13 + 1)


def _greedy(prefix: list[int]) -> int:
    return max(range(6), key=lambda token: (_log_prob(prefix, token), -token))


def _answer_as_vllm(question: Any) -> Any:
    tokens = question.tokens
    if question.children is not None:
        logprobs = {token: SimpleNamespace(logprob=_log_prob(tokens, token)) for token in question.children}
        return SimpleNamespace(outputs=[SimpleNamespace(logprobs=[logprobs], token_ids=[_greedy(tokens)])])
    places: list[Any] = [None]
    for place in range(1, len(tokens)):
        is_greedy = _greedy(tokens[:place]) == tokens[place]
        entry = SimpleNamespace(logprob=_log_prob(tokens[:place], tokens[place]), rank=1 if is_greedy else 2)
        places.append({tokens[place]: entry})
    return SimpleNamespace(prompt_logprobs=places)


def test_a_plain_prompt_shows_the_token_that_the_tokenizer_adds() -> None:
    tokenizer = make_tokenizer()
    tokenizer.bos_token = "<|endoftext|>"
    from tokenizers.processors import TemplateProcessing

    start = ("<|endoftext|>", tokenizer.convert_tokens_to_ids("<|endoftext|>"))
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[start]
    )
    renderer = Renderer(tokenizer, Stub(), Gsm8kOrder(chat="never"))  # type: ignore[arg-type]

    prompt = renderer.render(PROBLEMS[0])

    assert prompt.text == "<|endoftext|>Question 0"
    assert prompt.tokens[0] == start[1]
    assert len(prompt.tokens) == 1 + len("Question 0")


def test_a_chat_template_that_is_missing_is_an_error_where_it_was_ordered() -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = None

    with pytest.raises(NoChatTemplate, match="chat: auto or never"):
        Renderer(tokenizer, Stub(), Gsm8kOrder(chat="always"))  # type: ignore[arg-type]

    assert Renderer(tokenizer, Stub(), Gsm8kOrder()).has_chat is False  # type: ignore[arg-type]


def test_what_decides_samples_changes_the_fingerprint() -> None:
    base = fingerprint(order(), 0, {"model": "a"}, "prompts")
    moved = order().model_copy(deep=True)
    assert moved.files is not None
    moved.files.paths["test"] = ["/elsewhere/rows.jsonl"]

    others = [
        fingerprint(order(limit=3), 0, {"model": "a"}, "prompts"),
        fingerprint(order(), 1, {"model": "a"}, "prompts"),
        fingerprint(order(), 0, {"model": "b"}, "prompts"),
        fingerprint(order(), 0, {"model": "a"}, "other prompts"),
    ]

    assert len({base, *others}) == 5
    assert fingerprint(moved, 0, {"model": "a"}, "prompts") == base


def test_answers_of_the_harness_outlive_a_torn_line(tmp_path: Path) -> None:
    log = AnswerLog(tmp_path / "answers")
    log.open("owner")
    log.append(Answer("a", "text", "stop", 3))
    log.append(Answer("b", likelihoods=(LogLikelihood(-1.5, True),)))
    log.close()
    path = tmp_path / "answers"
    path.write_bytes(path.read_bytes() + b'{"id": "c", "te')

    again = AnswerLog(path)
    again.open("owner")
    other = AnswerLog(tmp_path / "copy")
    (tmp_path / "copy").write_bytes(path.read_bytes())
    other.open("another owner")

    assert again["b"].likelihoods == (LogLikelihood(-1.5, True),)
    assert "c" not in again
    assert "a" not in other


@pytest.mark.slow
def test_a_task_of_the_harness_that_cannot_be_had_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = 'task: local_missing\ndataset_path: json\ndataset_kwargs: {data_files: {"test": "gone.jsonl"}}\n'
    more = 'output_type: generate_until\ntest_split: test\ndoc_to_text: "{{q}}"\ndoc_to_target: "{{a}}"\n'
    (tmp_path / "local.yaml").write_text(config + more)
    monkeypatch.setenv("TRELLIS_HARNESS_TASKS", str(tmp_path))

    with pytest.raises(BenchmarkUnusable, match="has no task 'no_such_task_at_all'"):
        load_task("no_such_task_at_all")
    with pytest.raises(BenchmarkUnusable, match="put its data in the Hub cache first"):
        load_task("local_missing")


def test_the_weights_of_a_checkpoint_are_gathered_and_removed(tmp_path: Path, starter_folder: Path) -> None:
    from safetensors.torch import load_file

    evaluation = Evaluation(tmp_path / "job", starter_folder, [order()])
    spec = JobSpec.model_validate_json(evaluation.write_spec().read_bytes())
    source = CheckpointSource(job_id="job_1", engine=Engine.TRL, step=4, path=str(starter_folder))

    with provide_weights(spec, source, lambda: None) as folder:
        assert folder.is_relative_to(spec.attempt_dir)
        assert (folder / "tokenizer.json").is_file()
        weights = load_file(folder / "model.safetensors")
        left = folder

    original = load_file(starter_folder / "model.safetensors")
    assert all(weights[name].equal(tensor) for name, tensor in original.items())
    assert not left.exists()


#: The whole parent, whose platform does not answer.
PARENT = """
import sys
from pathlib import Path
from trellis_train.entrypoint import ENGINE_MODULES, load_spec, read_token
from trellis_train.supervise.run import SupervisedRun
spec = load_spec(Path(sys.argv[1]))
command = [sys.executable, "-m", ENGINE_MODULES[spec.engine], sys.argv[1]]
sys.exit(SupervisedRun(spec, read_token(Path(spec.attempt_dir)), command, drain_timeout_s=0.1).execute())
"""


@pytest.mark.slow
def test_a_missing_file_of_a_benchmark_ends_the_run_before_the_engine_starts(
    tmp_path: Path, starter_folder: Path
) -> None:
    evaluation = Evaluation(tmp_path / "job", starter_folder, [order()])
    spec = evaluation.write_spec()
    (spec.parent / TOKEN_FILE).write_text("token")

    done = subprocess.run(
        [sys.executable, "-c", PARENT, str(spec)], capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 1, done.stderr[-2000:]
    [outcome] = _read_events(spec.parent, "outcome")
    assert (outcome["outcome"], outcome["cause"]) == ("failed", "benchmark_unusable")
    assert "rows.jsonl" in outcome["reason"]
    assert not (evaluation.output / "result.json").exists()


def _read_events(attempt: Path, kind: str) -> list[dict[str, Any]]:
    files = sorted((attempt / EVENTS_FOLDER).glob("*.jsonl"))
    events = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    return [event for event in events if event["kind"] == kind]
