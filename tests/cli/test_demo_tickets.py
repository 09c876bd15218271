"""The demonstration on a pretrained model: which answers are shown side by side."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.demo import steps
from trellis_cli.demo.tickets import compare_answers


class Client:
    """Answers as the API does for a job that measured itself at the steps 0 and 8."""

    def get(self, path: str, **_: Any) -> list[dict[str, Any]]:
        return [{"step": 0}, {"step": 8}]

    def pages(self, path: str, *, step: int, split: str) -> list[dict[str, Any]]:
        assert split == "validation"
        return [
            {
                "prompt": f"system\nSort.\nuser\nTeams: billing.\n\nMessage: Message {number}.\nassistant\n",
                "ground_truth": "right",
                "response": "right" if step and number % 2 else "wrong",
                "score": float(step and number % 2),
            }
            for number in range(6)
        ]


def test_messages_that_became_right_are_shown_first() -> None:
    answers = compare_answers(Client(), "job")  # type: ignore[arg-type]

    assert [each["prompt"] for each in answers] == ["Message 1.", "Message 3.", "Message 5."]
    assert {(each["before"], each["after"]) for each in answers} == {("wrong", "right")}


def test_rows_that_an_older_version_left_under_the_name_are_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Datasets:
        def __init__(self) -> None:
            self.found = [{"id": "ds_old", "name": "tickets", "source": {"sha256": "other"}}]

        def pages(self, path: str) -> list[dict[str, Any]]:
            return self.found

        def upload(self, path: str, file: Path, fields: dict[str, str]) -> dict[str, Any]:
            made = {"id": "ds_new", "row_count": 1, "format": "prompt-answer", **fields}
            made["source"] = {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
            self.found.append(made)
            return made

    monkeypatch.setattr(
        steps,
        "wait_for_dataset",
        lambda client, id_: next(each for each in client.found if each["id"] == id_),
    )
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a", "answer": "b"}\n')
    client = Datasets()

    first = steps.ensure_dataset(client, tmp_path / "rows.jsonl", "tickets")  # type: ignore[arg-type]
    again = steps.ensure_dataset(client, tmp_path / "rows.jsonl", "tickets")  # type: ignore[arg-type]

    assert first == again == "ds_new"
    assert len(client.found) == 2
