"""Rewards of tool use, worked out by hand from the formulas (B6).

Each entry's comment is the arithmetic: C completion (.40), F tool F1 (.25), E efficiency (.15),
T timing (.10), M form (.10), then penalties. Where a row has no answer in prose, C is the coverage.
"""

import pytest
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.tooluse.scoring.components import Trace
from trellis_train.agents.tooluse.scoring.reward import score
from trellis_train.agents.tooluse.scoring.truth import GroundTruth, Step

BAD_JSON = "<tool_call>{oops}</tool_call>"
UNCLOSED = '<tool_call>{"name": "a"'
CALL_IN_PROSE = 'I would use {"name": "a", "arguments": {}} now.'


def call(name: str, x: int = 1) -> str:
    return render_tool_call(name, {"x": x})


def truth(names: str, *, answer: str | None = None, available: str | None = None) -> GroundTruth:
    """``"ab"``: steps a and b, each with x=1."""
    return GroundTruth(
        steps=[Step(name=name, arguments={"x": 1}) for name in names],
        answer=answer,
        available_tools=None if available is None else list(available),
    )


def calls(names: str) -> str:
    return "\n".join(map(call, names))


RESULT = GroundTruth(steps=[Step(name="a", arguments={"x": 1})], result="r")
ONE, THREE, NONE = truth("a"), truth("abc"), truth("")
FORTY_TWO = truth("", answer="42")
ANYTHING = GroundTruth(steps=[Step(name="a")])
TWICE = GroundTruth(steps=[Step(name="a", arguments={"x": x}) for x in (1, 2)])
ALL_FORM_FAULTS = "\n".join([BAD_JSON, BAD_JSON, CALL_IN_PROSE, UNCLOSED])

TABLE = [
    # -- one call is wanted
    (calls("a"), ONE, None, 1.0),  # .40 + .25 + .15 + .10 + .10
    ("", ONE, None, 0.25),  # C 0, F 0, E 1: .15, T 0 (no call made), M .10
    (calls("b"), ONE, None, -0.05),  # .15 + .10; T: o = 0; wrong tool -.3
    # C .40, F 2/3: .1666667, E .8: .12, T .10, M .10 = .8866667; wrong tool -.3
    (calls("ab"), ONE, None, 0.5866667),
    (calls("aa"), ONE, None, 0.75),  # .40 + .25 + E .8: .12 + T .8: .08 + .10 = .95; redundant -.2
    (calls("aaa"), ONE, None, 0.5),  # .40 + .25 + E .6: .09 + T .6: .06 + .10 = .90; redundant -.4
    (calls("aaaa"), ONE, None, 0.45),  # .40 + .25 + E .4: .06 + T .4: .04 + .10 = .85; at most -.4
    (call("a") + call("a", 2), ONE, None, 0.96),  # .40 + .25 + E .8: .12 + T 1 - .1 (retry): .09 + .10
    # -- faults of form
    (BAD_JSON + calls("a"), ONE, None, 0.88),  # .40 + .25 + .15 + .10 + M .8: .08 = .98; format -.1
    (calls("a") + UNCLOSED, ONE, None, 0.87),  # .90 + M .7: .07 = .97; format -.1
    (BAD_JSON * 3, ONE, None, 0.11),  # E .15 + M 1 - .4 (at most): .06 = .21; format -.1
    (CALL_IN_PROSE, ONE, None, 0.13),  # E .15 + M .8: .08 = .23; format -.1
    (calls("a") + " I used a(x=1).", ONE, None, 0.88),  # .90 + M .8: .08 = .98; format -.1
    (ALL_FORM_FAULTS, ONE, None, 0.06),  # E .15 + M 1 - .3 - .4 - .2 = .1: .01 = .16; format -.1
    (calls("a") + "</tool_call>", ONE, None, 0.87),  # a stray closing tag does not pair: as above
    (f"<think>{calls('b')}</think>{calls('a')}", ONE, None, 1.0),  # what was thought does not count
    # -- tools that there are not
    (calls("z"), truth("a", available="ab"), None, -0.15),  # .15 + .10; hallucinated -.4
    # E .8: .12 + .10 = .22; hallucinated -.4, wrong tool -.3
    (calls("zb"), truth("a", available="ab"), None, -0.48),
    # C .40, F 2/3: .1666667, E .8: .12, T .10, M .10 = .8866667; hallucinated -.4
    (calls("az"), truth("a", available="ab"), None, 0.4866667),
    # -- no call is wanted
    ("Good morning.", NONE, None, 1.0),  # coverage 1, F 1, E 1, T 1, M 1
    (calls("b"), NONE, None, 0.245),  # C .5: .20 + F .5: .125 + E .8: .12 + T 0 + .10 = .545; wrong -.3
    (calls("bc"), NONE, None, 0.215),  # .20 + .125 + E .6: .09 + 0 + .10 = .515; wrong -.3
    (calls("bb"), NONE, None, 0.015),  # .515 as above; wrong -.3, redundant -.2
    ("It is 42.", FORTY_TWO, None, 1.0),  # C .6·1 + .4·1
    ("I do not know.", FORTY_TWO, None, 0.84),  # C .6: .24 + .25 + .15 + .10 + .10
    ("It is 142.", FORTY_TWO, None, 0.84),  # another number
    (calls("b") + "42", FORTY_TWO, None, 0.325),  # C .3 + .4: .28 + .125 + .12 + 0 + .10 = .625; wrong -.3
    # -- a plan of three steps
    (calls("abc"), THREE, None, 1.0),
    # C 2/3: .2666667, F 4/5: .20, E .15, T 2/3: .0666667, M .10
    (calls("ab"), THREE, None, 0.7833333),
    (calls("cba"), THREE, None, 0.9333333),  # T: longest common subsequence 1 of 3: .0333333
    (calls("acb"), THREE, None, 0.9666667),  # T 2/3: .0666667
    # C .40, F 6/7: .2142857, E 1 - .2/3: .14, T .10, M .10 = .9542857; wrong -.3
    (calls("abcd"), THREE, None, 0.6542857),
    (calls("abca"), THREE, None, 0.77),  # .40 + .25 + .14 + T .8: .08 + .10 = .97; redundant -.2
    # C 1/3: .1333333, F 1/2: .125, E .15, T 1/3: .0333333, M .10
    (calls("a"), THREE, None, 0.5416667),
    (calls("def"), THREE, None, -0.05),  # .15 + .10; wrong tools -.3, once
    # .40 + .25 + E 1 - .2/3: .14 + T 1 - .1: .09 + .10
    (call("a") + call("b") + call("a", 2) + call("c"), THREE, None, 0.98),
    # -- the reference calls one tool twice
    (call("a") + call("a", 2), TWICE, None, 1.0),  # neither duplicate nor retry
    (call("a"), TWICE, None, 0.825),  # F 1/2, of two steps one: .125; T 1/2: .05
    # -- arguments, of which an equal one counts 1, another value .25, a missing or needless one 0
    (call("a", 2), ONE, None, 0.8125),  # F .25: .0625
    (render_tool_call("a", {}), ONE, None, 0.75),  # F 0
    (render_tool_call("a", {"y": 1}), ONE, None, 0.75),  # F 0
    (render_tool_call("a", {"x": "1.0", "y": 1}), ONE, None, 0.875),  # F 1/2: one of two names is right
    (call("a", 2) + call("a"), ONE, None, 0.7725),  # the first one counts: F .0625; E .8, T .9, as above
    (call("a") + call("b", 2), truth("ab"), None, 0.90625),  # F (1 + .25)/2: .15625
    (call("a", 2) + call("a"), TWICE, None, 1.0),  # the steps of one tool in either order
    (render_tool_call("a", {"z": 5}), ANYTHING, None, 1.0),  # the reference says nothing of arguments
    # -- what came of the calls is known
    (calls("a"), ONE, Trace((True,)), 1.0),  # C .4 + .3 + .3
    (calls("a"), ONE, Trace((False,)), 0.6),  # C 0: .25 + .15 + .10 + .10
    (calls("a"), ONE, Trace((), has_timed_out=True), 0.1),  # as above; time-out -.5
    (calls("aa"), ONE, Trace((True, False)), 0.75),  # the repeat does not count in C: .95; redundant -.2
    # C .4·2/3 + .3·2/3 + .3 = .7666667: .3066667 + .25 + .15 + .10 + .10
    (calls("abc") + " done", truth("abc", answer="done"), Trace((True, False, True)), 0.9066667),
    ("", NONE, Trace(()), 1.0),
    # C .4 + .3 + 0: .28, the last call gave something else
    (calls("a"), RESULT, Trace((True,), results=("other",)), 0.88),
    (calls("a"), RESULT, Trace((True,), results=("r",)), 1.0),
    (calls("a"), RESULT, Trace((True,)), 1.0),  # what it gave is not known: coverage instead
    # C 0, F 0, E n = 4: .4: .06, T 0, M .1: .01 = .07; -.3 -.4 -.1 -.5 -.4 = -1.7: cut at -1
    (calls("zzzb") + ALL_FORM_FAULTS, truth("a", available="ab"), Trace((), has_timed_out=True), -1.0),
]


@pytest.mark.parametrize(("text", "reference", "trace", "expected"), TABLE)
def test_a_reward_is_what_the_formulas_give_by_hand(
    text: str, reference: GroundTruth, trace: Trace | None, expected: float
) -> None:
    reward = score(text, reference, trace)

    assert reward.signed == pytest.approx(expected, abs=1e-6), reward.components | reward.penalties
    assert reward.total == pytest.approx(max(0.0, expected), abs=1e-6)


def test_the_table_has_at_least_thirty_rewards() -> None:
    assert len(TABLE) >= 30
