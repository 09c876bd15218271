"""Shipping the spool: exactly once and in order, whatever the network and the machine do."""

import contextlib
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trellis_contracts.attempt import CURSOR_FILE, EVENTS_FOLDER
from trellis_contracts.events import LogEvent, MetricsEvent, OutcomeEvent
from trellis_contracts.private_files import write_private
from trellis_contracts.spool import MAX_BATCH_EVENTS
from trellis_testing.waiting import wait_until
from trellis_train.hooks.event_spool import Spool
from trellis_train.supervise.platform_client import PlatformAwayError, PlatformClient, RefusedError
from trellis_train.supervise.shipper import Shipper

FAULTS = ["ok", "lose-request", "lose-reply", "error", "error-after"]


def make_metrics(step: int) -> MetricsEvent:
    return MetricsEvent(time=datetime.now(UTC), step=step, values={"actor/pg_loss": step / 7})


def make_shipper(platform: Any, folder: Path, token: str, **options: Any) -> Shipper:
    return Shipper(PlatformClient(platform.url, "job_test", token), folder, 1, **options)


def send_all(shipper: Shipper) -> None:
    while True:
        try:
            if not shipper.send_next():
                return
        except PlatformAwayError:
            continue


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    actions=st.lists(
        st.one_of(
            st.tuples(
                st.just("write"), st.sampled_from(["metrics", "rollouts", "entrypoint"]), st.integers(1, 9)
            ),
            st.tuples(st.just("send"), st.sampled_from(FAULTS), st.just(0)),
            st.tuples(st.just("restart"), st.just(""), st.just(0)),
        ),
        max_size=30,
    )
)
def test_every_event_arrives_once_and_in_order_whatever_fails(
    actions: list[tuple[str, str, int]], make_platform: Callable[[], Any], token: str
) -> None:
    platform = make_platform()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Segments of a few events, so that sent ones are deleted along the way.
        spools = {p: Spool(folder, p, segment_bytes=300) for p in ("metrics", "rollouts", "entrypoint")}
        shipper = make_shipper(platform, folder, token)
        written: dict[str, list[int]] = {p: [] for p in spools}
        step = 0

        for action, detail, count in actions:
            if action == "write":
                for _ in range(count):
                    step += 1
                    event = make_metrics(step).model_copy(update={"values": {detail: 1.0}})
                    spools[detail].write(event)
                    written[detail].append(step)
            elif action == "send":
                platform.faults.append(detail)
                with contextlib.suppress(PlatformAwayError):
                    shipper.send_next()
            else:
                shipper = make_shipper(platform, folder, token)
        platform.faults.clear()
        send_all(shipper)

        for producer, steps in written.items():
            assert [event.step for event in platform.events if producer in event.values] == steps


def test_events_arrive_within_a_fifth_of_a_second(platform: Any, tmp_path: Path, token: str) -> None:
    spool = Spool(tmp_path, "trainer")
    shipper = make_shipper(platform, tmp_path, token)
    shipper.start()
    spool.write(make_metrics(1))
    wait_until(lambda: len(platform.events) == 1, 10, "the event arrives", pause_s=0.005)

    delays = []
    for step in range(2, 12):
        written_at = time.monotonic()
        spool.write(make_metrics(step))
        wait_until(lambda step=step: len(platform.events) == step, 10, "the event arrives", pause_s=0.005)
        delays.append(time.monotonic() - written_at)

    assert sorted(delays)[5] < 0.2
    assert shipper.drain(5)


def test_nothing_is_lost_while_the_platform_is_away(platform: Any, tmp_path: Path, token: str) -> None:
    spool = Spool(tmp_path, "trainer")
    shipper = make_shipper(platform, tmp_path, token)
    shipper.start()
    spool.write(make_metrics(1))
    wait_until(lambda: len(platform.events) == 1, 10, "the event arrives", pause_s=0.005)

    platform.stop()
    for step in range(2, 1_200):
        spool.write(make_metrics(step))
    time.sleep(0.3)
    platform.start()

    wait_until(lambda: len(platform.events) >= 1_199, 10, "all events arrive", pause_s=0.005)
    assert [event.step for event in platform.events] == list(range(1, 1_200))
    assert shipper.drain(5)


@pytest.mark.parametrize("is_port_reused", [False, True], ids=["nobody", "a stranger"])
def test_events_follow_a_platform_that_moves_to_another_port(
    make_platform: Callable[[], Any], tmp_path: Path, token: str, is_port_reused: bool
) -> None:
    """Where the old port is nobody's, and where another server there refuses the token."""
    before, after = make_platform(), make_platform()
    address = tmp_path / "address"
    address.write_text(before.url)
    client = PlatformClient(before.url, "job_test", token, address_file=address)
    spool, shipper = Spool(tmp_path, "trainer"), Shipper(client, tmp_path, 1)
    shipper.start()
    spool.write(make_metrics(1))
    wait_until(lambda: len(before.events) == 1, 10, "the event arrives", pause_s=0.005)

    # What the platform has is in its database.
    after.next_sequence = before.next_sequence
    if is_port_reused:
        before.faults.extend([401] * 1_000)
    else:
        before.faults.append("lose-request")  # on the connection that is open
        before.stop()
    spool.write(make_metrics(2))
    time.sleep(0.3)
    write_private(address, after.url + "\n")

    wait_until(lambda: len(after.events) == 1, 20, "the next event arrives at the new address")
    spool.write(make_metrics(3))
    assert shipper.drain(5)
    assert [event.step for event in (*before.events, *after.events)] == [1, 2, 3]


@pytest.mark.parametrize("content", ["", "file:///etc/passwd", "no address", "http://[", "\xff"])
def test_an_address_that_is_none_is_not_followed(
    platform: Any, tmp_path: Path, token: str, content: str
) -> None:
    (tmp_path / "address").write_bytes(content.encode("latin-1"))
    client = PlatformClient(platform.url, "job_test", token, address_file=tmp_path / "address")
    platform.faults.append(503)

    with pytest.raises(PlatformAwayError):
        client.post("batches", b"{}")

    assert client.post("heartbeat", b'{"attempt": 1, "step": 0}').status == 200


def test_a_batch_has_a_bounded_number_of_events(platform: Any, tmp_path: Path, token: str) -> None:
    spool = Spool(tmp_path, "trainer")
    for step in range(MAX_BATCH_EVENTS + 1):
        spool.write(make_metrics(step))

    send_all(make_shipper(platform, tmp_path, token))

    assert platform.next_sequence == 3


def test_the_outcome_follows_all_other_events(platform: Any, tmp_path: Path, token: str) -> None:
    outcome = OutcomeEvent(time=datetime.now(UTC), outcome="succeeded", exit_code=0)
    Spool(tmp_path, "entrypoint").write(outcome)
    trainer = Spool(tmp_path, "trainer")
    for step in range(3 * MAX_BATCH_EVENTS):
        trainer.write(make_metrics(step))

    send_all(make_shipper(platform, tmp_path, token))

    assert platform.events[-1].kind == "outcome"
    assert len(platform.events) == 3 * MAX_BATCH_EVENTS + 1


def test_a_line_that_is_no_event_is_passed_over(platform: Any, tmp_path: Path, token: str) -> None:
    spool = Spool(tmp_path, "trainer")
    spool.write(make_metrics(1))
    with (tmp_path / EVENTS_FOLDER / "trainer.1.jsonl").open("ab") as file:
        file.write(b'{"kind": "metrics", "st')  # the writer was killed here
    Spool(tmp_path, "trainer").write(make_metrics(2))

    send_all(make_shipper(platform, tmp_path, token))

    assert [event.step for event in platform.events] == [1, 2]


def test_half_a_line_waits_for_its_other_half(platform: Any, tmp_path: Path, token: str) -> None:
    folder = tmp_path / EVENTS_FOLDER
    folder.mkdir()
    line = make_metrics(1).model_dump_json().encode() + b"\n"
    shipper = make_shipper(platform, tmp_path, token)

    (folder / "trainer.1.jsonl").write_bytes(line[:20])
    sent_half = shipper.send_next()
    (folder / "trainer.1.jsonl").write_bytes(line)
    sent_whole = shipper.send_next()

    assert (sent_half, sent_whole) == (False, True)
    assert [event.step for event in platform.events] == [1]


def test_not_a_number_travels(platform: Any, tmp_path: Path, token: str) -> None:
    event = MetricsEvent(time=datetime.now(UTC), step=1, values={"loss": float("nan"), "kl": float("inf")})
    Spool(tmp_path, "trainer").write(event)

    send_all(make_shipper(platform, tmp_path, token))

    assert str(platform.events[0].values["loss"]) == "nan"
    assert platform.events[0].values["kl"] == float("inf")


def test_a_rejected_event_does_not_hold_up_the_others(platform: Any, tmp_path: Path, token: str) -> None:
    spool = Spool(tmp_path, "trainer")
    for step in (1, 2, 3, 4):
        spool.write(make_metrics(step))
    platform.faults.extend([413, 413, 413])  # all four, the first two, the first

    send_all(make_shipper(platform, tmp_path, token))

    assert [event.step for event in platform.events] == [2, 3, 4]


def test_a_platform_that_lost_batches_gets_the_next_under_the_number_it_expects(
    platform: Any, tmp_path: Path, token: str
) -> None:
    spool = Spool(tmp_path, "trainer")
    shipper = make_shipper(platform, tmp_path, token)
    for step in (1, 2, 3):
        spool.write(make_metrics(step))
        send_all(shipper)

    platform.next_sequence = 2  # a database restored from a backup
    platform.events.clear()
    spool.write(make_metrics(4))
    send_all(shipper)

    assert [event.step for event in platform.events] == [4]
    assert platform.next_sequence == 3


def test_sent_segments_are_deleted(platform: Any, tmp_path: Path, token: str) -> None:
    spool = Spool(tmp_path, "trainer", segment_bytes=500)
    shipper = make_shipper(platform, tmp_path, token)

    for step in range(100):
        spool.write(make_metrics(step))
    send_all(shipper)

    assert len(list((tmp_path / EVENTS_FOLDER).iterdir())) == 1
    assert len(platform.events) == 100
    assert (tmp_path / CURSOR_FILE).exists()


def test_a_lasting_refusal_ends_shipping_and_is_reported(platform: Any, tmp_path: Path) -> None:
    reasons: list[str] = []
    Spool(tmp_path, "trainer").write(make_metrics(1))
    client = PlatformClient(platform.url, "job_test", "a-revoked-token")
    shipper = Shipper(client, tmp_path, 1, on_refused=reasons.append, refusal_patience_s=0.1)

    shipper.start()
    wait_until(lambda: bool(reasons), 10, "the refusal is reported", pause_s=0.005)

    assert "401" in reasons[0]
    assert not shipper.drain(1)


def test_a_short_refusal_is_outlived(platform: Any, tmp_path: Path, token: str) -> None:
    platform.faults.extend([401, 404])
    Spool(tmp_path, "trainer").write(make_metrics(1))
    shipper = make_shipper(platform, tmp_path, token, refusal_patience_s=30)

    with pytest.raises(RefusedError):
        shipper.send_next()
    shipper.start()

    wait_until(lambda: len(platform.events) == 1, 10, "the event arrives", pause_s=0.005)
    assert shipper.drain(5)


def test_too_much_waiting_is_noticed(platform: Any, tmp_path: Path, token: str) -> None:
    platform.stop()
    line = "x" * 1_000
    spool = Spool(tmp_path, "entrypoint")
    for _ in range(20):
        spool.write(LogEvent(time=datetime.now(UTC), stream="stdout", lines=[line]))

    assert make_shipper(platform, tmp_path, token, spool_limit_bytes=10_000).is_full()
    assert not make_shipper(platform, tmp_path, token, spool_limit_bytes=100_000).is_full()


def test_draining_gives_up_in_time_and_keeps_what_is_left(platform: Any, tmp_path: Path, token: str) -> None:
    platform.stop()
    Spool(tmp_path, "trainer").write(make_metrics(1))
    shipper = make_shipper(platform, tmp_path, token)
    shipper.start()

    started_at = time.monotonic()
    is_delivered = shipper.drain(0.5)
    took_s = time.monotonic() - started_at
    platform.start()
    send_all(make_shipper(platform, tmp_path, token))

    assert not is_delivered
    assert took_s < 5
    assert [event.step for event in platform.events] == [1]
