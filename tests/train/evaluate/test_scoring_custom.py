"""Datasets as benchmarks: rows to prompts and references, and every kind of scorer."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sacrebleu import sentence_bleu
from trellis_contracts.evaluation import Verdict
from trellis_contracts.recipe import DataFormat
from trellis_testing.benchmark_sets import order_benchmark, score
from trellis_train.evaluate.benchmark import Benchmark, BenchmarkUnusable

QUESTION = {"question": "2 + 2?", "answer": "4"}


@pytest.fixture
def custom(tmp_path: Path):
    """A benchmark on Parquet rows."""

    def make(
        scorer: dict[str, Any],
        rows: list[dict[str, Any]] | None = None,
        data_format: DataFormat | None = DataFormat.PROMPT_ANSWER,
        **order: Any,
    ) -> Benchmark:
        pq.write_table(pa.Table.from_pylist(rows or [QUESTION]), tmp_path / "rows.parquet")
        body = {"benchmark": "custom", "dataset": "ds_1", "scorer": scorer, **order}
        return order_benchmark(body, {"test": tmp_path / "rows.parquet"}, data_format=data_format)

    return make


@pytest.mark.parametrize(
    ("scorer", "answer", "output", "verdict"),
    [
        ({"kind": "exact"}, "a b", " a\n b ", "correct"),
        ({"kind": "exact"}, "a b", "A b", "wrong"),
        ({"kind": "exact", "ignore_case": True}, "a b", "A b", "correct"),
        ({"kind": "exact"}, "a", "<think>b</think>a", "correct"),
        ({"kind": "exact"}, "a", "<think>a", "unanswered"),
        ({"kind": "contains"}, "Paris", "It is Paris.", "correct"),
        ({"kind": "contains"}, "Paris", "It is paris.", "wrong"),
        ({"kind": "contains", "ignore_case": True}, "Paris", "It is paris.", "correct"),
        ({"kind": "contains"}, "7", "It is 17.", "wrong"),
        ({"kind": "regex", "pattern": r"= (\d+)"}, "4", "a = 3, b = 4", "correct"),
        ({"kind": "regex", "pattern": r"= (\d+)"}, "4", "nothing", "unanswered"),
        ({"kind": "numeric"}, "1,000 in all", "That is $1000", "correct"),
        ({"kind": "numeric"}, "2 + 2 = 4\n#### 4", "4.0", "correct"),
        ({"kind": "numeric"}, "100", "101", "wrong"),
        ({"kind": "numeric", "tolerance": 0.01}, "100", "101", "correct"),
        ({"kind": "numeric"}, "100", "none", "unanswered"),
        ({"kind": "math"}, r"\frac{1}{2}", r"So \boxed{0.5}", "correct"),
        ({"kind": "math"}, "x^2-1", "(x-1)(x+1)", "correct"),
        ({"kind": "math"}, "x^2-1", "x^2+1", "wrong"),
        ({"kind": "json"}, '{"a": 1}', '```json\n{"a": 1.0}\n```', "correct"),
        ({"kind": "json"}, '{"a": 1}', '{"a": 2}', "wrong"),
        ({"kind": "json"}, '{"a": 1}', "a is 1", "unanswered"),
        ({"kind": "json", "equals_answer": False}, "", '{"a": 2}', "correct"),
        ({"kind": "json", "schema_text": '{"required": ["b"]}'}, '{"a": 2}', '{"a": 2}', "wrong"),
        ({"kind": "bleu", "threshold": 0.9}, "the cat sat on the mat", "the cat sat on the mat", "correct"),
        ({"kind": "rougeL", "threshold": 0.9}, "the cat sat", "a dog", "wrong"),
    ],
)  # fmt: skip
def test_every_scorer_tells_right_from_wrong(custom, scorer, answer, output, verdict):
    benchmark = custom(scorer, [{"question": "?", "answer": answer}])
    [problem] = benchmark.problems()

    scored = score(benchmark, problem, output)

    assert scored.verdict == verdict
    assert set(benchmark.metrics) <= set(scored.parts)
    assert scored.score == scored.parts[benchmark.metrics[0]]


@pytest.mark.parametrize("answer", ["carbon", "B", "b", "1"])
def test_choices_are_lettered_and_the_right_one_is_named_in_any_way(custom, answer):
    row = {"question": "Coal?", "options": ["iron", "carbon"], "answer": answer}
    benchmark = custom({"kind": "choice", "choices_column": "options"}, [row])
    [problem] = benchmark.problems()

    assert problem.gold == "B"
    assert benchmark.prompt(problem, chat=False) == "Coal?\nA. iron\nB. carbon"
    assert score(benchmark, problem, "The answer is (B)").verdict == Verdict.CORRECT
    assert score(benchmark, problem, "carbon").verdict == Verdict.CORRECT
    assert score(benchmark, problem, "A").verdict == Verdict.WRONG


def test_the_words_of_a_choice_come_before_letters(custom):
    row = {"question": "Which is a vowel?", "options": ["B", "A"], "answer": "A"}
    benchmark = custom({"kind": "choice", "choices_column": "options"}, [row])

    assert benchmark.problems()[0].gold == "B"


def test_bleu_is_sacrebleus_and_chinese_characters_are_words(custom):
    benchmark = custom({"kind": "bleu"}, [{"question": "?", "answer": "the cat sat on a mat"}])
    rouge = custom({"kind": "rouge1"}, [{"question": "?", "answer": "猫坐在垫子上"}])

    output = "a cat sat on the mat"
    [problem] = benchmark.problems()
    wanted = sentence_bleu(output, [problem.gold]).score / 100

    assert score(benchmark, problem, output).score == pytest.approx(wanted)
    assert score(rouge, rouge.problems()[0], "猫坐在椅子上").score == pytest.approx(5 / 6)


def test_a_pattern_that_does_not_end_is_a_failure_of_its_own(custom, monkeypatch):
    monkeypatch.setattr("trellis_train.evaluate.custom.texts.PATTERN_TIMEOUT_S", 0.2)
    benchmark = custom({"kind": "regex", "pattern": r"(a|aa|a?a)+(b|c)\1d"})
    [problem] = benchmark.problems()

    scored = score(benchmark, problem, "a" * 5000 + "b")

    assert scored.verdict in (Verdict.FAILED, Verdict.UNANSWERED)
    assert (scored.verdict == Verdict.FAILED) == (scored.error is not None)


def test_a_template_fills_columns_and_keeps_other_braces(custom):
    rows = [{"topic": "tides", "words": 3, "reply": "moon"}]
    template = r"Write {words} words on {topic}: \frac{1}{2}, {{topic}}."
    benchmark = custom(
        {"kind": "exact"}, rows, None, template=template, columns={"answer": "reply"}, system="Be brief."
    )
    [problem] = benchmark.problems()
    filled = r"Write 3 words on tides: \frac{1}{2}, {topic}."

    assert benchmark.prompt(problem, chat=False) == filled
    assert benchmark.prompt(problem, chat=True) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": filled},
    ]


def test_conversations_end_before_the_last_answer(custom):
    turns = [("system", "Be kind."), ("user", "Hi"), ("assistant", "Hello")]
    rows = [{"messages": [{"role": role, "content": content} for role, content in turns]}]
    benchmark = custom({"kind": "exact"}, rows, DataFormat.MESSAGES)
    [problem] = benchmark.problems()

    assert problem.gold == "Hello"
    assert benchmark.prompt(problem, chat=True) == rows[0]["messages"][:2]


def test_rows_for_reinforcement_learning_hold_their_truth(custom):
    prompt = [{"role": "user", "content": "2 + 2?"}]
    rows = [{"data_source": "s", "prompt": prompt, "reward_model": {"style": "rule", "ground_truth": "4"}}]
    [problem] = custom({"kind": "numeric"}, rows, DataFormat.VERL_RL).problems()

    assert (problem.gold, problem.messages) == ("4", prompt)


def test_examples_are_other_rows_drawn_by_the_seed(custom):
    rows = [{"question": f"{n:02} + 0?", "answer": str(n)} for n in range(12)]
    benchmark = custom({"kind": "numeric"}, rows, shots=3)
    problems = benchmark.problems()
    again = custom({"kind": "numeric"}, rows, shots=3)

    prompts = [benchmark.prompt(problem, chat=False) for problem in problems]

    assert prompts == [again.prompt(problem, chat=False) for problem in again.problems()]
    for problem, prompt in zip(problems, prompts, strict=True):
        assert prompt.count(f"{problem.text}\n") == 1, "the problem itself is no example"
        assert prompt.count("+ 0?") == 4
    chat = benchmark.prompt(problems[0], chat=True)
    assert [message["role"] for message in chat] == ["user", "assistant"] * 3 + ["user"]


def test_scores_are_broken_down_by_a_column(custom):
    rows = [{**QUESTION, "topic": "sums"}, {**QUESTION, "topic": None}]
    benchmark = custom({"kind": "exact"}, rows, group_column="topic")

    assert [problem.groups for problem in benchmark.problems()] == [{"topic": "sums"}, {"topic": "-"}]


@pytest.mark.parametrize(
    ("scorer", "rows", "order", "message"),
    [
        ({"kind": "exact"}, [QUESTION, {"question": "?", "answer": None}], {}, "row 2 .* has no reference"),
        ({"kind": "exact"}, [{"other": "?"}], {}, "row 1 of rows.parquet: has no"),
        ({"kind": "numeric"}, [{"question": "?", "answer": "many"}], {}, "row 1 of .* contains no number"),
        ({"kind": "json"}, [{"question": "?", "answer": "{"}], {}, "row 1 of rows.parquet is not JSON"),
        ({"kind": "json", "schema_text": '{"type": 3}'}, None, {}, "schema of 'measured'"),
        ({"kind": "regex", "pattern": "("}, None, {}, "pattern of 'measured'"),
        ({"kind": "choice", "choices_column": "options"}, None, {}, "'options' in row 1 of rows.parquet"),
        ({"kind": "exact"}, None, {"group_column": "level"}, "row 1 of rows.parquet has no column 'level'"),
        ({"kind": "exact"}, None, {"template": "{questoin}"}, "uses 'questoin'"),
        ({"kind": "exact"}, None, {"columns": {"answer": "reply"}}, "row 1 of rows.parquet has no reference"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(custom, scorer, rows, order, message):
    with pytest.raises(BenchmarkUnusable, match=message):
        custom(scorer, rows, **order).problems()


def test_manifests_are_json(custom):
    benchmark = custom({"kind": "rougeL"}, shots=0, template="{question}")

    manifest = json.loads(json.dumps(benchmark.manifest()))

    assert manifest["scorer"] == {"kind": "rougeL", "threshold": 0.5}
    assert manifest["template"] == "{question}"


TOOL = {
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "returns": {"shape": "value", "object": "weather", "measure": "degrees", "minimum": 0, "maximum": 9},
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def tool_row(**info: Any) -> dict[str, Any]:
    truth = {"steps": [{"name": "weather", "arguments": {"city": "Oslo"}}], "available_tools": ["weather"]}
    return {
        "data_source": "toolbox",
        "prompt": [{"role": "user", "content": "How warm is it in Oslo?"}],
        "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)},
        "extra_info": {"index": 0, "tools": json.dumps([TOOL]), **info},
    }


def test_tool_calls_are_measured_by_five_metrics_and_their_weighted_mean(custom) -> None:
    benchmark = custom({"kind": "tool_use"}, [tool_row()], data_format=DataFormat.VERL_RL)

    (problem,) = benchmark.problems()
    right = benchmark.score(problem, CALL, is_truncated=False)
    empty = benchmark.score(problem, "", is_truncated=False)

    assert problem.gold == CALL
    assert (right.verdict, right.score) == (Verdict.CORRECT, 1.0)
    assert set(right.parts) == set(benchmark.metrics)
    assert benchmark.metrics[0] == "overall"
    assert empty.verdict is Verdict.WRONG
    assert set(empty.parts.values()) == {0.0}
    assert empty.notes["feedback"] == "Not called: weather."


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**tool_row(), "reward_model": {"ground_truth": "42"}}, "not a valid tool-use ground truth"),
        (
            {**tool_row(tools=None), "reward_model": {"ground_truth": '{"steps": [{"name": "weather"}]}'}},
            "neither extra_info.tools nor available_tools",
        ),
    ],
)
def test_rows_that_no_tool_calls_can_be_measured_on_are_named(custom, row: Any, reason: str) -> None:
    benchmark = custom({"kind": "tool_use"}, [row], data_format=DataFormat.VERL_RL)

    with pytest.raises(BenchmarkUnusable, match=reason):
        benchmark.problems()
