"""What a seed draws."""

from itertools import islice

from trellis_tools.chaos.disk import SmallDisk
from trellis_tools.chaos.faults import FAULTS, FREEZE_SERVER, KILL_SERVER, list_kinds
from trellis_tools.chaos.plan import PlannedFault, plan_faults

KINDS = ["kill-api", "kill-run", "fill-disk"]


def test_the_same_seed_draws_the_same_faults_however_the_kinds_are_ordered() -> None:
    first = list(islice(plan_faults(7, KINDS), 50))

    assert list(islice(plan_faults(7, KINDS[::-1]), 50)) == first
    assert list(islice(plan_faults(8, KINDS), 50)) != first


def test_every_kind_comes_once_before_any_comes_again() -> None:
    drawn = [each.kind for each in islice(plan_faults(3, KINDS), 30)]

    rounds = [drawn[at : at + 3] for at in range(0, 30, 3)]
    assert all(sorted(each) == sorted(KINDS) for each in rounds)
    assert len({tuple(each) for each in rounds}) > 1  # in changing orders


def test_faults_are_numbered_and_last_within_the_bounds_of_their_kind() -> None:
    planned = list(islice(plan_faults(1, list(FAULTS)), 60))
    faults = [FAULTS[each.kind](each) for each in planned]

    assert [each.number for each in planned] == list(range(1, 61))
    assert all(fault.lasts_s[0] <= fault.length_s <= fault.lasts_s[1] for fault in faults)


def test_kinds_that_cannot_strike_here_are_left_out_with_the_reason(tmp_path: object) -> None:
    on_sqlite, without_disk = list_kinds(is_on_sqlite=True, disk="mounting is not allowed", has_endpoint=True)
    on_server, _ = list_kinds(is_on_sqlite=False, disk=SmallDisk(tmp_path), has_endpoint=True)  # type: ignore[arg-type]

    assert set(FAULTS) - set(on_sqlite) == {"fill-disk", "cut-database"}
    assert without_disk["fill-disk"] == "mounting is not allowed"
    assert set(FAULTS) - set(on_server) == {"lock-database"}


def test_an_engine_that_nobody_started_is_not_struck() -> None:
    possible, left_out = list_kinds(is_on_sqlite=True, disk="no", has_endpoint=False)

    assert not {KILL_SERVER, FREEZE_SERVER} & set(possible)
    assert left_out[KILL_SERVER] == "no endpoint is served"


def test_only_an_engine_that_died_alone_is_settled_within_half_a_minute() -> None:
    limits = {
        kind: make(PlannedFault(1, kind, 0.0, 0.0, 1)).endpoint_settled_within_s
        for kind, make in FAULTS.items()
    }

    assert limits.pop(KILL_SERVER) == 31
    assert set(limits.values()) == {60}
