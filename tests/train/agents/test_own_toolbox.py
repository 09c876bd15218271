"""A toolbox of people's own tools: a simulator in place of code, dialogs and a benchmark as training rows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.agents import EnvironmentManifest
from trellis_contracts.environments import EXIT_BAD_REQUEST
from trellis_data.json_objects import read_objects
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_recipes.environments import check_parameters
from trellis_testing.engine_runs import compose_job
from trellis_testing.retrieval import make_rows, write_encoder, write_rows
from trellis_train.agents import environments
from trellis_train.agents.environments import BadRequest
from trellis_train.agents.own_tools import environment
from trellis_train.agents.tooluse.evaluator.metrics import measure
from trellis_train.agents.tooluse.retrieval.queries import BadQueries, Corpus, read_queries
from trellis_train.agents.tooluse.scoring.reward import score, write_reference
from trellis_train.agents.tooluse.tasks import load_tasks
from trellis_train.engines.retrieval import run_rank
from trellis_train.hooks.event_spool import Spool

MCP = {
    "tools": [
        {
            "name": "price-of",
            "description": "The price of an item.",
            "inputSchema": {
                "type": "object",
                "properties": {"item": {"type": "string"}},
                "required": ["item"],
            },
        },
        {"name": "order", "description": "Orders.", "inputSchema": {"type": "object"}},
    ]
}
RECORDED = [
    {"tool": "price-of", "arguments": {"item": "apple"}, "result": {"price": 3}},
    {"tool": "price-of", "error": {"code": "NOT_FOUND", "message": "no such item"}},
    {"tool": "order", "arguments": {"count": 2, "item": "apple"}, "result": ["R-1", "R-2"]},
]
#: One in OpenAI's form, one as `trellis agent generate` writes them.
DIALOGS = [
    {
        "split": "train",
        "messages": [
            {"role": "user", "content": "What does an apple cost?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "price-of", "arguments": '{"item": "apple"}'}}],
            },
            {"role": "tool", "content": '{"price": 3}'},
            {"role": "assistant", "content": "3 euros."},
        ],
    },
    {
        "id": "mine",
        "split": "validation",
        "turns": [
            {"role": "user", "content": "Order an apple."},
            {
                "role": "assistant",
                "content": "",
                "calls": [{"name": "order", "arguments": {"item": "apple"}}],
            },
            {"role": "tool", "content": '["R-1"]'},
            {"role": "assistant", "content": "Done."},
        ],
    },
]
BENCHMARK = [
    {"query": "Price of an apple?", "expected_calls": [{"name": "price-of", "arguments": {"item": "apple"}}]},
    {"query": "Thanks!", "expected_calls": []},
    {
        "prompt": [{"role": "user", "content": "Order."}],
        "reward_model": {"ground_truth": json.dumps({"steps": [{"name": "order"}]})},
    },
]


def make(folder: Path, **contents: Any) -> EnvironmentManifest:
    """An environment of the files with these contents; lists become JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, content in {"tools": MCP, **contents}.items():
        files[name] = str(folder / f"{name}.json")
        lines = content if isinstance(content, list) else [content]
        Path(files[name]).write_text("".join(json.dumps(each) + "\n" for each in lines))
    named = {name: f"upload:up_{name}" for name in files}
    return environments.make("own_tools", folder / "made", named, files)


def rows_of(folder: Path, manifest: EnvironmentManifest, dataset: str) -> list[dict[str, Any]]:
    text = (folder / "made" / manifest.datasets[dataset]).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_simulator_answers_with_what_was_recorded(tmp_path: Path) -> None:
    manifest = make(tmp_path, simulator=RECORDED)
    folder = tmp_path / "made"

    price = environments.call(folder, "price-of", {"item": "apple"})
    missing = environments.call(folder, "price-of", {"item": "pear"})
    ordered = environments.call(folder, "order", {"item": "apple", "count": 2})
    unrecorded = environments.call(folder, "order", {})
    wrong = environments.call(folder, "price-of", {})

    assert manifest.counts == {"tools": 2, "recorded_results": 3}
    assert (price.result, price.error) == ({"price": 3}, None)
    assert (missing.result, missing.error) == ("no such item", "NOT_FOUND")
    assert (ordered.result, ordered.result_count) == (["R-1", "R-2"], 2)
    assert unrecorded.error == "NOT_SIMULATED"
    assert wrong.error == "BAD_ARGUMENTS"


def test_dialogs_and_a_benchmark_become_rows_of_each_stage(tmp_path: Path) -> None:
    manifest = make(tmp_path, simulator=RECORDED, dialogs=DIALOGS, benchmark=BENCHMARK)

    assert set(manifest.datasets) == {
        "sft/train", "sft/eval", "train", "eval", "preference/train", "preference/eval",
    }  # fmt: skip
    assert (manifest.counts["dialogs"], manifest.counts["benchmark"]) == (2, 3)
    (spoken,), (turns,) = (rows_of(tmp_path, manifest, f"sft/{split}") for split in ("train", "eval"))
    for row in (spoken, turns):
        assert '"price-of"' in row["messages"][0]["content"]
        assert any(
            "<tool_call>" in each["content"] for each in row["messages"] if each["role"] == "assistant"
        )
    assert (spoken["id"], turns["id"], turns["task_type"]) == ("dialog-1", "mine", "tool_selection")
    assert {row["data_source"] for row in rows_of(tmp_path, manifest, "train")} == {
        "toolbox/tool_selection", "toolbox/timing",
    }  # fmt: skip
    assert set(rows_of(tmp_path, manifest, "preference/train")[0]) >= {
        "prompt",
        "chosen",
        "rejected",
        "margin",
    }


def test_the_rows_are_scored_and_measured_by_the_reference(tmp_path: Path) -> None:
    manifest = make(tmp_path, simulator=RECORDED, benchmark=BENCHMARK)
    folder = tmp_path / "made"
    tasks = [each for split in ("train", "eval") for each in load_tasks(folder / manifest.datasets[split])]

    assert len(tasks) == 3
    for task in tasks:
        assert "<tools>" in task.prompt[0]["content"]
        assert score(write_reference(task.truth), task.truth).signed > 0.9
        assert measure(write_reference(task.truth), task.truth, task.toolbox)["overall"] == 1.0
        assert measure("<tool_call>", task.truth, task.toolbox)["overall"] < 1.0


def test_what_supervised_training_reads_of_them_is_a_conversation(tmp_path: Path) -> None:
    from trellis_contracts.recipe import DataFormat

    manifest = make(tmp_path, simulator=RECORDED, dialogs=DIALOGS)
    convert = choose_conversion(DataFormat.MESSAGES, DataFormat.MESSAGES, {})

    (row,) = rows_of(tmp_path, manifest, "sft/train")

    assert convert(row, Place(0, "train"))[0]["messages"] == row["messages"]


CALL = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "pay", "arguments": {}}}]}


@pytest.mark.parametrize(
    ("contents", "code", "problem"),
    [
        ({"tools": [], "simulator": RECORDED}, "tools_invalid", "not valid JSON"),
        ({"tools": {"tools": []}, "simulator": RECORDED}, "tools_invalid", "at least one tool"),
        ({"simulator": [{"tool": "pay", "result": 1}]}, "simulator_invalid", "row 1: unknown tool 'pay'"),
        ({"simulator": [{"tool": "order"}]}, "simulator_invalid", "row 1: it needs either result or error"),
        ({"simulator": RECORDED[:2]}, "simulator_invalid", "no result of order is recorded"),
        (
            {"simulator": [{"tool": "price-of", "arguments": {"item": 3}, "result": 1}]},
            "simulator_invalid",
            'row 1: the arguments of price-of: item: 3 is not of type "string"',
        ),
        ({"dialogs": [{"messages": [CALL]}] * 2}, "dialogs_invalid", "row 1: unknown tool 'pay'"),
        ({"dialogs": [{"text": "a"}] * 2}, "dialogs_invalid", "row 1: .*messages"),
        ({"dialogs": [{"turns": [3]}] * 2}, "dialogs_invalid", "row 1: it has an unexpected form"),
        ({"dialogs": [{**DIALOGS[0], "split": "third"}]}, "dialogs_invalid", "unknown split 'third'"),
        ({"dialogs": [{**DIALOGS[0], "split": "eval"}]}, "dialogs_invalid", "no rows to train on"),
        ({"benchmark": [{"expected_calls": []}] * 2}, "benchmark_invalid", "row 1: 'query' is missing"),
        (
            {"benchmark": [{"query": "a", "expected_calls": [{"name": "price-of"}]}] * 2},
            "benchmark_invalid",
            'row 1: the arguments of price-of: "item" is a required property',
        ),
        (
            {"benchmark": [{**BENCHMARK[2], "tools": [{"name": "pay"}]}] * 2},
            "benchmark_invalid",
            "row 1: unknown tool 'pay'",
        ),
        ({"benchmark": [{"prompt": "a"}] * 2}, "benchmark_invalid", "row 1: .*'prompt' is not a list"),
        ({"dialogs": [{**DIALOGS[0], "tools": [{"name": "pay"}]}]}, "dialogs_invalid", "unknown tool 'pay'"),
        (
            {"dialogs": [{"turns": [{"role": "user", "content": 3}]}]},
            "dialogs_invalid",
            "row 1: .*a turn of the user whose content is no text",
        ),
        ({"dialogs": [{**DIALOGS[1], "language": "fr"}]}, "dialogs_invalid", "unknown language 'fr'"),
        (
            {"dialogs": [{**DIALOGS[0], "note": "hi \ud83d"}]},
            "dialogs_invalid",
            r"row 1: it contains half of a character \(\\ud83d\)",
        ),
        (
            {"simulator": [*RECORDED, {"tool": "order", "arguments": {"n": "\ud83d"}, "result": 1}]},
            "simulator_invalid",
            "row 4: it contains half of a character",
        ),
        (
            {
                "simulator": [
                    *RECORDED,
                    {"tool": "order", "arguments": {"item": "apple", "count": 2.0}, "result": 1},
                ]
            },
            "simulator_invalid",
            "rows 3 and 4 record different results of the same call",
        ),
        (
            {"benchmark": [{"query": "a", "expected_calls": [{"name": "order", "arguments": "{"}]}]},
            "benchmark_invalid",
            r"row 1: the arguments of its tool call 1 \(order\) are not JSON",
        ),
        (
            {"benchmark": [{**BENCHMARK[2], "tools": [{"name": "price-of"}]}]},
            "benchmark_invalid",
            "row 1: the reference names the tool 'order', which the row does not offer",
        ),
        (
            {
                "benchmark": [
                    {
                        **BENCHMARK[2],
                        "tools": [{"name": "order"}],
                        "reward_model": {"ground_truth": '{"available_tools": ["order", "price-of"]}'},
                    }
                ]
            },
            "benchmark_invalid",
            "row 1: the reference names the tool 'price-of', which the row does not offer",
        ),
        (
            {"benchmark": [{**BENCHMARK[2], "prompt": [{"role": "pirate", "content": "Order."}]}]},
            "benchmark_invalid",
            "row 1: .*the role 'pirate'",
        ),
        ({"benchmark": [{"query": "a", "kind": "b", "expected_calls": []}]}, "benchmark_invalid", "kind 'b'"),
    ],
)
def test_a_bad_file_is_refused_with_its_row_and_a_code(
    contents: dict[str, Any], code: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRequest, match=problem) as refusal:
        make(tmp_path, **{"simulator": RECORDED, **contents})

    assert refusal.value.code == code


def test_the_command_says_the_code_before_the_sentence(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text("[]")
    files = {"tools": str(tmp_path / "tools.json"), "simulator": str(tmp_path / "none.jsonl")}
    options = ["--parameters", json.dumps(files), "--files", json.dumps(files)]

    done = subprocess.run(
        [sys.executable, "-m", environments.__name__, "make", "own_tools", str(tmp_path / "made"), *options],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == EXIT_BAD_REQUEST
    assert done.stderr.splitlines()[-2] == "code: tools_invalid"
    assert "at least one tool" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"tools": "a"}, "source_missing", "parameters.code"),
        ({"tools": "a", "code": "b", "simulator": "c"}, "sources_conflict", "parameters.simulator"),
    ],
)
def test_exactly_one_of_code_and_simulator_is_given(given: dict[str, str], code: str, field: str) -> None:
    _, issues = check_parameters("own_tools", given)

    assert [(issue.code, issue.field) for issue in issues] == [(code, field)]


def test_a_conversation_is_told_of_the_tools_as_the_environment_has_them(tmp_path: Path) -> None:
    only = {**DIALOGS[0], "tools": [{"name": "price-of", "description": "Another."}]}

    manifest = make(tmp_path, simulator=RECORDED, dialogs=[only, DIALOGS[0]])

    told = [
        row["messages"][0]["content"]
        for split in ("sft/train", "sft/eval")
        if split in manifest.datasets
        for row in rows_of(tmp_path, manifest, split)
    ]
    assert ["Another." in text for text in told] == [False, False]
    assert ["The price of an item." in text for text in told] == [True, True]
    assert ['"order"' in text for text in told] == [False, True]


def test_the_calls_of_a_prompt_stay_in_it(tmp_path: Path) -> None:
    earlier = [
        {"role": "user", "content": "What does an apple cost?"},
        DIALOGS[0]["messages"][1],
        {"role": "tool", "content": '{"price": 3}'},
        {"role": "user", "content": "Order one."},
    ]

    manifest = make(tmp_path, simulator=RECORDED, benchmark=[{**BENCHMARK[2], "prompt": earlier}])

    (row,) = rows_of(tmp_path, manifest, "train")
    assert '<tool_call>\n{"name": "price-of", "arguments": {"item": "apple"}}' in row["prompt"][2]["content"]


def test_arguments_as_text_and_answers_are_read(tmp_path: Path) -> None:
    call = {"function": {"name": "price-of", "arguments": '{"item": "apple"}'}}
    dialog = {
        **DIALOGS[1],
        "split": "train",
        "turns": [DIALOGS[1]["turns"][0], {"role": "assistant", "calls": [call]}],
    }
    requests = [
        {"query": "Price of an apple?", "expected_calls": [call], "answer": "3 euros"},
        {"query": "What is 2 + 2?", "expected_calls": [], "answer": 4},
    ]

    manifest = make(
        tmp_path,
        simulator=RECORDED,
        dialogs=[dialog],
        benchmark=[{**each, "split": "train"} for each in requests],
    )

    (turns,) = rows_of(tmp_path, manifest, "sft/train")
    assert '{"name": "price-of", "arguments": {"item": "apple"}}' in turns["messages"][2]["content"]
    called, plain = (
        json.loads(row["reward_model"]["ground_truth"]) for row in rows_of(tmp_path, manifest, "train")
    )
    assert (called["steps"][0]["arguments"], called["result"], called["answer"]) == (
        {"item": "apple"}, "3 euros", None,
    )  # fmt: skip
    assert (plain["steps"], plain["answer"]) == ([], "4")


def test_recordings_are_found_by_equal_numbers_and_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, simulator=[*RECORDED, RECORDED[2]])
    folder = tmp_path / "made"
    reads: list[Path] = []
    monkeypatch.setattr(environment, "read_objects", lambda path: reads.append(path) or read_objects(path))

    for count in (2, 2.0):
        assert environments.call(folder, "order", {"item": "apple", "count": count}).result == ["R-1", "R-2"]

    assert len(reads) == 1


def many_tools(count: int) -> dict[str, Any]:
    names = [f"find_{'abcdefghijklmnop'[place]}_part" for place in range(count - 2)]
    further = [{"name": name, "description": f"Finds {name}.", "inputSchema": {}} for name in names]
    return {"tools": [*MCP["tools"], *further]}


def test_requests_for_one_tool_become_rows_for_tool_retrieval(tmp_path: Path) -> None:
    recorded = [{"tool": each["name"], "result": 1} for each in many_tools(11)["tools"]]
    benchmark = [
        *BENCHMARK,
        {"query": "Cost and order", "expected_calls": [
            {"name": "price-of", "arguments": {"item": "a"}}, {"name": "order", "arguments": {}},
        ]},
        {"query": "PRICE of an  apple?", "expected_calls": [{"name": "order", "arguments": {}}]},
    ]  # fmt: skip
    benchmark = [{**each, "split": "train"} for each in benchmark]

    manifest = make(tmp_path, tools=many_tools(11), simulator=recorded, dialogs=DIALOGS, benchmark=benchmark)

    assert manifest.counts["tool_queries"] == 4
    train, held_out = (rows_of(tmp_path, manifest, f"retrieval/{split}") for split in ("train", "eval"))
    asked = [(each["prompt"][0]["content"], each["reward_model"]["ground_truth"]) for each in train]
    # No tool, two tools, or asked before: no row.
    assert asked == [
        ("Price of an apple?", "price-of"), ("Order.", "order"), ("What does an apple cost?", "price-of"),
    ]  # fmt: skip
    assert [each["prompt"][0]["content"] for each in held_out] == ["Order an apple."]
    corpus = Corpus()
    queries = read_queries([*train, *held_out], corpus, "rows")
    assert len(corpus) == 11
    assert all(len(each.misleading) == 4 for each in queries)
    assert queries[0].misleading[0] != "price-of"


def test_too_few_own_tools_have_no_rows_for_retrieval_and_are_refused_by_its_training(tmp_path: Path) -> None:
    recorded = [{"tool": each["name"], "result": 1} for each in many_tools(10)["tools"]]
    manifest = make(tmp_path, tools=many_tools(10), simulator=recorded, dialogs=DIALOGS)
    assert not [name for name in manifest.datasets if name.startswith("retrieval")]
    assert "tool_queries" not in manifest.counts

    rows = make_rows("train")[:20]
    run = compose_job(
        tmp_path / "job", recipe="agent_retrieval", model=write_encoder(tmp_path / "model", rows),
        rows=write_rows(rows[:8], tmp_path / "few.parquet"), validation=None,
        params={"batch_size": 4, "total_steps": 1}, attempt=1,
    )  # fmt: skip

    with pytest.raises(BadQueries, match="too few for retrieval: at least 11"):
        run_rank(run.spec, None)


def test_an_encoder_is_trained_on_requests_for_own_tools(tmp_path: Path) -> None:
    recorded = [{"tool": each["name"], "result": 1} for each in many_tools(12)["tools"]]
    benchmark = [
        {"query": f"Please do {each['name']} {place}", "expected_calls": [{
            "name": each["name"], "arguments": {"item": "x"} if each["name"] == "price-of" else {},
        }]}
        for place in range(2) for each in many_tools(12)["tools"]
    ]  # fmt: skip
    manifest = make(tmp_path, tools=many_tools(12), simulator=recorded, benchmark=benchmark)
    train, held_out = (rows_of(tmp_path, manifest, f"retrieval/{split}") for split in ("train", "eval"))

    run = compose_job(
        tmp_path / "job", recipe="agent_retrieval", model=write_encoder(tmp_path / "model", train),
        rows=write_rows(train, tmp_path / "train.parquet"),
        validation=write_rows(held_out, tmp_path / "eval.parquet"),
        params={"batch_size": 16, "total_steps": 2}, attempt=1,
    )  # fmt: skip
    spool = Spool(run.spec.attempt_dir, "trainer")
    run_rank(run.spec, spool)

    assert run.checkpoint()["step"] == 2
    assert set(run.curve("eval/tools").values()) == {12.0}
    assert sorted(run.curve("eval/recall@10")) == [0, 2]
