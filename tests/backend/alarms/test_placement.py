"""What is said of a job that Ray cannot place: what it asks for, what is free, and where."""

from collections.abc import Callable

import pytest
from sqlmodel import Session
from trellis_api.core.ray_cluster import RayNode, Waiting
from trellis_api.jobs import repository as jobs
from trellis_api.jobs.alarms import repository
from trellis_api.jobs.alarms.placement import NOT_PLACED, find_shortage
from trellis_api.jobs.alarms.presentation import present_alarm
from trellis_api.jobs.alarms.service import note_shortage
from trellis_api.jobs.logs import store as log_store

PACKED = Waiting({"CPU": 24.0, "GPU": 8.0})


def node(name: str, cpus: float, gpus: float, **used: float) -> RayNode:
    return RayNode(name, name, {"CPU": cpus, "GPU": gpus}, used)


def test_an_rl_job_on_eight_gpus_lacks_cpus_on_a_head_of_thirty_two() -> None:
    storage = Waiting({"CPU": 9.0}, is_packed=False)

    shortage = find_shortage([storage], [node("head", 32, 8, CPU=24, GPU=8)])

    assert shortage is not None
    assert (shortage.resource, shortage.free, shortage.needed) == ("CPU", 8, 9)
    assert shortage.message == ("Ray cannot place the job: it needs 9 CPUs. Free: head has 8 of 32 CPUs.")


def test_a_group_must_fit_on_one_node() -> None:
    nodes = [node("a", 64, 4), node("b", 64, 4)]

    shortage = find_shortage([PACKED], nodes)

    assert shortage is not None
    assert (shortage.resource, shortage.free, shortage.needed) == ("GPU", 4, 8)
    assert "on one node" in shortage.message
    assert "a has 64 of 64 CPUs, 4 of 4 GPUs; b has" in shortage.message


def test_the_node_that_comes_nearest_says_what_is_missing() -> None:
    nodes = [node("head", 4, 0), node("worker", 16, 8)]

    shortage = find_shortage([PACKED], nodes)

    assert shortage is not None
    assert (shortage.resource, shortage.free, shortage.needed) == ("CPU", 16, 24)


@pytest.mark.parametrize(
    ("waiting", "nodes"),
    [
        ([PACKED], [node("a", 1, 0), node("b", 24, 8)]),
        ([Waiting({"CPU": 9.0}, is_packed=False)], [node("a", 5, 0), node("b", 5, 0)]),
        ([], [node("a", 1, 0)]),
    ],
)
def test_what_has_room_is_only_starting(waiting: list[Waiting], nodes: list[RayNode]) -> None:
    assert find_shortage(waiting, nodes) is None


def test_a_cluster_without_nodes_has_nothing() -> None:
    shortage = find_shortage([Waiting({"CPU": 1.0, "GPU": 0.0})], [])

    assert shortage is not None
    assert "no node" in shortage.message


def test_a_shortage_is_an_alarm_and_a_line_of_the_log_until_it_is_over(
    session: Session, make_job: Callable[..., str]
) -> None:
    job = jobs.find_job(session, job_id=make_job())
    assert job is not None
    shortage = find_shortage([PACKED], [node("a", 64, 4)])

    changed = [note_shortage(session, job=job, shortage=each) for each in (shortage, shortage, None, None)]

    (row,) = repository.list_alarms(session, job_id=job.id)
    alarm = present_alarm(row)
    assert changed == [True, False, True, False]
    assert (alarm.code, alarm.severity, alarm.is_active) == (NOT_PLACED, "critical", False)
    assert (alarm.metric, alarm.value, alarm.threshold) == ("GPU", 4, 8)
    assert alarm.title.en == "Waiting for the cluster: it needs 8 GPUs at once, 4 free"
    assert "8 块 GPU" in alarm.title.zh
    lines = log_store.read_last(session, job=job, limit=9)
    assert [(line.stream, line.text) for line in lines] == [("platform", shortage and shortage.message)]
