"""The generated data of the agent pipeline: whole, valid, the same for a seed, fair between splits (B1)."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from trellis_train.agents import environments
from trellis_train.agents.tooluse.data.generate import EXIT_BAD_REQUEST, MANIFEST_FILE, TOOLS_FILE, main
from trellis_train.agents.tooluse.data.simulator import BadTools, Toolbox, answer_of, load_tools, simulate
from trellis_train.agents.tooluse.data.tools import make_tools
from trellis_train.agents.tooluse.data.words import SPLITS, phrasing, vocabulary
from trellis_train.agents.tooluse.formatting.sampling import DEFAULT_TASK_WEIGHTS
from trellis_train.agents.tooluse.scoring.reward import score
from trellis_train.agents.tooluse.tasks import load_tasks

Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment: the generated data, and the rows that trainers read."""
    made = tmp_path_factory.mktemp("toolbox")
    environments.make("toolbox", made, {})
    return made


@pytest.fixture(scope="module")
def tools(folder: Path) -> dict[str, Row]:
    return load_tools(folder / TOOLS_FILE)


@pytest.fixture(scope="module")
def dialogs(folder: Path) -> dict[str, list[Row]]:
    return read(folder, "agent_sft")


@pytest.fixture(scope="module")
def benchmark(folder: Path) -> dict[str, list[Row]]:
    return read(folder, "agent_benchmark")


@pytest.fixture(scope="module")
def queries(folder: Path) -> dict[str, list[Row]]:
    return read(folder, "agent_retrieval")


def read(folder: Path, kind: str) -> dict[str, list[Row]]:
    return {split: lines(folder / kind / f"{split}.jsonl") for split in SPLITS}


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def is_valid(tools: dict[str, Row], call: Row) -> bool:
    return Draft202012Validator(tools[call["name"]]["parameters"]).is_valid(call["arguments"])


# -- counts -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_there_are_1200_tools_in_25_categories_of_48_each_with_a_schema(tools: dict[str, Row]) -> None:
    assert len(tools) == 1200
    assert Counter(Counter(tool["category"] for tool in tools.values()).values()) == {48: 25}
    for tool in tools.values():
        Draft202012Validator.check_schema(tool["parameters"])
        assert set(tool["parameters"]["required"]) <= set(tool["parameters"]["properties"])
    assert len({tool["description"] for tool in tools.values()}) == 1200


def test_there_are_5000_dialogs_of_6_to_12_turns_with_the_tasks_in_their_weights(
    dialogs: dict[str, list[Row]],
) -> None:
    assert {split: len(rows) for split, rows in dialogs.items()} == {"train": 4000, "dev": 500, "test": 500}
    for rows in dialogs.values():
        assert {6, 12} <= {len(row["turns"]) for row in rows} <= set(range(6, 13))
        counts = Counter(row["metadata"]["task_type"] for row in rows)
        assert counts == {task: len(rows) * weight for task, weight in DEFAULT_TASK_WEIGHTS.items()}
        assert 0.2 < sum(row["language"] == "zh" for row in rows) / len(rows) < 0.3


def test_the_benchmark_has_1100_samples_and_half_of_those_on_timing_want_no_call(
    benchmark: dict[str, list[Row]],
) -> None:
    assert {split: len(rows) for split, rows in benchmark.items()} == {"train": 660, "dev": 165, "test": 275}
    rows = [row for split in benchmark.values() for row in split]
    assert Counter(row["kind"] for row in rows) == {"tool_selection": 500, "planning": 300, "timing": 300}
    timing = [row for row in rows if row["kind"] == "timing"]
    assert sum(row["should_call"] for row in timing) == 150
    for row in rows:
        assert row["should_call"] == bool(row["expected_calls"])
        if row["kind"] == "planning":
            assert 5 <= len({call["name"] for call in row["expected_calls"]}) <= 10


def test_every_tool_has_queries_in_every_split_and_four_others_that_are_easily_taken_for_it(
    queries: dict[str, list[Row]], tools: dict[str, Row]
) -> None:
    for split, per_tool in (("train", 3), ("dev", 1), ("test", 1)):
        assert Counter(row["tool"] for row in queries[split]) == dict.fromkeys(tools, per_tool)
    for row in queries["train"]:
        others = set(row["hard_negatives"])
        assert len(others) == 4
        assert row["tool"] not in others
        assert {tools[name]["category"] for name in others} == {row["category"]}


# -- references -------------------------------------------------------------------------------------


def test_dialogs_call_only_tools_that_are_offered_with_arguments_that_were_said(
    dialogs: dict[str, list[Row]], tools: dict[str, Row]
) -> None:
    for row in (row for split in dialogs.values() for row in split):
        assert set(row["tools"]) <= set(tools)
        said = ""
        for turn in row["turns"]:
            for call in turn.get("calls", ()):
                assert call["name"] in row["tools"]
                assert is_valid(tools, call)
                assert all(str(value) in said for value in call["arguments"].values()), row["id"]
            said += turn["content"]


def test_the_results_in_dialogs_are_those_of_the_simulator(
    dialogs: dict[str, list[Row]], tools: dict[str, Row]
) -> None:
    toolbox, replayed = Toolbox(tools.values()), 0
    for row in dialogs["test"]:
        calls = [call for turn in row["turns"] for call in turn.get("calls", ())]
        results = [turn for turn in row["turns"] if turn["role"] == "tool"]
        for call, turn in zip(calls, results, strict=True):
            assert toolbox.call(call["name"], call["arguments"]) == json.loads(turn["content"])
            replayed += 1
        if calls:
            assert row["metadata"]["answer"] in row["turns"][-1]["content"] + row["turns"][-3]["content"]
    assert replayed > 500


def test_samples_of_the_benchmark_can_be_solved_from_their_text_alone(
    benchmark: dict[str, list[Row]], tools: dict[str, Row]
) -> None:
    for row in (row for split in benchmark.values() for row in split):
        assert {call["name"] for call in row["expected_calls"]} <= set(row["tools"]) <= set(tools)
        assert row["optimal_steps"] == len(row["expected_calls"]) <= row["max_steps"]
        for call in row["expected_calls"]:
            assert is_valid(tools, call)
            assert all(str(value) in row["query"] for value in call["arguments"].values())
        if row["expected_calls"]:
            last = row["expected_calls"][-1]
            result = simulate(tools[last["name"]], last["arguments"])
            assert row["answer"] == answer_of(tools[last["name"]], result) != ""
        else:
            assert row["answer"] == ""


# -- fairness ---------------------------------------------------------------------------------------


def wordings() -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Every place in the file of wordings that has some for each split."""

    def walk(path: str, node: Any) -> Iterator[tuple[str, dict[str, list[Any]]]]:
        if isinstance(node, dict):
            if set(node) == set(SPLITS):
                yield path, node
            for name, child in node.items():
                yield from walk(f"{path}.{name}", child)

    yield from walk("", phrasing())


def test_no_wording_belongs_to_two_splits() -> None:
    found = 0
    for path, by_split in wordings():
        texts = {split: {json.dumps(each).lower() for each in by_split[split]} for split in SPLITS}
        assert all(texts.values()), path
        for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
            assert not texts[one] & texts[other], (path, one, other)
        found += 1
    assert found > 80


def test_every_row_uses_wordings_of_its_own_split_alone(
    dialogs: dict[str, list[Row]], benchmark: dict[str, list[Row]], queries: dict[str, list[Row]]
) -> None:
    for data in (dialogs, benchmark, queries):
        for split, rows in data.items():
            for row in rows:
                names = row["templates"] if "templates" in row else row["metadata"]["templates"]
                assert names
                assert {name.split(".")[-2] for name in names} == {split}


def test_what_is_said_in_training_is_said_nowhere_in_the_other_splits(
    dialogs: dict[str, list[Row]], benchmark: dict[str, list[Row]], queries: dict[str, list[Row]]
) -> None:
    said = {
        split: {
            *(turn["content"] for row in dialogs[split] for turn in row["turns"] if turn["role"] != "tool"),
            *(row["query"] for row in benchmark[split]),
            *(row["query"] for row in queries[split]),
        }
        - {""}
        for split in SPLITS
    }
    assert not said["train"] & (said["dev"] | said["test"])
    assert not said["dev"] & said["test"]


def test_requests_of_the_test_split_hold_no_wording_of_training_for_their_tool(
    benchmark: dict[str, list[Row]], queries: dict[str, list[Row]]
) -> None:
    made = make_tools(42).by_name
    asked = [(row["query"], row["language"], [row["tool"]]) for row in queries["test"]]
    asked += [
        (row["query"], row["language"], [call["name"] for call in row["expected_calls"]])
        for row in benchmark["test"]
    ]
    for text, language, names in asked:
        for tool in (made[name] for name in names):
            known = phrasing()["actions"][tool.action][language]["train"]
            noun = tool.noun.en if language == "en" else tool.noun.zh
            for wording in known:
                said = wording.format(object=noun, objects=tool.noun.plural, a=tool.noun.article)
                assert f" {said} " not in f" {text} ", (text, said)


# -- the same seed, the same bytes ------------------------------------------------------------------


@pytest.mark.slow
def test_another_process_makes_the_same_bytes_and_another_seed_makes_others(
    folder: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "trellis_train.agents.tooluse.data.generate", str(tmp_path / "again")]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([*command, "--quiet"], check=True, env=environment, stdout=subprocess.DEVNULL)
    assert main([str(tmp_path / "other"), "--seed", "43", "--quiet"]) == 0

    known, again, other = (
        json.loads((each / MANIFEST_FILE).read_text())["sha256"]
        for each in (folder, tmp_path / "again", tmp_path / "other")
    )
    assert len(known) == 10
    assert again == known
    assert all(other[name] != known[name] for name in known)


def test_kinds_are_made_by_themselves_but_never_of_two_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--kind", "agent_benchmark", "--quiet"]) == 0
    assert main([str(tmp_path), "--kind", "agent_retrieval", "--quiet"]) == 0
    rows = json.loads((tmp_path / MANIFEST_FILE).read_text())["rows"]
    assert {name.split("/")[0] for name in rows} == {"agent_benchmark", "agent_retrieval", TOOLS_FILE}

    assert main([str(tmp_path), "--kind", "agent_retrieval", "--seed", "1", "--quiet"]) == EXIT_BAD_REQUEST
    assert "contains data for seed 42" in capsys.readouterr().err


# -- the simulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("no_such_tool", {}, "UNKNOWN_TOOL"),
        ("list_flight", {}, "BAD_ARGUMENTS"),
        ("list_flight", {"city": 3, "date": "2025-01-02"}, "BAD_ARGUMENTS"),
        ("list_flight", {"city": "Porto", "date": "tomorrow"}, "BAD_ARGUMENTS"),
        ("list_flight", {"city": "Porto", "date": "2025-01-02", "more": 1}, "BAD_ARGUMENTS"),
        ("list_flight", ["Porto"], "BAD_ARGUMENTS"),
        ("list_flight", None, "BAD_ARGUMENTS"),
        ("list_flight", {"city": "Porto", "date": "2025-01-02", "limit": float("nan")}, "BAD_ARGUMENTS"),
    ],
)
def test_a_wrong_call_is_refused_with_a_code(
    tools: dict[str, Row], name: str, arguments: Any, code: str
) -> None:
    result = Toolbox(tools.values()).call(name, arguments)

    assert (result["success"], result["error"]["code"]) == (False, code)


def test_a_result_depends_on_the_call_alone(tools: dict[str, Row]) -> None:
    call = {"city": "Porto", "date": "2025-01-02", "limit": 2}
    turned = {"limit": 2.0, "date": "2025-01-02", "city": "Porto"}
    first, second = tools["list_flight"], tools["list_hotel_room"]

    assert simulate(first, call) == simulate(first, turned)
    assert simulate(first, call) != simulate(first, {**call, "city": "Lyon"})
    assert simulate(first, call)["count"] <= 2
    assert simulate(second, {"city": "Porto", "nights": 2})["items"][0]["id"].startswith("HOT-")


def test_a_broken_file_of_tools_is_told_of_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / TOOLS_FILE
    path.write_text('{"name": "one"}\n{"na')

    with pytest.raises(BadTools, match="line 2"):
        load_tools(path)
    path.write_text('{"name": "one"}\n{"name": ["two"]}')
    with pytest.raises(BadTools, match=r"tool 2 .* has no name"):
        load_tools(path)
    with pytest.raises(BadTools, match="cannot be read"):
        load_tools(tmp_path / "nowhere")


# -- the environment --------------------------------------------------------------------------------


def test_the_environment_names_its_tools_and_the_rows_of_four_datasets(folder: Path) -> None:
    manifest = environments.read_manifest(folder)

    assert len(manifest.tools) == manifest.counts["tools"] == 1200
    names = ("", "sft/", "preference/", "retrieval/")
    assert set(manifest.datasets) == {
        f"{name}{split}" for name in names for split in ("train", "eval", "test")
    }
    assert all((folder / path).is_file() for path in manifest.datasets.values())


def test_a_tool_can_be_tried_by_hand(folder: Path) -> None:
    answer = environments.call(folder, "list_flight", {"city": "Porto", "date": "2025-01-02"})
    refused = environments.call(folder, "list_flight", {"city": 3})

    assert answer.error is None
    assert answer.result_count == answer.result["count"]
    assert refused.error == "BAD_ARGUMENTS"


def test_the_reference_of_every_row_to_train_on_earns_everything(folder: Path) -> None:
    for split, count in (("train", 660), ("dev", 165), ("test", 275)):
        tasks = load_tasks(folder / f"rows/rl/{split}.jsonl")
        rows = lines(folder / f"rows/rl/{split}.jsonl")
        assert len(tasks) == count
        for task, row in zip(tasks, rows, strict=True):
            assert score(row["extra_info"]["answer"], task.truth).signed == 1.0
            assert all(tool["name"] in row["prompt"][0]["content"] for tool in task.tools or [])


@pytest.mark.parametrize("split", SPLITS)
def test_a_few_rows_of_the_end_or_the_beginning_have_all_kinds_of_tasks(folder: Path, split: str) -> None:
    """What a run holds out is the end of the rows; it would else measure one kind and train on others."""
    rows = lines(folder / f"rows/rl/{split}.jsonl")
    kinds = {row["data_source"] for row in rows}
    kind_of = {row["extra_info"]["id"]: row["data_source"] for row in rows}
    pairs = [kind_of[pair["sample_id"]] for pair in lines(folder / f"rows/preference/{split}.jsonl")]

    assert len(kinds) == 3
    assert [row["extra_info"]["index"] for row in rows] == list(range(len(rows)))
    for sources in ([row["data_source"] for row in rows], pairs):
        assert set(sources[:16]) == set(sources[-16:]) == kinds


def test_every_kind_of_argument_is_used_by_a_tool(tools: dict[str, Row]) -> None:
    used = {name for tool in tools.values() for name in tool["parameters"]["properties"]}

    assert used == set(vocabulary()["kinds"])


def test_generators_and_formatter_need_no_engine() -> None:
    program = (
        "import sys\n"
        "import trellis_train.agents.tooluse.environment, trellis_train.agents.tooluse.selection.replay\n"
        "print([name for name in ('torch', 'transformers', 'verl', 'ray', 'vllm') if name in sys.modules])\n"
    )

    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert said.stdout.strip() == "[]"
