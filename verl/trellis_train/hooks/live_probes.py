"""The dry run's probes again, made of what the policy writes now and scored by the run's own rewards.

A trick that earns as much as the policy's best responses is what the policy will learn next. Nothing that
costs money, waits or runs code is scored, and no step waits for it.
"""

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from trellis_contracts.dry_run import Probe
from trellis_contracts.events import MetricsEvent, RolloutsEvent
from trellis_contracts.rewards import RewardTerm
from trellis_recipes.rewards import reward_kinds

from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.rollouts import is_clipped
from trellis_train.rewards import math_check
from trellis_train.rewards.mixture import Mixture
from trellis_train.rewards.probes import LiveResponse, make_live_probes
from trellis_train.rewards.sample import Sample

logger = logging.getLogger(__name__)

METRIC = "probe/{probe}/mean"
#: Steps from one time to the next.
EVERY = 10
#: Prompts whose best response is taken.
MAX_PROMPTS = 16


class LiveProbes:
    """Scores probes beside the run; the results are metrics of the step whose responses they were made of."""

    def __init__(self, terms: Sequence[RewardTerm], spool: Spool) -> None:
        self._terms = tuple(terms)
        self._spool = spool
        self._thread: threading.Thread | None = None

    @classmethod
    def of_rewards(cls, rewards: Sequence[Mapping[str, Any]], spool: Spool) -> "LiveProbes | None":
        """Make probes; None if a reward waits for others, costs money or runs code: they would double it."""
        terms = [RewardTerm.model_validate(dict(reward)) for reward in rewards]
        kinds = reward_kinds()
        if not terms or any(kinds[term.name].waits or kinds[term.name].runs_code for term in terms):
            return None
        return cls(terms, spool)

    def start(self, event: RolloutsEvent) -> bool:
        """Begin to score the probes of a step, if it is time for them; whether it did."""
        is_busy = self._thread is not None and self._thread.is_alive()
        if event.step % EVERY or event.step == 0 or is_busy:
            return False
        probes = make_live_probes(choose_best(event))
        if not probes:
            return False
        self._thread = threading.Thread(
            target=self._report, args=(event.step, probes), name="probes", daemon=True
        )
        self._thread.start()
        return True

    def wait(self) -> None:
        """Wait until what was begun is reported."""
        if self._thread is not None:
            self._thread.join()

    def _report(self, step: int, probes: Mapping[Probe, Sequence[Sample]]) -> None:
        try:
            means = asyncio.run(score_probes(self._terms, probes))
        except Exception:  # an edge: the run must not end of what only watches it
            logger.exception("the probes of step %d could not be scored", step)
            return
        values = {METRIC.format(probe=probe.value): mean for probe, mean in means.items()}
        self._spool.write(MetricsEvent(time=now(), step=step, values=values))


def choose_best(event: RolloutsEvent) -> list[LiveResponse]:
    """Return the best response to each prompt, among those kept in full."""
    best: dict[str, Any] = {}
    for rollout in event.rollouts:
        is_whole = not is_clipped(rollout.response) and rollout.trajectory is None
        known = best.get(rollout.group)
        if is_whole and (known is None or rollout.score > known.score):
            best[rollout.group] = rollout
    return [
        LiveResponse(prompt=each.prompt, response=each.response, answer=each.ground_truth or "")
        for each in list(best.values())[:MAX_PROMPTS]
    ]


async def score_probes(
    terms: Sequence[RewardTerm], probes: Mapping[Probe, Sequence[Sample]]
) -> dict[Probe, float]:
    """Average each probe's scores by a mixture of its own."""
    mixture = Mixture(terms)
    try:
        return {
            probe: fmean([(await mixture.score(sample)).score for sample in samples])
            for probe, samples in probes.items()
        }
    finally:
        await mixture.close()
        math_check.end_children()
