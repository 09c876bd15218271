"""When a service that died is started again."""

from trellis_cli.services.restarts import MOST_DEATHS, WINDOW_S, Restarts


def test_the_first_restart_is_immediate_and_the_pauses_double() -> None:
    restarts = Restarts()
    pauses = []

    for _ in range(5):
        restarts.note_death(100.0)
        assert restarts.due_at is not None
        pauses.append(restarts.due_at - 100.0)

    assert pauses == [0.0, 1.0, 2.0, 4.0, 8.0]
    assert not restarts.is_due(107.9)
    assert restarts.is_due(108.0)


def test_a_service_that_dies_too_often_is_given_up() -> None:
    restarts = Restarts()

    for at in range(MOST_DEATHS + 1):
        restarts.note_death(float(at))

    assert restarts.has_given_up
    assert not restarts.is_due(1e9)


def test_deaths_that_are_far_apart_do_not_add_up() -> None:
    restarts = Restarts()

    for number in range(3 * MOST_DEATHS):
        restarts.note_death(number * WINDOW_S)

    assert not restarts.has_given_up
    assert restarts.due_at == (3 * MOST_DEATHS - 1) * WINDOW_S


def test_a_start_by_hand_gives_another_chance() -> None:
    restarts = Restarts()
    for at in range(MOST_DEATHS + 1):
        restarts.note_death(float(at))

    restarts.note_start()
    restarts.note_death(10.0)

    assert not restarts.has_given_up
    assert restarts.due_at == 10.0
