"""Where the time of a step goes: spans of phases, the life of responses, and what is told of them."""

from types import SimpleNamespace

import pytest
from trellis_contracts.events import MAX_PARTS_OF_STEP, MAX_SPANS, MAX_TIMED_RESPONSES
from trellis_train.hooks.process_spans import Place
from trellis_train.hooks.timeline import (
    MAX_TIMELINES,
    Lane,
    PhaseTimes,
    ResponseLife,
    Timings,
    add_up_spans,
    as_parts,
    as_span,
    describe_step,
    is_due,
    measure_responses,
)
from trellis_train.rollout.response_times import PARTS_KEY, SPAN_KEY, begin_response, end_response, note_part

HERE = Place("node-a", 4711, ("0",))


class Clock:
    """Says the seconds that it is told."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_verls_timers_leave_spans_beside_their_sums() -> None:
    clock = Clock()
    timings = Timings({}, clock)
    for phase, end, took in (("gen", 103.0, 3.0), ("update_actor", 105.0, 2.0), ("gen", 106.0, 1.0)):
        clock.now = end
        timings[phase] = timings.get(phase, 0)
        timings[phase] += took
    timings["step"] = 6.0

    assert dict(timings) == {"gen": 4.0, "update_actor": 2.0, "step": 6.0}
    assert timings.spans == [("gen", 100.0, 103.0), ("update_actor", 103.0, 105.0), ("gen", 105.0, 106.0)]


def test_the_phases_of_steps_are_told_as_means_since_they_were_taken() -> None:
    clock = Clock()
    times = PhaseTimes(clock)
    for _ in range(2):
        clock.now += 1.0
        times.begin_step()
        clock.now += 3.0
        times.mark("forward_backward")
        clock.now += 2.0
        times.mark("optimizer")

    taken = times.take()

    assert taken == {
        "timing_s/between": 1.0,
        "timing_s/forward_backward": 3.0,
        "timing_s/optimizer": 2.0,
        "timing_s/step": 6.0,
    }
    assert times.take() == {}


def test_a_validation_is_none_of_the_steps_time_and_its_batches_are_one_span() -> None:
    clock = Clock()
    times = PhaseTimes(clock)
    times.begin_step()
    for _ in range(3):
        with times.measure("testing"):
            clock.now += 2.0

    taken = times.take("testing")
    spans = times.begin_step()

    assert taken == {"timing_s/testing": 6.0}
    assert spans[-1] == ("testing", 100.0, 106.0)
    assert "timing_s/testing" not in times.take()


def test_a_phase_that_raises_is_timed() -> None:
    clock = Clock()
    times = PhaseTimes(clock)

    def fail() -> None:
        with times.measure("testing"):
            clock.now += 1.0
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert times.take("testing") == {"timing_s/testing": 1.0}


def test_an_event_counts_from_the_beginning_of_the_step() -> None:
    spans = [("update_actor", 104.0, 106.5), ("gen", 101.0, 104.0)]

    event = describe_step(7, spans, started_at=100.5, responses=[ResponseLife("a", 101.0, 103.0, 12)])

    assert event is not None
    assert (event.step, event.duration_s, event.started_at.timestamp()) == (7, 6.0, 100.5)
    (lane,) = event.lanes
    assert [(span.phase, span.start_s, span.end_s) for span in lane.spans] == [
        ("gen", 0.5, 3.5), ("update_actor", 3.5, 6.0)
    ]  # fmt: skip
    assert [(each.start_s, each.end_s, each.tokens) for each in event.responses] == [(0.5, 2.5, 12)]
    assert describe_step(7, []) is None


def test_of_many_responses_the_longest_are_told() -> None:
    responses = [ResponseLife("a", 100.0, 101.0 + number / 1000, 1) for number in range(5000)]

    event = describe_step(1, [("gen", 100.0, 110.0)], responses=responses)

    assert event is not None
    assert event.response_count == 5000
    assert len(event.responses) <= MAX_TIMED_RESPONSES
    ends = sorted(each.end_s for each in event.responses)
    assert ends[-1] == pytest.approx(5.999)
    assert ends[0] < 1.1


def test_timelines_of_a_long_run_are_bounded() -> None:
    told = [step for step in range(1, 10_001) if is_due(step, 10_000)]

    assert len(told) == MAX_TIMELINES
    assert all(is_due(step, 50) for step in range(1, 51))


def test_how_long_responses_took_is_measured_with_the_tail_that_engines_wait_for() -> None:
    spans = [(0.0, float(end)) for end in (*[10] * 9, 40)]

    assert measure_responses(spans) == {
        "response_time_s/median": 10.0,
        "response_time_s/max": 40.0,
        "response_time_s/tail_fraction": 0.75,
    }
    assert measure_responses([]) == {}


def test_a_worker_notes_the_life_of_a_response_with_all_of_its_outputs() -> None:
    outputs = [SimpleNamespace(extra_fields={}), SimpleNamespace(extra_fields={"a": 1})]
    begin_response()
    note_part("generate", 1.0, 2.0)

    end_response(outputs)
    note_part("reward", 2.0, 2.5)

    first, second = (as_span(output.extra_fields[SPAN_KEY]) for output in outputs)
    parts = [as_parts(output.extra_fields[PARTS_KEY]) for output in outputs]
    assert parts == [[("generate", 1.0, 2.0), ("reward", 2.0, 2.5)]] * 2
    assert first == second
    assert first is not None
    assert first[0] <= first[1]
    assert as_span(None) is None
    assert as_parts(None) == []


def test_the_load_of_engines_counts_from_the_beginning_of_the_step() -> None:
    loads = [[(101.0, 4, 0, 0.5), (103.0, 0, 0, 0.0)]]

    event = describe_step(3, [("gen", 100.5, 103.0)], started_at=100.0, loads=loads)

    assert event is not None
    assert event.engines[0].at_s == [1.0, 3.0]


def test_a_run_of_several_processes_has_a_lane_for_each() -> None:
    spans = [[("train_batch", 101.0, 104.0)], [("between", 100.0, 101.5), ("train_batch", 101.5, 104.5)]]
    ranks = [Lane(f"rank {rank}", HERE, own) for rank, own in enumerate(spans)]

    event = describe_step(3, spans[0], ranks=ranks)

    assert event is not None
    assert [lane.name for lane in event.lanes] == ["rank 0", "rank 1"]
    assert [(span.start_s, span.end_s) for span in event.lanes[0].spans] == [(1.0, 4.0)]
    assert event.duration_s == 4.5


def test_the_processes_that_the_loop_calls_have_lanes_of_what_they_did_during_the_step() -> None:
    worker = Lane("worker 0", HERE, [("update_weights", 90.0, 99.0), ("log_prob", 103.0, 104.0)])
    engine = Lane("engine 0", Place("node-b", 7), [("generate", 99.0, 102.0)])

    event = describe_step(3, [("gen", 100.0, 105.0)], place=HERE, others=[worker, engine])

    assert event is not None
    told = {
        lane.name: [(span.phase, span.start_s, span.end_s) for span in lane.spans] for lane in event.lanes
    }
    assert told == {
        "trainer": [("gen", 0.0, 5.0)],
        "worker 0": [("log_prob", 3.0, 4.0)],
        "engine 0": [("generate", 0.0, 2.0)],
    }
    assert [lane.place.node for lane in event.lanes if lane.place] == ["node-a", "node-a", "node-b"]
    assert event.lanes[1].place is not None
    assert event.lanes[1].place.gpus == ["0"]
    assert event.lane_count == 3


def test_more_processes_than_can_be_told_are_counted() -> None:
    workers = [Lane(f"worker {number}", HERE, []) for number in range(200)]

    event = describe_step(3, [("gen", 100.0, 105.0)], others=workers)

    assert event is not None
    assert (len(event.lanes), event.lane_count) == (64, 201)


def test_spans_of_a_lane_that_are_too_many_are_joined_where_they_are_nearest() -> None:
    near = [("reward", 100 + number / 100, 100.005 + number / 100) for number in range(MAX_SPANS)]
    lane = Lane("reward 0", HERE, [*near, ("reward", 108.0, 109.0), ("testing", 109.0, 110.0)])

    event = describe_step(3, [("gen", 100.0, 110.0)], others=[lane])

    assert event is not None
    spans = event.lanes[1].spans
    assert len(spans) == MAX_SPANS
    assert [(span.phase, span.start_s, span.end_s) for span in spans[-2:]] == [
        ("reward", 8.0, 9.0), ("testing", 9.0, 10.0)
    ]  # fmt: skip


def test_the_parts_of_a_response_are_told_all_or_not_at_all() -> None:
    def life(end: float, count: int) -> ResponseLife:
        return ResponseLife(
            "a", 100.0, end, 1, [("tool", 100.0 + part, 100.5 + part) for part in range(count)]
        )

    many = [life(101.0 + number / 1000, 10) for number in range(MAX_TIMED_RESPONSES - 1)]
    event = describe_step(1, [("gen", 100.0, 400.0)], responses=[*many, life(300.0, 200)])

    assert event is not None
    told = sorted(event.responses, key=lambda each: -each.end_s)
    assert [len(each.parts) for each in told[:3]] == [0, 10, 10]
    assert {len(each.parts) for each in told} == {0, 10}
    assert sum(len(each.parts) for each in told) == 10 * (MAX_PARTS_OF_STEP // 10)


def test_time_in_which_spans_overlap_counts_once() -> None:
    assert add_up_spans([("a", 1.0, 3.0), ("b", 2.0, 2.5), ("a", 2.5, 4.0), ("a", 9.0, 10.0)]) == 4.0
    assert add_up_spans([]) == 0.0
