"""The dry run's probes again, made of what the policy writes now and scored by the run's own rewards.

A trick that earns as much as the policy's best responses is what the policy will learn next. Nothing that
costs money, waits or runs code is scored again (``trellis_recipes.reward_probes``), and no step waits for it.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from trellis_contracts.dry_run import Probe
from trellis_contracts.events import LogEvent, MetricsEvent, PromptMessage, Rollout, RolloutsEvent
from trellis_contracts.rewards import RewardTerm
from trellis_recipes.reward_probes import NotProbed, ProbePlan, plan_probes

from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.rollouts import clip_text
from trellis_train.rewards import math_check
from trellis_train.rewards.mixture import Mixture, Scored
from trellis_train.rewards.probes import LiveResponse, make_live_probes
from trellis_train.rewards.sample import Sample

logger = logging.getLogger(__name__)

METRIC = "probe/{probe}/mean"
#: Metric: what scoring the probes of a step took, beside the run.
PROBE_SECONDS = "perf/probes_s"
#: Steps from one time to the next, where that costs no more than this share of the run's time.
EVERY = 10
MAX_SHARE = 0.01
#: Characters of each text that is shown of a trick.
MAX_TEXT_CHARS = 8000
MAX_MESSAGES = 4
_WHY = {
    NotProbed.OWN_REWARD: "an agent computes its own reward",
    NotProbed.NOTHING_TO_EARN: "the rewards that are fast and free can pay nothing by themselves",
    NotProbed.UNBOUNDED: "it is not known what {left_out} would give at least; "
    "rewards that take time or money, or run code, are not computed again",
}
#: A probe's samples, and what each of them earned.
Outcomes = Mapping[Probe, Sequence[tuple[Sample, Scored]]]


class LiveProbes:
    """Scores probes beside the run; the results are metrics of the step whose responses they were made of."""

    def __init__(self, plan: ProbePlan, spool: Spool) -> None:
        self._plan = plan
        self._spool = spool
        self._thread: threading.Thread | None = None
        self._began = time.perf_counter()
        self._spent_s = 0.0

    @classmethod
    def of_rewards(cls, rewards: Sequence[Mapping[str, Any]], spool: Spool) -> "LiveProbes | None":
        """Make probes, or say in the run's log why there are none (None)."""
        plan = plan_probes([RewardTerm.model_validate(dict(reward)) for reward in rewards])
        if line := describe_plan(plan):
            spool.write(LogEvent(time=now(), stream="platform", lines=[line]))
        return cls(plan, spool) if plan.reason is None else None

    def is_due(self, step: int) -> bool:
        """Tell whether to probe a step: one of ``EVERY``, or fewer where that costs too much."""
        is_busy = self._thread is not None and self._thread.is_alive()
        is_cheap = self._spent_s <= MAX_SHARE * (time.perf_counter() - self._began)
        return step > 0 and step % EVERY == 0 and not is_busy and is_cheap

    def start(self, step: int, responses: Sequence[LiveResponse]) -> bool:
        """Begin to score the probes of a step that is due; whether there are any."""
        names = [term.name for term in self._plan.left_out]
        known = [each for each in responses if all(name in each.earned for name in names)]
        if not known:
            return False
        self._thread = threading.Thread(target=self._report, args=(step, known), name="probes", daemon=True)
        self._thread.start()
        return True

    def wait(self) -> None:
        """Wait until what was begun is reported."""
        if self._thread is not None:
            self._thread.join()

    def _report(self, step: int, responses: Sequence[LiveResponse]) -> None:
        began = time.perf_counter()
        try:
            outcomes = asyncio.run(score_probes(self._plan, responses))
        except Exception:  # an edge: the run must not end of what only watches it
            logger.exception("the probes of step %d could not be scored", step)
            return
        finally:
            took = time.perf_counter() - began
            self._spent_s += took
        # Before the metrics, of which an alarm may be raised: its example is among these.
        self._spool.write(show_probes(step, outcomes))
        values = {
            METRIC.format(probe=probe.value): fmean(scored.score for _, scored in found)
            for probe, found in outcomes.items()
        }
        self._spool.write(MetricsEvent(time=now(), step=step, values={**values, PROBE_SECONDS: took}))


def describe_plan(plan: ProbePlan) -> str | None:
    """Say why tricks are not scored, or which rewards they are scored without; None where all is scored."""
    left_out = ", ".join(term.name for term in plan.left_out)
    if plan.reason is not None:
        why = _WHY[plan.reason].format(left_out=left_out)
        return f"Reward probes: tricks are not scored in this run, because {why}."
    if not left_out:
        return None
    return (
        f"Reward probes: tricks are scored without {left_out}; what is left out counts at its lowest value."
    )


async def score_probes(
    plan: ProbePlan, responses: Sequence[LiveResponse]
) -> dict[Probe, list[tuple[Sample, Scored]]]:
    """Score each probe by a mixture of its own.

    What is left out counts for the policy's own responses as in the run, and for a trick at its lowest.
    """
    mixture = Mixture(plan.scored)
    try:
        outcomes = {
            probe: [(sample, await mixture.score(sample)) for sample in samples]
            for probe, samples in make_live_probes(responses).items()
        }
    finally:
        await mixture.close()
        math_check.end_children()
    known = [sum(term.weight * each.earned[term.name] for term in plan.left_out) for each in responses]
    return {
        probe: [
            (sample, _add(scored, more))
            for (sample, scored), more in zip(
                found, known if probe is Probe.ROLLOUTS else [plan.floor] * len(found), strict=True
            )
        ]
        for probe, found in outcomes.items()
    }


def _add(scored: Scored, more: float) -> Scored:
    return Scored(scored.score + more, scored.acc, scored.parts, scored.errors, scored.is_unusable)


def show_probes(step: int, outcomes: Outcomes) -> RolloutsEvent:
    """Make an event of what earned most of each probe."""
    best = {probe: max(found, key=lambda each: each[1].score) for probe, found in outcomes.items()}
    rollouts = [
        Rollout(
            group=probe.value,
            prompt=_shorten(sample.prompt),
            messages=_as_messages(sample) or None,
            response=_shorten(sample.response),
            ground_truth=_shorten(sample.answer),
            score=scored.score,
            reward_parts=scored.parts,
            response_tokens=_count_tokens(sample),
        )
        for probe, (sample, scored) in best.items()
    ]
    return RolloutsEvent(time=now(), step=step, split="probe", rollouts=rollouts)


def _as_messages(sample: Sample) -> list[PromptMessage]:
    """Return the end of the conversation, in which the question stands."""
    return [
        PromptMessage(role=str(each.get("role", "")), content=_shorten(str(each.get("content", ""))))
        for each in sample.messages[-MAX_MESSAGES:]
    ]


def _count_tokens(sample: Sample) -> int:
    """Count the tokens of a response; where that is not known, a character is a quarter of one."""
    return -(-len(sample.response) // 4) if sample.response_tokens is None else sample.response_tokens


def _shorten(text: str) -> str:
    return clip_text(text, MAX_TEXT_CHARS)
