"""How `trellis evaluations` calls the benchmarks of people's own datasets."""

import pytest
from trellis_cli.evaluation_scores import name_benchmark

TICKETS = {"id": "ds_1", "name": "tickets", "version": "1a2b3c4d5e6f", "is_deleted": False}


@pytest.mark.parametrize(
    ("label", "dataset", "name"),
    [
        ("gsm8k", None, "gsm8k"),
        ("custom", TICKETS, "tickets @ 1a2b3c4d"),
        ("custom-2", {**TICKETS, "version": None}, "tickets"),
        ("hard", TICKETS, "tickets @ 1a2b3c4d · hard"),
        ("custom", {**TICKETS, "version": None, "is_deleted": True}, "tickets (deleted)"),
        ("custom", {**TICKETS, "name": None, "is_deleted": True}, "deleted dataset @ 1a2b3c4d"),
    ],
)
def test_a_benchmark_on_a_dataset_is_called_by_its_name(
    label: str, dataset: dict[str, object] | None, name: str
) -> None:
    assert name_benchmark(label, dataset) == name
