"""The serving benchmark: which streams count as lost, and what the figures are."""

import asyncio

import pytest
from trellis_cli.errors import Problem
from trellis_testing.engine_server import USAGE, EngineServer
from trellis_tools.bench.serving import Address, Round, Stream, compare, run_round

TOKENS = USAGE["completion_tokens"]


def ask(engine: EngineServer, streams: int = 4, tokens: int = TOKENS) -> Round:
    address = Address(f"http://127.0.0.1:{engine.port}", engine.key, "m")
    return asyncio.run(run_round(address, 1, streams=streams, tokens=tokens))


def test_all_streams_that_come_whole_count() -> None:
    with EngineServer("key").running() as engine:
        done = ask(engine)

    assert (done.lost, len(done.streams)) == (0, 4)
    assert done.tokens_per_s == pytest.approx(4 * TOKENS / done.took_s)
    assert 0 < done.first_token_p95_s < done.took_s
    assert len({body["prompt"] for body in engine.bodies}) == 4


def test_a_stream_that_breaks_is_refused_or_is_too_short_is_lost() -> None:
    with EngineServer("key").running() as engine:
        engine.dies_after = 1
        assert ask(engine).lost == 4
        engine.dies_after = None
        engine.refusal = (429, {"message": "too many"})
        assert ask(engine).lost == 4
        engine.refusal = None
        assert ask(engine, tokens=TOKENS + 1).lost == 4


def test_a_round_without_answers_has_no_time_to_first_token() -> None:
    with pytest.raises(Problem, match="fewer than two"):
        _ = Round([Stream(None, 0)] * 4, 1.0).first_token_p95_s


def make_round(first_s: float, took_s: float, lost: int = 0) -> Round:
    return Round([Stream(first_s, 10)] * (4 - lost) + [Stream(None, 0)] * lost, took_s)


def test_the_platform_is_held_against_the_bare_engine() -> None:
    good = list(compare([(make_round(1.0, 1.0), make_round(1.05, 1.05))]))
    bad = list(compare([(make_round(1.0, 1.0), make_round(1.2, 1.2, lost=1))]))

    assert [result.name for result in good] == [
        "serving_answered",
        "serving_first_token_p95",
        "serving_speed",
    ]
    assert [result.is_kept for result in good] == [True, True, True]
    assert [result.is_kept for result in bad] == [False, False, False]
    assert (bad[0].ours, bad[0].theirs) == (3, 4)
