"""What a local run of Link Search is given: queries, a database, a model, and its first lessons."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.agent_starter import IGNORED, encode
from trellis_testing.stand_in_hub import StandInHub
from trellis_train.agents.linksearch import demonstrations, setup
from trellis_train.agents.linksearch.generate import generate
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.rows import BadQuery
from trellis_train.agents.linksearch.sources import EVAL, TRAIN, gold_of, read_rows
from trellis_train.agents.starter import conversation_texts, make_tokenizer, write_model

OPTIONS = Options(max_turns=4)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linksearch") / "environment"
    generate(folder, profiles=60, train=20, evaluation=8, seed=3, most_constraints=1)
    return folder


@pytest.fixture(scope="module")
def rows(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    file = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    demonstrations.write_demonstrations(file, [environment], OPTIONS, [environment / "eval.jsonl"], seed=0)
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def model(environment: Path, rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    phrases = demonstrations.phrases(OPTIONS, environment / "profiles.db")
    write_model(folder, make_tokenizer(conversation_texts(rows), phrases=phrases, vocabulary=600), seed=0)
    return folder


def test_queries_are_read_in_the_forms_that_others_write_them_in(tmp_path: Path) -> None:
    lines = [
        {"query": "a", "answer": "Ada-B; https://linkedin.com/in/alan-t/"},
        {"question": "b", "handles": ["@Ada-B"]},
    ]
    for name in ("train.jsonl", "test.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    read = read_rows(str(tmp_path), TRAIN, None)

    assert [gold_of(row) for row in read] == [["ada-b", "alan-t"], ["ada-b"]]
    assert [row["extra_info"]["split"] for row in read] == ["train", "train"]


def write_parquet(folder: Path, name: str, first: int, count: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    rows = [{"query": f"who is {n}?", "answer": f"person-{n}"} for n in range(first, first + count)]
    pq.write_table(pa.Table.from_pylist(rows), folder / name)


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [int(gold_of(row)[0].removeprefix("person-")) for row in rows]


def test_all_parts_of_a_split_are_read(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a", "data/train-00000-of-00002.parquet", 0, 10)
    write_parquet(tmp_path / "a", "data/train-00001-of-00002.parquet", 10, 10)
    write_parquet(tmp_path / "a", "data/validation-00000-of-00001.parquet", 20, 3)
    write_parquet(tmp_path / "b", "train/0000.parquet", 0, 2)
    write_parquet(tmp_path / "b", "train/0001.parquet", 2, 2)
    write_parquet(tmp_path / "b", "test/0000.parquet", 4, 1)

    assert numbers(read_rows(str(tmp_path / "a"), TRAIN, None)) == list(range(20))
    assert numbers(read_rows(str(tmp_path / "a"), EVAL, None)) == [20, 21, 22]
    assert numbers(read_rows(str(tmp_path / "b"), TRAIN, 3)) == [0, 1, 2]
    assert numbers(read_rows(str(tmp_path / "b"), EVAL, None)) == [4]


def test_rows_without_splits_are_cut_so_that_nothing_is_trained_on_and_measured_with(tmp_path: Path) -> None:
    write_parquet(tmp_path, "part-0.parquet", 0, 15)
    write_parquet(tmp_path, "part-1.parquet", 15, 15)
    (tmp_path / "own.jsonl").write_text(
        "".join(
            json.dumps({"query": "?", "answer": f"person-{n}", "split": "test" if n == 1 else "train"}) + "\n"
            for n in range(4)
        )
    )

    assert numbers(read_rows(str(tmp_path / "own.jsonl"), TRAIN, None)) == [0, 2, 3]
    assert numbers(read_rows(str(tmp_path / "own.jsonl"), EVAL, None)) == [1]
    (tmp_path / "own.jsonl").unlink()
    assert numbers(read_rows(str(tmp_path), TRAIN, None)) == list(range(27))
    assert numbers(read_rows(str(tmp_path), EVAL, None)) == [27, 28, 29]


@pytest.fixture
def hub() -> Iterator[StandInHub]:
    train = b'{"query": "who?", "answer": "ada-b;alan-t"}\n{"query": "and who?", "answer": "bob"}\n'
    test = b'{"query": "which?", "handles": ["carl"]}\n'
    hub = StandInHub({"train.jsonl": train, "test.jsonl": test}, repository="team/people", kind="datasets")
    yield hub
    hub.close()


def test_a_dataset_of_the_hub_gives_its_splits(hub: StandInHub, tmp_path: Path) -> None:
    program = (
        "import json; from trellis_train.agents.linksearch.sources import *;"
        "print(json.dumps([[gold_of(r) for r in read_rows(p, s, 1)] for p, s in "
        "(('team/people', 'train'), ('hub:team/people', 'eval'))]))"
    )

    env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [[["ada-b", "alan-t"]], [["carl"]]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no queries"),
        ("{", "is not JSON"),
        ('{"query": "a"}\n', "no handles"),
        ("[1]\n", "not an object"),
    ],
)
def test_queries_that_are_none_are_a_clear_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "train.jsonl").write_text(text)

    with pytest.raises(BadQuery, match=said):
        read_rows(str(tmp_path), TRAIN, None)


def test_a_sound_set_up_is_found_sound_and_laid(environment: Path, model: Path, tmp_path: Path) -> None:
    database = environment / "profiles.db"

    counts = setup.lay(database, str(environment), tmp_path / "laid", train=10, evaluation=99)

    assert counts == {"train": 10, "eval": 8}
    assert (tmp_path / "laid" / "profiles.db").resolve() == database.resolve()
    assert "60 profiles" in setup.check_database(database)
    assert "8 eval queries (of 99 asked for)" in setup.check_data(
        str(environment), database, train=10, evaluation=99
    )
    assert "qwen2" in setup.check_model(str(model), max_prompt=400, options=OPTIONS)


def test_a_missing_or_foreign_database_is_told_with_what_to_do(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE profiles (name TEXT)")
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"no database at all" * 100)

    for path, said in (
        (tmp_path / "none.db", "database not found"),
        (foreign, "no column id"),
        (noise, "not a database"),
    ):
        with pytest.raises(setup.Unusable, match=said) as raised:
            setup.check_database(path)
        assert "trellis linksearch generate" in raised.value.advice


def test_handles_that_the_database_does_not_have_are_found(environment: Path, tmp_path: Path) -> None:
    for name in ("train.jsonl", "eval.jsonl"):
        (tmp_path / name).write_text('{"query": "who?", "answer": "nobody-of-them"}\n')

    with pytest.raises(setup.Unusable, match="nobody-of-them"):
        setup.check_data(str(tmp_path), environment / "profiles.db", train=5, evaluation=5)


def test_a_model_without_tools_in_its_template_is_found(model: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    tokenizer.save_pretrained(tmp_path)
    AutoConfig.from_pretrained(model).save_pretrained(tmp_path)

    with pytest.raises(setup.Unusable, match="does not support tools"):
        setup.check_model(str(tmp_path), max_prompt=400, options=OPTIONS)


def test_demonstrations_keep_to_what_an_evaluation_does_not_ask(
    environment: Path, rows: list[dict[str, Any]]
) -> None:
    asked = {json.loads(line)["query"] for line in (environment / "eval.jsonl").read_text().splitlines()}

    assert len(rows) > 100
    assert not asked & {row["messages"][1]["content"] for row in rows}


def test_careful_demonstrations_earn_a_perfect_score_and_the_others_do_not(environment: Path) -> None:
    from trellis_train.agents.linksearch.tools import ProfileTools

    tools = ProfileTools(environment / "profiles.db")
    query = next(
        query
        for query in map(json.loads, (environment / "train.jsonl").read_text().splitlines())
        if len(query["gold_handles"]) > 1
    )

    answers = {
        manner: json.loads(
            demonstrations.demonstrate(query, tools, OPTIONS, manner)[-1]["content"].split("\n")[1]
        )["arguments"]["results"]
        for manner in demonstrations.SHARES
    }

    assert sorted(answers["careful"]) == sorted(answers["reads"]) == sorted(query["gold_handles"])
    assert answers["hasty"] == answers["careful"][:1]
    assert answers["resigned"] == []


def test_rehearsals_answer_with_the_rows_that_they_show(environment: Path) -> None:
    ours, again = (
        list(demonstrations.rehearse(environment, options=OPTIONS, seed=2, count=20)) for _ in range(2)
    )

    assert ours == again
    for row in ours:
        call, result, answer = (each["content"] for each in row["messages"][2:])
        found = [each["linkedin_handle"] for each in json.loads(result)["rows"]]
        assert json.loads(answer.split("\n")[1])["arguments"]["results"] == found
        sql = json.loads(call.split("\n")[1])["arguments"]["sql"]
        assert sqlite3.connect(environment / "profiles.db").execute(sql) is not None
    assert len({row["messages"][1]["content"] for row in ours}) > 15


def test_an_untaught_starter_already_copies_what_stood_behind_a_token(model: Path) -> None:
    """Its induction heads: the token to repeat is among the likeliest far more often than by chance."""
    import torch
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(model)
    drawn = torch.randperm(network.config.vocab_size, generator=torch.Generator().manual_seed(0))[:240]
    ids = drawn.reshape(20, 12).repeat(1, 2)

    with torch.no_grad():
        likeliest = network(ids).logits[:, 12:-1].topk(10).indices

    is_copied = (likeliest == ids[:, 13:, None]).any(-1)
    assert is_copied.float().mean() > 5 * 10 / network.config.vocab_size


def test_induction_heads_need_a_key_value_head_each(model: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM
    from trellis_train.agents.induction import add_induction_heads

    config = AutoConfig.from_pretrained(model, num_key_value_heads=2)

    with pytest.raises(ValueError, match="key-value head"):
        add_induction_heads(AutoModelForCausalLM.from_config(config))


def test_the_starter_is_small_and_its_prompts_are_short(model: Path, rows: list[dict[str, Any]]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    parameters = sum(each.numel() for each in AutoModelForCausalLM.from_pretrained(model).parameters())
    prompt = tokenizer.apply_chat_template(
        rows[0]["messages"][:2],
        tools=json.loads(rows[0]["tools"]),
        add_generation_prompt=True,
        tokenize=False,
    )

    assert parameters < 5_000_000
    assert len(tokenizer.encode(prompt)) < 100
    assert len(tokenizer.encode("\n")) == 1
    assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in conversation_texts(rows[:50]))


def test_only_the_agents_own_turns_are_taught(model: Path, rows: list[dict[str, Any]]) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)

    ids, labels = encode(tokenizer, rows[0])

    taught = tokenizer.decode([label for label in labels if label != IGNORED])
    said = [each["content"] for each in rows[0]["messages"] if each["role"] == "assistant"]
    assert taught == "".join(f"{text}<|im_end|>" for text in said)
    text = tokenizer.apply_chat_template(
        rows[0]["messages"], tools=json.loads(rows[0]["tools"]), tokenize=False
    )
    assert ids == tokenizer.encode(text)


def test_the_same_seed_gives_the_same_starter(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_model(tmp_path / name, make_tokenizer(conversation_texts(rows), vocabulary=400), seed=4)

    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_a_split_that_is_not_there_is_said(tmp_path: Path) -> None:
    for name in ("train.jsonl", "other.jsonl"):
        (tmp_path / name).write_text('{"query": "a", "answer": "b"}\n')

    with pytest.raises(BadQuery, match="no file for the split eval"):
        read_rows(str(tmp_path), EVAL, None)
