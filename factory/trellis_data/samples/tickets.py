"""Customer messages to sort: which team takes one, as JSON.

A task for pretrained models of 100 M parameters and more: answers are short, a program checks
them, and a person sees at a glance whether an answer is right. A message of the validation set never
occurs in training; its problem does, about another item and in another tone.
"""

import json
import random
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

TEAMS = ("billing", "delivery", "technical", "account")
#: What an answer looks like, for the reward.
SCHEMA = {
    "type": "object",
    "properties": {"team": {"enum": list(TEAMS)}},
    "required": ["team"],
    "additionalProperties": False,
}
_INSTRUCTION = (
    'Sort this customer message. Reply with JSON only, for example {{"team": "billing"}}. '
    "Teams: billing, delivery, technical, account.\n\nMessage: {message}"
)
#: Problems by team.
_PROBLEMS: dict[str, tuple[str, ...]] = {
    "billing": (
        "I was charged twice for my {item}.",
        "The invoice for my {item} shows the wrong amount.",
        "I would like a refund for the {item}.",
        "My card was declined when I paid for the {item}.",
        "Why did the price of the {item} go up on my bill?",
        "The discount code was not applied to my {item}.",
        "Please send me a receipt for the {item}.",
        "I see a payment for a {item} that I did not make.",
    ),
    "delivery": (
        "My {item} has not arrived.",
        "The parcel with the {item} was left at the wrong house.",
        "Where is my {item}?",
        "The {item} came in a damaged box.",
        "Can you ship the {item} to another address?",
        "The tracking page of my {item} has not changed for days.",
        "The courier never rang and took the {item} back.",
        "You sent me the wrong {item}.",
    ),
    "technical": (
        "My {item} does not turn on.",
        "The {item} stops working after five minutes.",
        "The screen of the {item} stays black.",
        "How do I connect the {item} to my phone?",
        "The {item} makes a loud noise.",
        "After the update the {item} shows an error.",
        "The battery of my {item} is empty within an hour.",
        "The app crashes when it looks for the {item}.",
    ),
    "account": (
        "I forgot my password.",
        "Please change the email address of my profile.",
        "I cannot log in to see my {item}.",
        "Please delete my account.",
        "How do I turn off your newsletter?",
        "Someone else has signed in with my name.",
        "I want to change my user name.",
        "The code to sign in never reaches my phone.",
    ),
}
_ITEMS = ("camera", "kettle", "headset", "lamp", "printer", "watch", "speaker", "vacuum cleaner")
_ENDINGS = (
    "I need this solved today.",
    "This cannot wait.",
    "Please act at once.",
    "It is an emergency.",
    "I leave in an hour.",
    "Answer me immediately!",
    "There is no hurry.",
    "Take your time.",
    "Next week is early enough.",
    "Whenever it suits you.",
    "Thank you and have a nice day.",
    "It is not important.",
)
_OPENINGS = ("Hello.", "Hi there.", "Good morning.", "Dear team,", "")
SFT_ROWS, TRAIN_ROWS, VALIDATION_ROWS = 64, 512, 96


@dataclass(frozen=True)
class Ticket:
    """A message and its team."""

    message: str
    team: str

    @property
    def prompt(self) -> str:
        """The instruction with the message."""
        return _INSTRUCTION.format(message=self.message)

    @property
    def answer(self) -> str:
        """The right answer, as JSON."""
        return json.dumps({"team": self.team})


def make_tickets(seed: int) -> dict[str, list[Ticket]]:
    """Make worked examples, training prompts and evaluation prompts; no message is in two of them."""
    generator = random.Random(seed)  # noqa: S311 - reproducible on purpose
    train = _draw(generator, SFT_ROWS + TRAIN_ROWS)
    return {
        "sft": train[:SFT_ROWS],
        "rl_train": train[SFT_ROWS:],
        "rl_validation": _draw(generator, VALIDATION_ROWS, without={ticket.message for ticket in train}),
    }


def _draw(generator: random.Random, count: int, without: Container[str] = ()) -> list[Ticket]:
    """Draw distinct tickets, equally many from each team."""
    found: dict[str, Ticket] = {}
    while len(found) < count:
        team = TEAMS[len(found) % len(TEAMS)]
        problem = generator.choice(_PROBLEMS[team])
        told = problem.format(item=generator.choice(_ITEMS))
        message = f"{generator.choice(_OPENINGS)} {told} {generator.choice(_ENDINGS)}".strip()
        if message not in without:
            found.setdefault(message, Ticket(message, team))
    tickets = list(found.values())
    generator.shuffle(tickets)
    return tickets


def write_tickets(folder: Path, seed: int) -> dict[str, Path]:
    """Write the sets as JSON Lines (``prompt``, ``answer``) and the answers' schema; their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, tickets in make_tickets(seed).items():
        paths[name] = folder / f"{name}.jsonl"
        lines = [json.dumps({"prompt": each.prompt, "answer": each.answer}) for each in tickets]
        paths[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    paths["schema"] = folder / "schema.json"
    paths["schema"].write_text(json.dumps(SCHEMA), encoding="utf-8")
    return paths
