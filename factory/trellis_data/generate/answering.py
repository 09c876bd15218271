"""Prompts to questions, and replies to answers."""

from trellis_contracts.generation import Generation

from trellis_data.chat_client import Message
from trellis_data.generate.asking import Outcome


def with_system(settings: Generation, prompt: tuple[Message, ...]) -> tuple[Message, ...]:
    """Put the settings' system prompt before the prompt, unless the prompt has its own."""
    if settings.system is None or (prompt and prompt[0].role in ("system", "developer")):
        return prompt
    return (Message("system", settings.system), *prompt)


def answer_of(outcome: Outcome) -> tuple[str | None, str]:
    """Return the answer of a reply, or None and the reason why it cannot be trained on."""
    if outcome.reply is None:
        return None, outcome.problem or "no_completion"
    if outcome.reply.finish_reason == "length":
        return None, "cut_off"
    text = outcome.reply.text.strip()
    return (text, "") if text else (None, "empty_answer")
