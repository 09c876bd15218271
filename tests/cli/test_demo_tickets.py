"""The demonstration on a pretrained model: which answers are shown side by side."""

from typing import Any

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
