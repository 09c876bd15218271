"""Files to rows, rows to problems, problems to prompts; and what is said of files that are of no use."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_testing.benchmark_sets import order_benchmark
from trellis_train.evaluate.benchmark import BenchmarkUnusable

SUMS = [{"question": f"{n} + 1?", "answer": f"It is more.\n#### {n + 1}"} for n in range(9)]
QUESTIONS = [
    {"question": f"Question {n}?", "subject": subject, "choices": ["1", "2", "3", "4"], "answer": n % 4}
    for subject in ("astronomy", "anatomy")
    for n in range(8)
]


def write(path: Path, rows: list[dict]) -> Path:
    """In the form that the name asks for."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path.write_text(lines)
    return path


@pytest.mark.parametrize("name", ["test.jsonl", "test.jsonl.gz", "test.parquet"])
def test_the_same_rows_from_every_form_of_file(tmp_path, name):
    benchmark = order_benchmark({"benchmark": "gsm8k"}, {"test": write(tmp_path / name, SUMS)})

    problems = benchmark.problems()

    assert [problem.row for problem in problems] == SUMS
    assert [problem.key for problem in problems] == [str(n) for n in range(9)]


@pytest.mark.parametrize(
    ("order", "rows", "message"),
    [
        ("gsm8k", [*SUMS, {"question": "?"}], "row 10 of test.jsonl has no 'answer'"),
        ("gsm8k", [{"question": "?", "answer": "4"}], "'answer' in row 1 of test.jsonl does not end"),
        ("gsm8k", [{"question": 4, "answer": "#### 4"}], "'question' in row 1 of test.jsonl is int, not str"),
        ("gsm8k", [], "is empty"),
        (
            "math",
            [{"problem": "?", "level": "Level 1", "type": "Algebra", "solution": "4"}],
            "has no .*boxed answer",
        ),
        ("math", [{"problem": "?", "type": "Algebra", "solution": r"\boxed{4}"}], "has no 'level'"),
        (
            "mmlu",
            [{**QUESTIONS[0], "answer": 4}],
            "'answer' in row 1 of test.jsonl doesn't match any of the 4",
        ),
        ("mmlu", [{**QUESTIONS[0], "answer": True}], "'answer' in row 1 of test.jsonl is bool"),
        ("mmlu", [{**QUESTIONS[0], "choices": ["1"]}], "'choices' in row 1 of test.jsonl must be"),
        (
            "mmlu",
            [{**QUESTIONS[0], "subject": "magic"}],
            "unknown MMLU subject 'magic' in row 1 of test.jsonl",
        ),
    ],
)
def test_a_row_of_no_use_is_named_with_its_field(tmp_path, order, rows, message):
    benchmark = order_benchmark({"benchmark": order}, {"test": write(tmp_path / "test.jsonl", rows)})

    with pytest.raises(BenchmarkUnusable, match=message):
        benchmark.problems()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test.jsonl", b'{"question": 1\n', "line 1 of test.jsonl is not JSON"),
        ("test.jsonl", b"[1]\n", "line 1 of test.jsonl is not an object"),
        ("test.jsonl", b"\xff\xfe\n", "line 1 of test.jsonl is not JSON"),
        ("test.jsonl.gz", b"not compressed", "test.jsonl.gz is damaged or incomplete"),
        ("test.parquet", b"PAR1 no", "test.parquet cannot be read"),
        ("test.csv", b"a,b", "test.csv is neither"),
    ],
)
def test_a_file_of_no_use_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    benchmark = order_benchmark({"benchmark": "gsm8k"}, {"test": tmp_path / name})

    with pytest.raises(BenchmarkUnusable, match=message):
        benchmark.problems()


def test_missing_files_and_parts_are_named(tmp_path):
    missing = order_benchmark({"benchmark": "gsm8k"}, {"test": tmp_path / "none.jsonl"})
    alone = order_benchmark({"benchmark": "gsm8k"}, {"test": write(tmp_path / "test.jsonl", SUMS)})

    with pytest.raises(BenchmarkUnusable, match=r"none\.jsonl cannot be read"):
        missing.problems()
    with pytest.raises(BenchmarkUnusable, match="has no split 'train'"):
        alone.prompt(alone.problems()[0], chat=False)


def test_too_many_shots_are_refused(tmp_path):
    rows = write(tmp_path / "rows.jsonl", SUMS)
    benchmark = order_benchmark({"benchmark": "gsm8k", "shots": 10}, {"test": rows, "train": rows})

    with pytest.raises(BenchmarkUnusable, match="has only 9 examples, too few for 10 shots"):
        benchmark.prompt(benchmark.problems()[0], chat=False)
    with pytest.raises(BenchmarkUnusable, match="MATH has only 4 few-shot examples"):
        order_benchmark({"benchmark": "math", "shots": 5}, {"test": rows})


def test_a_chat_is_told_the_form_and_examples_are_turns(tmp_path):
    rows = write(tmp_path / "rows.jsonl", SUMS)
    order = {"benchmark": "gsm8k", "shots": 1, "system": "Be right."}
    benchmark = order_benchmark(order, {"test": rows, "train": rows})

    messages = benchmark.prompt(benchmark.problems()[3], chat=True)

    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == SUMS[0]["answer"]
    assert messages[3]["content"].startswith("3 + 1?")
    assert "####" in messages[3]["content"]


def test_mmlu_takes_examples_from_dev_else_from_other_problems_of_the_subject(tmp_path):
    test = write(tmp_path / "test.jsonl", QUESTIONS)
    dev = write(tmp_path / "dev.jsonl", [{**row, "question": f"Dev: {row['question']}"} for row in QUESTIONS])
    order = {"benchmark": "mmlu", "shots": 5}
    with_dev = order_benchmark(order, {"test": test, "dev": dev})
    alone = order_benchmark(order, {"test": test}, seed=3)

    from_dev = with_dev.prompt(with_dev.problems()[9], chat=False)
    prompts = {problem.key: alone.prompt(problem, chat=False) for problem in alone.problems()}

    assert from_dev.count("Dev: Question") == 5
    assert "about anatomy" in from_dev
    for problem in alone.problems():
        assert prompts[problem.key].count("Question ") == 6
        assert prompts[problem.key].count(f"{problem.row['question']}\n") == 1, "it is no example of itself"
    assert "sampled with the seed" in str(alone.manifest())
    assert prompts == {
        p.key: order_benchmark(order, {"test": test}, seed=3).prompt(p, chat=False) for p in alone.problems()
    }


def test_levels_types_and_subjects_are_chosen_by_name(tmp_path):
    rows = [
        {"problem": f"{kind} {level}", "level": f"Level {level}", "type": kind, "solution": r"\boxed{1}"}
        for kind in ("Algebra", "Number Theory")
        for level in range(1, 6)
    ]
    parts = {"test": write(tmp_path / "test.jsonl", rows)}
    order = {"benchmark": "math", "levels": [1, 5], "types": ["number_theory"]}

    problems = order_benchmark(order, parts).problems()

    assert [problem.text for problem in problems] == ["Number Theory 1", "Number Theory 5"]
    with pytest.raises(BenchmarkUnusable, match="unknown type: Magic; choose from Algebra, Number Theory"):
        order_benchmark({"benchmark": "math", "types": ["Magic"]}, parts).problems()


def test_plain_mathematics_begins_with_the_four_examples(tmp_path):
    row = {"problem": "1?", "level": "Level 1", "type": "Algebra", "solution": r"\boxed{1}"}
    benchmark = order_benchmark({"benchmark": "math"}, {"test": write(tmp_path / "test.jsonl", [row])})

    prompt = benchmark.prompt(benchmark.problems()[0], chat=False)

    assert prompt.startswith("Problem:\nFind the domain of the expression")
    assert prompt.count("I hope it is correct.") == 4
    assert prompt.endswith("Problem:\n1?\n\nSolution:")
