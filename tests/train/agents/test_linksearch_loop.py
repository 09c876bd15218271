"""Link Search's episodes: who speaks when, what ends them, what they earn and what is logged."""

import asyncio
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.linksearch.generate import generate
from trellis_train.agents.linksearch.loop import LinkSearchLoop
from trellis_train.agents.linksearch.prompts import LAST_TURN
from trellis_train.agents.linksearch.query_rows import query_row, read_queries
from trellis_train.agents.linksearch.reward import RewardWeights, compute_reward
from trellis_train.agents.linksearch.rubric import Rubric

Row = dict[str, Any]
COUNT = render_tool_call("search_profile", {"sql": "SELECT count(*) FROM profiles"})
ROOM = 60_000


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linksearch")
    generate(folder, profiles=100, train=10, evaluation=5, seed=7)
    return folder


@pytest.fixture(scope="module")
def query(environment: Path) -> Row:
    return next(read_queries(environment / "train.jsonl"))


def answer(query: Row) -> str:
    return render_tool_call("return_results", {"results": query["gold_handles"]})


def search(query: Row) -> str:
    return render_tool_call("search_profile", {"sql": query["gold_sql"]})


def play(
    environment: Path,
    query: Row,
    script: list[str],
    *,
    log_folder: Path | None = None,
    room: int = ROOM,
    **options: Any,
) -> tuple[Any, ScriptedServer]:
    tokenizer = make_tool_tokenizer()
    server = ScriptedServer(tokenizer, script)

    async def run() -> Any:
        loop = LinkSearchLoop(
            **loop_arguments(server, tokenizer, prompt_length=8000, response_length=room),
            environment_path=str(environment),
            options=options,
            log_folder=None if log_folder is None else str(log_folder),
        )
        row = {**query_row(query, 0), "global_steps": 3, "session_id": 2}
        return await loop.run({"temperature": 1.0}, raw_prompt=row.pop("prompt"), **row)

    return asyncio.run(run()), server


def stop_reason(output: Any) -> str:
    return str(output.extra_fields["trajectory"]["stop_reason"])


def decode_where(output: Any, bit: int) -> str:
    pairs = zip(output.response_ids, output.response_mask, strict=True)
    return str(make_tool_tokenizer().decode([i for i, b in pairs if b == bit]))


def test_a_perfect_answer_earns_the_most(environment: Path, query: Row) -> None:
    output, _ = play(environment, query, [search(query), answer(query)])

    assert output.reward_score == 3.0
    assert stop_reason(output) == "answered"
    assert output.extra_fields["reward_extra_info"]["acc"] == 1.0


def test_an_episode_tells_what_its_reward_is_made_of(environment: Path, query: Row) -> None:
    full, simple = (
        play(environment, query, [search(query), answer(query)], **mode)[0].extra_fields["reward_parts"]
        for mode in ({}, {"mode": "simple"})
    )

    assert set(full) == {"answer_score", "process", "strategy", "efficiency", "penalty"}
    assert set(simple) == {"answer_score", "call", "tool", "sql", "recall_part"}
    assert (full["answer_score"], full["penalty"], simple["call"]) == (1.0, 0.0, 0.2)


def test_an_episode_tells_its_tokens_and_when_it_first_found_somebody(environment: Path, query: Row) -> None:
    found, _ = play(environment, query, [COUNT, search(query), answer(query)])
    lost, server = play(environment, query, [COUNT, "I give up."])

    told, told_lost = (output.extra_fields["agent"] for output in (found, lost))
    assert told["first_hit_turn"] == 2
    assert "first_hit_turn" not in told_lost
    assert told["tokens"] == len(found.prompt_ids) + len(found.response_ids)
    assert told_lost["sampled_tokens"] == sum(len(ids) for ids in server.sampled)
    reported = found.extra_fields["reward_extra_info"]
    assert (reported["tokens"], reported["found"], reported["found_turn"]) == (told["tokens"], 1.0, 2.0)


def test_the_mask_is_one_on_sampled_ids_and_what_is_masked_holds_every_observation(
    environment: Path, query: Row
) -> None:
    # A4, over an episode with several calls a turn, an error and the last-turn message.
    bad = render_tool_call("search_profile", {"sql": "SELECT nothing"})
    read = render_tool_call("read_profile", {"linkedin_handle": query["gold_handles"][0]})
    script = [f"Let me see.{search(query)}{bad}", read, answer(query)]

    output, server = play(environment, query, script, max_turns=3)

    sampled = [i for ids in server.sampled for i in ids]
    pairs = list(zip(output.response_ids, output.response_mask, strict=True))
    assert [i for i, bit in pairs if bit] == sampled
    assert len(output.response_logprobs) == len(output.response_ids)
    assert all(
        (value == 0.0) == (bit == 0) for value, (_, bit) in zip(output.response_logprobs, pairs, strict=True)
    )
    shown = decode_where(output, 0)
    turns = output.extra_fields["trajectory"]["turns"]
    results = [call["result"] for turn in turns for call in turn["calls"] if call["name"] != "return_results"]
    assert len(results) == 3
    assert all(result in shown for result in results)
    assert LAST_TURN in shown


def test_in_rollout_mode_every_token_counts_and_only_the_outcome_earns(environment: Path, query: Row) -> None:
    masked, _ = play(environment, query, [COUNT, search(query), answer(query)])
    rollout, _ = play(environment, query, [COUNT, search(query), answer(query)], mode="rollout")

    assert rollout.response_ids == masked.response_ids
    assert rollout.response_mask == [1] * len(rollout.response_ids)
    assert 0 < sum(masked.response_mask) < len(masked.response_mask)
    assert rollout.reward_score == 1.0


def test_an_answer_in_the_last_turn_counts_and_there_is_none_after_it(environment: Path, query: Row) -> None:
    # A7
    answered, _ = play(environment, query, [COUNT, COUNT, answer(query), COUNT], max_turns=3)
    idle, server = play(environment, query, [COUNT, COUNT, search(query), answer(query)], max_turns=3)

    assert (stop_reason(answered), answered.extra_fields["reward_extra_info"]["acc"]) == ("answered", 1.0)
    assert stop_reason(idle) == "turns"
    assert len(server.sampled) == 3
    last = [t for t in idle.extra_fields["trajectory"]["turns"] if t["role"] == "assistant"][-1]
    assert last["calls"][0]["result_count"] == len(query["gold_handles"]), "the last turn's call does run"
    assert -1.0 <= idle.reward_score <= -0.25


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("<tool_call>{oops}</tool_call>", "parse"),
        (render_tool_call("delete_profile", {}), "name"),
        (render_tool_call("read_profile", {"handle": "x"}), "args"),
    ],
)
def test_two_calls_that_cannot_be_understood_are_forgiven_the_third_ends_the_episode(
    environment: Path, query: Row, broken: str, reason: str
) -> None:
    saved, _ = play(environment, query, [broken, broken, answer(query)])
    lost, server = play(environment, query, [broken, broken, broken, answer(query)])

    assert stop_reason(saved) == "answered"
    assert '"success": false' in decode_where(saved, 0)
    assert stop_reason(lost) == reason
    assert len(server.sampled) == 3
    assert -2.0 <= lost.reward_score <= -1.05


def test_at_most_four_calls_of_a_turn_are_run(environment: Path, query: Row) -> None:
    output, _ = play(environment, query, [COUNT * 6, answer(query)])

    calls = output.extra_fields["trajectory"]["turns"][2]["calls"]
    assert [call["error"] for call in calls] == [None] * 4 + ["TOO_MANY_CALLS"] * 2
    assert output.extra_fields["reward_extra_info"]["searches"] == 4


def test_a_turn_without_a_call_ends_the_episode(environment: Path, query: Row) -> None:
    output, _ = play(environment, query, ["I give up."])

    assert stop_reason(output) == "no_call"
    assert output.reward_score == -0.6


def test_an_episode_ends_where_the_context_does(environment: Path, query: Row) -> None:
    full, _ = play(environment, query, [COUNT, answer(query)], room=150)
    cut, _ = play(environment, query, [COUNT, answer(query)], room=40)

    assert (stop_reason(full), stop_reason(cut)) == ("context", "context")
    assert len(full.response_ids) <= 150
    assert full.response_mask == [1] * len(full.response_ids)
    assert cut.extra_fields["agent"]["malformed"] == 0


def test_hostile_sql_is_an_observation_and_the_episode_goes_on(environment: Path, query: Row) -> None:
    hostile = [
        "DROP TABLE profiles",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT * FROM sqlite_master",
        "ATTACH '/etc/passwd' AS x",
    ]
    script = [render_tool_call("search_profile", {"sql": sql}) for sql in hostile]

    output, _ = play(environment, query, [*script, answer(query)])

    turns = output.extra_fields["trajectory"]["turns"]
    assert all(
        call["error"] for turn in turns for call in turn["calls"][:1] if call["name"] == "search_profile"
    )
    assert stop_reason(output) == "answered"


def test_the_simple_mode_is_one_turn_with_a_heuristic_reward(environment: Path, query: Row) -> None:
    good, server = play(environment, query, [search(query), answer(query)], mode="simple")
    denied, _ = play(
        environment, query, [render_tool_call("search_profile", {"sql": "DROP TABLE x"})], mode="simple"
    )
    unknown, _ = play(environment, query, [render_tool_call("nope", {})], mode="simple")
    broken, _ = play(environment, query, ["<tool_call>x</tool_call>"], mode="simple")

    rewards = [each.reward_score for each in (good, denied, unknown, broken)]
    assert rewards == pytest.approx([1.0, 0.4, 0.2, 0.0])
    assert len(server.sampled) == 1


def test_what_is_reported_has_the_same_names_however_an_episode_ends(environment: Path, query: Row) -> None:
    scripts: list[list[str]] = [[search(query), answer(query)], ["no"], ["<tool_call>"] * 3]

    outputs = [play(environment, query, script)[0] for script in scripts]
    outputs.append(play(environment, query, ["no"], mode="simple")[0])

    assert len({tuple(each.extra_fields["reward_extra_info"]) for each in outputs}) == 1
    told = [set(each.extra_fields["agent"]) - {"first_hit_turn"} for each in outputs]
    assert all(names == told[0] for names in told)


def test_a_log_tells_all_of_a_rollout_and_its_reward_recomputes(
    environment: Path, query: Row, tmp_path: Path
) -> None:
    # A11 for one rollout; of a run: tests/train/agents/test_linksearch_engine.py.
    output, _ = play(
        environment, query, [COUNT, search(query), answer(query)], log_folder=tmp_path, detailed_logging=True
    )

    log = json.loads((tmp_path / "step_3" / f"query_{query['id']}" / "rollout_2.json").read_text())
    assert compute_reward(Rubric(**log["rubric"])).total == log["reward"] == output.reward_score
    assert log["reward_weights"] == asdict(RewardWeights())
    assert [call["name"] for call in log["tool_calls"]] == [
        "search_profile",
        "search_profile",
        "return_results",
    ]
    assert log["tool_calls"][1]["result_count"] == len(query["gold_handles"])
    assert log["predicted_handles"] == log["gold_handles"] == sorted(query["gold_handles"])
    assert log["mask"]["ones"] == log["mask"]["sampled"] == sum(output.response_mask)
    assert log["conversation"][1] == {"role": "user", "content": query["query"]}
    assert list(tmp_path.rglob("*.unfinished-*")) == []


def test_the_weights_of_the_options_make_the_reward(environment: Path, query: Row, tmp_path: Path) -> None:
    turns = [search(query), search(query), answer(query)]
    weights = {"reward_score": 0.5, "penalty_needless": 0.3}

    usual, _ = play(environment, query, turns)
    output, _ = play(environment, query, turns, log_folder=tmp_path, detailed_logging=True, **weights)

    (path,) = tmp_path.rglob("rollout_2.json")
    log = json.loads(path.read_text())
    # One search is made twice.
    assert usual.reward_score - output.reward_score == pytest.approx(1.0 * log["rubric"]["score"] + 0.2)
    used = RewardWeights(**log["reward_weights"])
    assert (used.reward_score, used.penalty_needless) == (0.5, 0.3)
    assert compute_reward(Rubric(**log["rubric"]), used).total == log["reward"] == output.reward_score


def test_no_log_is_written_unless_asked_for(environment: Path, query: Row, tmp_path: Path) -> None:
    play(environment, query, [answer(query)], log_folder=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_missing_database_is_told_of_before_any_episode(query: Row, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="profile database not found"):
        play(tmp_path, query, [])


def test_the_episodes_of_a_step_run_side_by_side(environment: Path, query: Row) -> None:
    """Against a stand-in for the rollout engine that takes 2 ms a token, whatever else it samples."""
    tokenizer = make_tool_tokenizer()
    script = [search(query), COUNT, answer(query)]

    async def run(count: int) -> float:
        server = ScriptedServer(tokenizer, script, token_s=0.002)
        arguments = loop_arguments(server, tokenizer, prompt_length=8000, response_length=ROOM)
        loop = LinkSearchLoop(**arguments, environment_path=str(environment))
        rows = [query_row(query, number) for number in range(count)]
        started = time.monotonic()
        outputs = await asyncio.gather(*(loop.run({}, raw_prompt=row.pop("prompt"), **row) for row in rows))
        assert [stop_reason(output) for output in outputs] == ["answered"] * count
        return time.monotonic() - started

    alone, together = asyncio.run(run(1)), asyncio.run(run(32))

    assert together <= 3 * alone
