"""A weighted mixture of rewards, and the parts it is made of."""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trellis_contracts.rewards import RewardTerm

from trellis_train.rewards.catalogue import build_scorer
from trellis_train.rewards.error_notes import ErrorNotes
from trellis_train.rewards.resources import ScoringPlace
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import HasParts, RewardUnusable, Scorer

logger = logging.getLogger(__name__)

#: Key under which errors are counted beside the parts, and its values.
ERROR_KEY = "error"
RAISED, UNUSABLE = 1.0, 2.0
#: The value of a reward, and the parts that it is made of.
Earned = tuple[float, dict[str, float]]


@dataclass(frozen=True)
class Scored:
    """What a response earned."""

    score: float
    #: 1 where the first reward is full, else 0.
    acc: float
    #: Every reward by name, unweighted; 0 where it raised. ``<reward>_<part>`` for those made of parts.
    parts: dict[str, float]
    #: What rewards raised, by name.
    errors: dict[str, str] = field(default_factory=dict)
    is_unusable: bool = False

    def as_verl_result(self) -> dict[str, float]:
        """Return a result with the same keys for every response of a run, as verl demands."""
        error = UNUSABLE if self.is_unusable else RAISED if self.errors else 0.0
        return {"score": self.score, "acc": self.acc, **self.parts, ERROR_KEY: error}


class Mixture:
    """Rewards whose weighted sum is the score; the first one decides whether a response is correct."""

    def __init__(self, terms: Sequence[RewardTerm], place: ScoringPlace | None = None) -> None:
        if not terms:
            raise ValueError("A mixture needs at least one reward.")
        names = [term.name for term in terms]
        if len(names) != len(set(names)):
            raise ValueError(f"The mixture contains a reward more than once: {', '.join(names)}.")
        self.terms = tuple(terms)
        self._place = place or ScoringPlace()
        self._notes = ErrorNotes(self._place.folder)
        #: A reward that cannot be used at all is a message instead.
        self._scorers: dict[str, Scorer | str] = {term.name: self._build(term) for term in self.terms}
        #: Of rewards that are made of parts; what a response reports stays the same whatever becomes of them.
        self._part_names = {
            name: tuple(scorer.part_names)
            for name, scorer in self._scorers.items()
            if isinstance(scorer, HasParts)
        }

    @classmethod
    def parse(cls, rewards: Sequence[Mapping[str, Any]], place: ScoringPlace | None = None) -> "Mixture":
        """Parse ``[{"name": "math", "weight": 0.9, "options": {}}, ...]``."""
        return cls([RewardTerm.model_validate(dict(reward)) for reward in rewards], place)

    def _build(self, term: RewardTerm) -> Scorer | str:
        try:
            return build_scorer(term, self._place)
        except RewardUnusable as error:
            return str(error)

    async def score(self, sample: Sample) -> Scored:
        """Score one response with all rewards; never raises."""
        parts: dict[str, float] = {}
        errors: dict[str, str] = {}
        is_unusable = False
        outcomes = await self._score_terms(sample)
        for term, outcome in zip(self.terms, outcomes, strict=True):
            value, own = (0.0, {}) if isinstance(outcome, Exception) else outcome
            parts |= {
                f"{term.name}_{name}": own.get(name, 0.0) for name in self._part_names.get(term.name, ())
            }
            parts[term.name] = value
            if not isinstance(outcome, Exception):
                continue
            is_final = isinstance(outcome, RewardUnusable)
            is_unusable |= is_final
            errors[term.name] = f"{outcome}" or type(outcome).__name__
            self._notes.add(term.name, errors[term.name], is_final=is_final)
        total = sum(term.weight * parts[term.name] for term in self.terms)
        acc = float(parts[self.terms[0].name] >= 1.0)
        return Scored(total, acc, parts, errors, is_unusable)

    async def _score_terms(self, sample: Sample) -> list[Earned | Exception]:
        if len(self.terms) == 1:
            return [await self._score_term(self.terms[0], sample)]
        return await asyncio.gather(*(self._score_term(term, sample) for term in self.terms))

    async def _score_term(self, term: RewardTerm, sample: Sample) -> Earned | Exception:
        scorer = self._scorers[term.name]
        if isinstance(scorer, str):
            return RewardUnusable(scorer)
        try:
            parts: dict[str, float] = {}
            if isinstance(scorer, HasParts):
                value, parts = await scorer.score_parts(sample)
            else:
                value = float(await scorer.score(sample))
        except RewardUnusable as error:
            self._scorers[term.name] = str(error)
            return error
        except Exception as error:  # noqa: BLE001 - an edge: one response must not end a run
            return error
        if not all(math.isfinite(number) for number in (value, *parts.values())):
            return ValueError(f"the score is {value}, not a finite number")
        return value, parts

    async def load(self) -> None:
        """Load what the rewards are made of; ``RewardUnusable`` names the first that cannot be used."""
        for name, scorer in self._scorers.items():
            try:
                if isinstance(scorer, str):
                    raise RewardUnusable(scorer)
                await scorer.load()
            except RewardUnusable as error:
                raise RewardUnusable(f"{name}: {error}") from None

    async def close(self) -> None:
        """End what the rewards have started."""
        for scorer in self._scorers.values():
            if not isinstance(scorer, str):
                await scorer.close()
