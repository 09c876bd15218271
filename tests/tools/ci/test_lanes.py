"""Parts side by side: no more than there are lanes, and no more than fit in memory."""

import threading

import pytest
from trellis_tools.ci.lanes import bound_seconds, run_in_lanes
from trellis_tools.ci.runner import Part, list_parts


def part(name: str, memory_gib: float) -> Part:
    return Part(name, (), 60, memory_gib)


class Watch:
    """Runs parts that last until as many as can be together were together."""

    def __init__(self, at_once: int) -> None:
        self._lock, self._meeting = threading.Lock(), threading.Barrier(at_once)
        self.running: dict[str, float] = {}
        self.together: list[dict[str, float]] = []

    def run(self, part: Part) -> bool:
        with self._lock:
            self.running[part.name] = part.memory_gib
            self.together.append(dict(self.running))
        try:
            self._meeting.wait(timeout=0.5)
        except threading.BrokenBarrierError:
            self._meeting.reset()
        with self._lock:
            del self.running[part.name]
        return part.name != "fails"


def test_parts_that_fit_run_together_and_results_keep_their_order() -> None:
    watch = Watch(2)

    results = run_in_lanes([part("a", 6), part("fails", 6)], watch.run, lanes=2, room_gib=20)

    assert results == [True, False]
    assert {"a": 6, "fails": 6} in watch.together


def test_two_large_parts_never_run_together_and_a_small_one_overtakes() -> None:
    watch = Watch(2)

    run_in_lanes([part("big", 12), part("large", 12), part("small", 6)], watch.run, lanes=2, room_gib=20)

    assert all(sum(each.values()) <= 20 for each in watch.together)
    assert {"big": 12, "small": 6} in watch.together


def test_a_part_larger_than_the_machine_runs_alone() -> None:
    watch = Watch(2)

    run_in_lanes([part("small", 2), part("huge", 40), part("tiny", 2)], watch.run, lanes=2, room_gib=20)

    assert [each for each in watch.together if "huge" in each] == [{"huge": 40}]


def test_the_largest_parts_begin_and_equal_ones_keep_their_order() -> None:
    begun: list[str] = []

    def run(each: Part) -> bool:
        begun.append(each.name)
        return True

    parts = [part("small", 2), part("big", 12), part("tiny", 1), part("large", 12)]
    run_in_lanes(parts, run, lanes=1, room_gib=20)

    assert begun == ["big", "large", "small", "tiny"]


@pytest.mark.parametrize(
    ("memory", "seconds"),
    [
        ([], 0),
        ([2, 2, 2, 2], 120),
        ([12, 12, 12], 180),  # two of them never fit
        ([2, 12, 2, 12], 120),  # each large one has a small one beside it
        ([40, 2, 2], 120),
    ],
)
def test_the_time_of_parts_at_their_limits_counts_those_that_run_alone(
    memory: list[float], seconds: float
) -> None:
    parts = [part(str(place), each) for place, each in enumerate(memory)]

    assert bound_seconds(parts, lanes=2, room_gib=20) == seconds


def test_an_error_of_a_run_is_raised_when_all_have_ended() -> None:
    ended = []

    def run(each: Part) -> bool:
        if each.name == "broken":
            raise RuntimeError("no disk")
        ended.append(each.name)
        return True

    with pytest.raises(RuntimeError, match="no disk"):
        run_in_lanes([part("broken", 12), part("later", 12)], run, lanes=2, room_gib=20)

    assert ended == ["later"]


def test_no_part_needs_more_than_the_machine_that_the_readme_names() -> None:
    assert max(part.memory_gib for part in list_parts().values()) <= 20
