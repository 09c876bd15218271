"""How probable continuations are: which prompts the engine is asked, and what its answers add up to.

Choices after one context form a tree of tokens. Each of its inner nodes is one prompt, of which the engine
gives the probabilities of the node's children at the next position: one prompt where every choice is one
token. Where that would take more prompts than there are choices, each choice is read within its own prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Tokens that vLLM gives the probabilities of at one position.
_MOST_CHILDREN = 128

Prefix = tuple[int, ...]


@dataclass(frozen=True)
class Likelihood:
    """Pairs of context and continuation whose probability is asked for; no continuation is empty."""

    pairs: list[tuple[list[int], list[int]]]


@dataclass(frozen=True)
class LogLikelihood:
    """Natural logarithm, summed over the continuation's tokens."""

    value: float
    #: Whether each token is the one that greedy decoding would have taken.
    is_greedy: bool


@dataclass(frozen=True)
class Question:
    """One prompt."""

    tokens: list[int]
    #: The tokens whose probability at the next position is asked for; None: of the prompt's own tokens.
    children: list[int] | None


def lay_out(request: Likelihood) -> list[Question]:
    """Return the prompts that answer the request."""
    tree = _grow(request)
    if tree is None:
        return [Question(context + continuation, None) for context, continuation in request.pairs]
    context = request.pairs[0][0]
    return [Question([*context, *prefix], children) for prefix, children in tree.items()]


def add_up(request: Likelihood, outputs: Sequence[Any]) -> tuple[LogLikelihood, ...]:
    """Sum the log-likelihood of each pair, from vLLM's outputs to the questions in their order."""
    tree = _grow(request)
    if tree is None:
        return tuple(
            _read_prompt(context, continuation, output)
            for (context, continuation), output in zip(request.pairs, outputs, strict=True)
        )
    completions = {prefix: output.outputs[0] for prefix, output in zip(tree, outputs, strict=True)}
    return tuple(_walk(continuation, completions) for _, continuation in request.pairs)


def _grow(request: Likelihood) -> dict[Prefix, list[int]] | None:
    """Return children by inner node, or None where separate prompts are fewer or the contexts differ."""
    context = request.pairs[0][0]
    if not context or any(each != context for each, _ in request.pairs):
        return None
    tree: dict[Prefix, list[int]] = {}
    for _, continuation in request.pairs:
        for place, token in enumerate(continuation):
            children = tree.setdefault(tuple(continuation[:place]), [])
            if token not in children:
                children.append(token)
    is_small = 0 < len(tree) <= len(request.pairs)
    return tree if is_small and all(len(each) <= _MOST_CHILDREN for each in tree.values()) else None


def _walk(continuation: list[int], completions: dict[Prefix, Any]) -> LogLikelihood:
    total, is_greedy = 0.0, True
    for place, token in enumerate(continuation):
        completion = completions[tuple(continuation[:place])]
        total += float(completion.logprobs[0][token].logprob)
        # The engine took the most probable token.
        is_greedy = is_greedy and completion.token_ids[0] == token
    return LogLikelihood(total, is_greedy)


def _read_prompt(context: list[int], continuation: list[int], output: Any) -> LogLikelihood:
    places = [
        output.prompt_logprobs[position][token]
        for position, token in enumerate(continuation, start=len(context))
    ]
    return LogLikelihood(
        float(sum(place.logprob for place in places)), all(place.rank == 1 for place in places)
    )
