"""Rows dropped for what they say: schema, empty answers, language, repetition, word lists, benchmarks."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_data.catalogue import find_operator
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem
from trellis_testing.operator_runs import answers, chats, cleaned, documents, operator, run

SENTENCES = (
    "The river rises in the hills above the old town and winds past mills, orchards and two stone "
    "bridges before "
    "it meets the sea. Boats once carried wool and slate along it; now walkers follow the towpath on Sundays."
)


def test_the_reason_names_the_path_and_the_rule() -> None:
    rows = [
        {"messages": [{"role": "user", "n": 1}]},
        {"messages": [{"role": "user", "n": 1}, {"role": "robot", "n": 2}]},
        {"messages": None},
    ]
    rules = {
        "required": ["messages"],
        "properties": {"messages": {"items": {"properties": {"role": {"enum": ["user", "assistant"]}}}}},
    }

    outcome = run("json_schema", Batch(pa.Table.from_pylist(rows), Layout(DataFormat.UNKNOWN)), rules=rules)

    assert outcome.reasons == {1: "schema:/messages/*/role:enum", 2: "schema:/:required"}


def test_text_in_a_column_is_read_as_json() -> None:
    batch = documents('{"a": 1}', '{"a": "x"}', "{broken")
    rules = {"properties": {"a": {"type": "integer"}}}

    outcome = run("json_schema", batch, rules=rules, column="text")

    assert outcome.reasons == {1: "schema:/a:type", 2: "not_json"}


@pytest.mark.parametrize(
    "rules", [{"type": "nonsense"}, {"$ref": "https://a.example/schema.json"}, {"pattern": "(a"}]
)
def test_a_wrong_schema_is_refused_before_the_run(rules: dict[str, Any]) -> None:
    kind = find_operator("json_schema")
    outlined = kind.outline(kind.Params.model_validate({"rules": rules}), Context())

    with pytest.raises(OperatorProblem) as caught:
        outlined.check(pa.schema([]), Layout(DataFormat.UNKNOWN))

    assert caught.value.code == "schema_invalid"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty_answer"),
        (" \n\t", "empty_answer"),
        ("N/A", "placeholder"),
        ("[TODO]", "placeholder"),
        ("暂无。", "placeholder"),
        ("...", "punctuation"),
        ("？！", "punctuation"),
        ("As an AI language model, I cannot", "disclaimer"),
        ("作为一个人工智能语言模型，我", "disclaimer"),
        ("what is  the capital of France?", "repeats_prompt"),
        ("Paris", None),
        ("42", None),
        ("👍", None),
        ("None of these is as an ai language model would put it", None),
        ("∅", None),
    ],
)
def test_answers_that_say_nothing_are_dropped(answer: str, reason: str | None) -> None:
    outcome = run("empty_answers", answers(("What is the capital of France?", answer)))

    assert outcome.reasons == ({} if reason is None else {0: reason})


def test_one_empty_turn_is_enough_and_a_missing_answer_too() -> None:
    batch = chats([("user", "a"), ("assistant", "x"), ("user", "b"), ("assistant", "")], [("user", "a")], [])

    assert run("empty_answers", batch).reasons == dict.fromkeys([0, 1, 2], "empty_answer")


def test_rows_of_sharegpt_are_cleaned_as_they_are() -> None:
    turns = [
        [{"from": "human", "value": "q"}, {"from": "gpt", "value": text}] for text in ("fine", " ", "N/A")
    ]
    calls = [{"from": "human", "value": "q"}, {"from": "function_call", "value": '{"name": "f"}'}]
    table = pa.Table.from_pylist([{"conversations": each} for each in [*turns, calls]])
    batch = Batch(table, Layout(DataFormat.UNKNOWN, {"messages": "conversations"}))

    outcome = run("empty_answers", batch)

    assert outcome.keep.tolist() == [True, False, False, True]


def test_a_turn_that_calls_a_tool_may_be_empty() -> None:
    call = pa.list_(pa.struct({"name": pa.string()}))
    kind = pa.list_(pa.struct({"role": pa.string(), "content": pa.string(), "tool_calls": call}))
    rows = [
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": text, "tool_calls": calls}]
        for text, calls in (("", [{"name": "f"}]), (None, [{"name": "f"}]), ("", []), (None, None))
    ]
    batch = Batch(
        pa.table({"messages": pa.array(rows, kind)}), Layout(DataFormat.MESSAGES, {"messages": "messages"})
    )

    assert run("empty_answers", batch).keep.tolist() == [True, True, False, False]


def test_further_placeholders_and_disclaimers_can_be_named() -> None:
    batch = answers(("q", "Nichts"), ("q", "Als KI (Modell) kann ich"), ("q", "ok"))

    outcome = run("empty_answers", batch, placeholders=["nichts"], disclaimers=["als ki (modell)"])

    assert outcome.reasons == {0: "placeholder", 1: "disclaimer"}


def test_rows_without_an_answer_by_their_format_are_refused_and_not_all_dropped() -> None:
    batch = Batch(pa.table({"a": ["x"]}), Layout(DataFormat.UNKNOWN))

    with pytest.raises(OperatorProblem) as caught:
        operator("empty_answers").check(batch.table.schema, batch.layout)

    assert caught.value.code == "no_answer"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("How many apples does John have left if he gives away three of them?", "en"),
        ("请用中文解释什么是机器学习，并举一个例子。", "zh"),
        ("使用 Python 的 pandas 库读取 CSV 文件，然后按日期分组求和", "zh"),
        ("私は学生です。東京大学で勉強しています。", "ja"),
        ("안녕하세요 저는 학생입니다", "ko"),
        ("Wie viele Äpfel hat Hans noch, wenn er drei verschenkt?", "de"),
        ("Combien de pommes reste-t-il à Jean dans le panier ?", "fr"),
        ("¿Cuántas manzanas le quedan a Juan si regala tres?", "es"),
        ("Сколько яблок осталось у Ивана, если он отдал три?", "ru"),
        ("كم عدد التفاحات المتبقية لدى جون", "ar"),
        ("```python\nfor item in items:\n    print(item)\n```\n结果如下所示，请检查输出是否正确", "zh"),
        ("Compute $1-2+3-4+5- \\dots +99-100$ and let $z = 2 + \\sqrt{2}$.", "en"),
        ("Why did the solar nebula heat up as it collapsed?", "en"),
        ("x^2 + y^2 = 1", "und"),
        ("12345", "und"),
        ("", "und"),
    ],
)
def test_languages_are_told(text: str, code: str) -> None:
    outcome = run("language", documents(text), column="language")

    assert outcome.table["language"].to_pylist() == [code]


def test_rows_are_kept_and_dropped_by_language() -> None:
    batch = documents(
        SENTENCES,
        "这是一个中文句子，用来测试。",
        "Das ist ein deutscher Satz und er ist nicht kurz.",
        "1+1=2",
    )

    assert run("language", batch, keep=["zh", "en"]).reasons == {2: "language:de"}
    assert run("language", batch, drop=["en"], keep_unknown=False).reasons == {
        0: "language:en",
        3: "language_unknown",
    }


def test_an_unknown_code_of_a_language_is_refused() -> None:
    with pytest.raises(ValueError, match="xx"):
        operator("language", keep=["xx"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SENTENCES, None),
        (f"{SENTENCES}\n{SENTENCES}", "repeated_lines"),
        ("buy now " * 30, "repeated_top_2_gram_frac"),
        ("今天天气很好" * 20, "repeated_top_2_gram_frac"),
        (f"{SENTENCES} And so on. {SENTENCES}", "repeated_dup_5_gram_frac"),
        ("好的好的", None),
        ("春眠不觉晓处处闻啼鸟夜来风雨声花落知多少白日依山尽黄河入海流欲穷千里目更上一层楼", None),
    ],
)
def test_repetitive_texts_are_dropped(text: str, reason: str | None) -> None:
    found = run("repetition", documents(text), rules="web").reasons

    assert found == ({} if reason is None else {0: reason})


def test_solutions_may_repeat_their_terms_but_not_go_round_in_circles() -> None:
    solution = (
        "Natalia sold 48 clips in April. She sold 48 / 2 = 24 clips in May. She sold 48 + 24 = 72 clips in "
        "April and May. So she sold 72 clips."
    )
    circle = "Let me check that again. The answer is 72, so the answer is 72. " * 12

    assert run("repetition", documents(solution, circle)).keep.tolist() == [True, False]


def test_a_limit_of_ones_own_takes_the_place_of_the_rules() -> None:
    quoting = documents(f"{SENTENCES} As was said: {SENTENCES[:90]}")

    assert run("repetition", quoting).keep.all()
    assert run("repetition", quoting, dup_5_gram_frac=0.05).reasons == {0: "repeated_dup_5_gram_frac"}


def test_shares_of_repetition_are_those_that_can_be_counted_by_hand() -> None:
    from trellis_data.words import repetition_shares

    words, shares = repetition_shares(pl.Series(["aa bb cc\naa bb cc\ndd", "x"]))

    assert words.tolist() == [7, 1]
    # 1 of 3 lines, 8 of 18 characters; "aa bb" twice has 8 of 14 letters, "aa bb cc" 12.
    assert shares[0, :4].tolist() == pytest.approx([1 / 3, 8 / 18, 8 / 14, 12 / 14])
    assert shares[1].tolist() == [0.0] * shares.shape[1]


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("I'm sorry, but I can’t help.", True),
        ("抱歉，我无法回答这个问题", True),
        ("She said it can't help with the cooking", False),
        ("Shitake mushrooms from Scunthorpe", False),
        ("You BASTARD!", True),
        ("你这个王八蛋", True),
        ("bastardised", False),
        ("İi bastard", True),
    ],
)
def test_phrases_are_whole_words_in_any_case(text: str, hit: bool) -> None:
    outcome = run("word_list", documents(text), lists=["refusals", "toxicity"])

    assert outcome.keep.tolist() == [not hit]


def test_phrases_are_masked_where_they_stand() -> None:
    assert cleaned(
        "word_list", "İ Foo, foobar foo bar", phrases=["foo", "foo bar"], action="mask", mark="_"
    ) == ["İ _, foobar _"]


def test_lists_come_from_files_and_count_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("# mine\nalpha\n贝塔\n", encoding="utf-8")

    outcome = run(
        "word_list", documents("alpha 贝塔", "alpha", "none"), files=["mine"], allowed=1,
        resources={"mine": tmp_path / "words.txt"},
    )  # fmt: skip

    assert outcome.reasons == {0: "word:mine"}
    assert outcome.counts == {"mine": 3}


def test_a_refusal_far_from_the_beginning_does_not_count_where_that_is_asked_for() -> None:
    batch = documents("I cannot help with that.", f"{SENTENCES} I cannot help with that.")

    assert run("word_list", batch, lists=["refusals"], first_characters=100).keep.tolist() == [False, True]


@pytest.mark.parametrize(
    ("columns", "phrases"),
    [
        ({"n": [1, 2], "language": ["en", "en"], "phrase": ["alpha", None]}, [False, True]),
        ({"n": [1, 2], "bad": ["# alpha", " beta "]}, [True, False]),
    ],
)
def test_a_dataset_may_be_a_word_list(
    columns: dict[str, list[Any]], phrases: list[bool], tmp_path: Path
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "list.parquet")

    outcome = run(
        "word_list", documents("alpha", "beta"), files=["mine"], resources={"mine": tmp_path / "list.parquet"}
    )

    assert outcome.keep.tolist() == phrases


def test_a_dataset_without_texts_is_no_word_list(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "list.parquet")

    with pytest.raises(OperatorProblem, match="no column with texts") as caught:
        run("word_list", documents("a"), files=["mine"], resources={"mine": tmp_path / "list.parquet"})

    assert caught.value.code == "word_list_empty"


@pytest.fixture
def benchmark(tmp_path: Path) -> dict[str, Path]:
    items = [
        {"question": SENTENCES, "answer": "yes", "id": 1},
        {"question": "小明有五个苹果，他又买了三个，请问他现在一共有多少个苹果？", "answer": "8", "id": 2},
        {"question": "Name the capital of the northern province, please now.", "answer": None, "id": 3},
    ]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    pl.DataFrame(items).write_parquet(tmp_path / "items.parquet")
    return {"lines": path, "table": tmp_path / "items.parquet"}


@pytest.mark.parametrize("name", ["lines", "table"])
@pytest.mark.parametrize(
    ("text", "item"),
    [
        (f"Before. {SENTENCES[40:160].upper()} After it.", 0),
        ("题目：小明有５个苹果。小明有五个苹果、他又买了三个、请问他现在一共有多少个苹果", 1),
        ("NAME the capital of the northern province -- please now!", 2),
        ("Name the capital of the northern province, please now. And more.", None),
        ("yes", None),
        ("The river rises in the hills above the town", None),
    ],
)
def test_copies_of_benchmark_items_are_found(
    benchmark: dict[str, Path], name: str, text: str, item: int | None
) -> None:
    outcome = run("decontaminate", documents(text, "clean"), benchmarks=[name], resources=benchmark)

    assert outcome.reasons == ({} if item is None else {0: f"contaminated:{name}"})
    if item is not None:
        assert outcome.findings["items"].counts == {f"{name}#{item}": 1}


def test_hits_can_be_marked_in_place_of_dropped(benchmark: dict[str, Path]) -> None:
    batch = chats([("user", "hello"), ("assistant", SENTENCES)], [("user", "hello")])

    outcome = run("decontaminate", batch, benchmarks=["lines"], action="mark", resources=benchmark)

    assert outcome.table["contamination"].to_pylist() == ["lines#0", None]


def test_a_copy_deep_in_a_very_long_text_is_found(benchmark: dict[str, Path]) -> None:
    filler = " ".join(f"w{number}" for number in range(180_000))
    at = 1_000_000 - 100

    outcome = run(
        "decontaminate", documents(filler[:at] + " " + SENTENCES), benchmarks=["lines"], resources=benchmark
    )

    assert outcome.keep.tolist() == [False]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"benchmarks": ["other"]}, "resource_missing"),
        ({"benchmarks": ["lines"], "benchmark_columns": ["id"]}, "benchmark_without_text"),
        ({"benchmarks": ["broken"]}, "benchmark_unreadable"),
    ],
)
def test_a_benchmark_that_cannot_be_used_is_refused_before_the_run(
    benchmark: dict[str, Path], params: dict[str, Any], code: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    resources = {**benchmark, "broken": tmp_path / "broken.parquet"}
    kind = find_operator("decontaminate")
    outlined = kind.outline(kind.Params.model_validate(params), Context(resources=resources))

    with pytest.raises(OperatorProblem) as caught:
        outlined.check(documents("x").table.schema, documents("x").layout)

    assert caught.value.code == code


@pytest.mark.parametrize("name", ["urls", "repetition", "language"])
def test_columns_that_are_not_there_or_hold_no_text_are_refused(name: str) -> None:
    table = pa.table({"text": ["x"], "n": [1]})
    layout = Layout(DataFormat.TEXT, {"text": "text"})

    for column, code in (("other", "column_missing"), ("n", "no_text")):
        with pytest.raises(OperatorProblem) as caught:
            operator(name, columns=[column]).check(table.schema, layout)
        assert caught.value.code == code


def test_marks_do_not_stand_in_a_column_that_is_there_already(benchmark: dict[str, Path]) -> None:
    kind = find_operator("decontaminate")
    params = kind.Params.model_validate({"benchmarks": ["lines"], "action": "mark"})
    outlined = kind.outline(params, Context(resources=benchmark))
    schema = pa.schema({"text": pa.string(), "contamination": pa.string()})

    with pytest.raises(OperatorProblem) as caught:
        outlined.check(schema, documents("x").layout)

    assert caught.value.code == "column_taken"


def test_a_benchmark_without_rows_hits_nothing(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    pl.DataFrame({"question": pl.Series([], dtype=pl.String)}).write_parquet(path)

    outcome = run("decontaminate", documents("x y"), benchmarks=["none"], resources={"none": path})

    assert outcome.keep.tolist() == [True]
