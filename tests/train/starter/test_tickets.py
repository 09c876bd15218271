"""Customer messages to sort: what the demonstration on a pretrained model learns from."""

import json
from pathlib import Path

import jsonschema
from trellis_data.samples.tickets import TEAMS, make_tickets, write_tickets


def test_no_message_is_in_two_sets() -> None:
    sets = make_tickets(0)

    messages = [ticket.message for tickets in sets.values() for ticket in tickets]
    assert len(messages) == len(set(messages)) == 64 + 512 + 96


def test_teams_come_in_equal_shares() -> None:
    for name, tickets in make_tickets(3).items():
        counts = [sum(ticket.team == team for ticket in tickets) for team in TEAMS]
        if name == "rl_validation":
            assert set(counts) == {24}
        else:
            assert min(counts) > 0


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second, other = (
        write_tickets(tmp_path / name, seed) for name, seed in (("a", 5), ("b", 5), ("c", 6))
    )

    assert {name: path.read_bytes() for name, path in first.items()} == {
        name: path.read_bytes() for name, path in second.items()
    }
    assert first["sft"].read_bytes() != other["sft"].read_bytes()


def test_every_answer_fits_the_schema_of_the_reward(tmp_path: Path) -> None:
    paths = write_tickets(tmp_path, 0)
    schema = json.loads(paths["schema"].read_text())

    for name in ("sft", "rl_train", "rl_validation"):
        for line in paths[name].read_text().splitlines():
            row = json.loads(line)
            jsonschema.validate(json.loads(row["answer"]), schema)
            assert "Message: " in row["prompt"]
