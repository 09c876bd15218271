"""Prompts as the model reads them: through its chat template or plain, and as tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trellis_contracts.evaluation import BenchmarkOrder

from trellis_train.evaluate.benchmark import Benchmark, BenchmarkUnusable, Problem
from trellis_train.evaluate.likelihoods import Likelihood


class NoChatTemplate(BenchmarkUnusable):
    """Prompts were ordered through a chat template, and the tokenizer has none."""


@dataclass(frozen=True)
class Prompt:
    """A prompt, and the tokens that it is."""

    #: With the tokens that the tokenizer adds in front.
    text: str
    tokens: list[int]


class Renderer:
    """Writes the prompts of one benchmark for one tokenizer."""

    def __init__(self, tokenizer: Any, benchmark: Benchmark, order: BenchmarkOrder) -> None:
        self._tokenizer = tokenizer
        self._benchmark = benchmark
        self.has_chat = choose_chat(tokenizer, order)

    def write(self, problem: Problem) -> str:
        """Return the prompt's text."""
        prompt = self._benchmark.prompt(problem, self.has_chat)
        if isinstance(prompt, str):
            return prompt
        return render_chat(self._tokenizer, prompt)

    def render(self, problem: Problem) -> Prompt:
        """Render the prompt of a problem whose answer is generated."""
        text = self.write(problem)
        tokens = self._encode(text)
        return Prompt(self._show(text, tokens), tokens)

    def render_choices(self, problem: Problem) -> tuple[Prompt, Likelihood]:
        """Render the prompt of a problem, and each of its choices as a continuation."""
        text = self.write(problem)
        tokens = self._encode(text)
        if self.has_chat:
            # The template's end is where the assistant's turn begins, with the choice itself.
            pairs = [(tokens, self._encode(choice.lstrip(" "))) for choice in problem.choices]
        else:
            pairs = [encode_pair(self._encode, text, choice) for choice in problem.choices]
        return Prompt(self._show(text, tokens), tokens), Likelihood(pairs)

    def _encode(self, text: str) -> list[int]:
        """Encode into tokens; a chat template writes special tokens itself."""
        return encode(self._tokenizer, text, adds_special=not self.has_chat)

    def _show(self, text: str, tokens: list[int]) -> str:
        start = self._tokenizer.bos_token
        is_added = (
            start and tokens and tokens[0] == self._tokenizer.bos_token_id and not text.startswith(start)
        )
        return f"{start}{text}" if is_added else text


def choose_chat(tokenizer: Any, order: BenchmarkOrder) -> bool:
    """Choose whether to use the chat template; ``NoChatTemplate`` if it is required but missing."""
    has_template = bool(getattr(tokenizer, "chat_template", None))
    if order.chat == "always" and not has_template:
        raise NoChatTemplate(
            "the model's tokenizer has no chat template; set chat: auto or never for this benchmark"
        )
    return has_template and order.chat != "never"


def render_chat(tokenizer: Any, messages: list[dict[str, str]]) -> str:
    """Render a conversation and the beginning of the assistant's next turn."""
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text


def encode(tokenizer: Any, text: str, *, adds_special: bool) -> list[int]:
    """Encode a text as tokens, never with a second beginning token."""
    start = tokenizer.bos_token
    adds_special = adds_special and not (start and text.startswith(start))
    return list(tokenizer(text, add_special_tokens=adds_special, return_attention_mask=False).input_ids)


def encode_pair(
    encode_text: Callable[[str], list[int]], context: str, continuation: str
) -> tuple[list[int], list[int]]:
    """Encode a context and the text after it as tokens, split where the context's own tokens end.

    As lm-evaluation-harness does it (``TemplateLM._encode_pair``): spaces at the context's end belong to the
    continuation, and both are encoded together.
    """
    stripped = context.rstrip()
    continuation = context[len(stripped) :] + continuation
    whole, head = encode_text(stripped + continuation), encode_text(stripped)
    return whole[: len(head)], whole[len(head) :]
