"""What is measured of each token, kept of a few responses: log-probability, entropy, advantage, KL, mismatch.

All of it lies in the TransferQueue when a step is measured. So that storage stays bounded however long the
run, a few responses of at most ``MAX_TRACED_STEPS`` steps are kept, and those of steps that stand out:
trainer and rollout engine differ, or KL divergence, entropy, advantages or gradient leave their usual range.
So a spike of a curve leads to the tokens behind it.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from trellis_contracts.events import MAX_TRACED_TOKENS, TokenTrace

from trellis_train.hooks.metrics import to_scalars
from trellis_train.rollout.sample_ids import last_outputs, real_keys

if TYPE_CHECKING:
    from torch import Tensor

#: Steps of which tokens are kept, spread over the run, and steps that stand out besides: by the difference
#: between trainer and rollout engine, and by the curves of each measure. A noisy one uses up its own only.
MAX_TRACED_STEPS = 200
MAX_SPIKES = 50
MAX_CURVE_SPIKES = 20
#: Responses of such a step.
MAX_TRACED = 4
#: A step stands out whose largest difference is so many times the usual one.
SPIKE_FACTOR = 4.0
#: Steps that tell what is usual; half of them are needed.
USUAL_STEPS = 16
#: Smaller differences are rounding.
LEAST_SPIKE = 0.05
#: Curves that are watched, and what of a token stands behind them; the dashboard leads from a curve to these
#: (``frontend/src/jobs/page/rollouts/tokens.ts``).
WATCHED = {
    "actor/kl_loss": "kl",
    "actor/reward_kl_penalty": "kl",
    "actor/entropy": "entropy",
    "critic/advantages/max": "advantage",
    "critic/advantages/min": "advantage",
    "actor/grad_norm": "advantage",
}
#: A curve stands out that is so many times its usual deviation away from its median, and so many times that,
#: and by no rounding.
SPIKE_DEVIATIONS = 10.0
SPIKE_SHARE = 0.5
LEAST_DEVIATION = 1e-3
#: Texts of tokens that are remembered: most come again.
MAX_REMEMBERED = 50_000
#: Tokens of which one character may consist.
MAX_PIECES = 4
#: Probabilities that are further apart count as so far: the estimate grows exponentially.
MAX_LOG_RATIO = 10.0
#: Metric: what keeping the tokens of a step took.
TRACE_SECONDS = "perf/token_traces_s"
FIELDS = [
    "responses",
    "response_mask",
    "old_log_probs",
    "rollout_log_probs",
    "ref_log_prob",
    "entropy",
    "advantages",
]


@dataclass(frozen=True)
class Extreme:
    """The response that stands out by a measure of its tokens."""

    key: str
    #: Of the difference, of which a single token tells, the largest one; of other measures the mean size.
    size: float
    measure: str = "difference"


class CurveWatch:
    """Tells which curves leave their usual range, upwards or downwards."""

    def __init__(self) -> None:
        self._usual: dict[str, deque[float]] = {}
        #: Curves that are no numbers any more, which is told once until they are again.
        self._broken: set[str] = set()

    def find_spikes(self, values: Mapping[str, float]) -> list[str]:
        """Return the measures whose curves stand out at a step; to be asked once a step."""
        found = [WATCHED[name] for name in WATCHED if name in values and self._stands_out(name, values[name])]
        return list(dict.fromkeys(found))

    def _stands_out(self, name: str, value: float) -> bool:
        if not math.isfinite(value):
            is_new = name not in self._broken
            self._broken.add(name)
            return is_new
        self._broken.discard(name)
        usual = self._usual.setdefault(name, deque(maxlen=USUAL_STEPS))
        known = [*usual]
        usual.append(value)
        if len(known) < USUAL_STEPS // 2:
            return False
        middle = median(known)
        deviation = median(abs(each - middle) for each in known)
        least = max(SPIKE_DEVIATIONS * deviation, SPIKE_SHARE * abs(middle), LEAST_DEVIATION)
        return abs(value - middle) > least


class TraceSchedule:
    """Chooses the steps of which tokens are kept."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=USUAL_STEPS)
        self._spikes = 0
        self._curve_spikes: Counter[str] = Counter()
        self._misses: Counter[str] = Counter()

    def list_wanted(self, step: int, total_steps: int | None, spikes: Sequence[str]) -> list[str]:
        """List the measures behind whose spikes a response is to be looked for."""
        if _is_regular(step, total_steps):
            return [*spikes]
        return [
            each
            for each in spikes
            if self._curve_spikes[each] < MAX_CURVE_SPIKES and self._misses[each] < MAX_CURVE_SPIKES
        ]

    def note_misses(self, spikes: Iterable[str]) -> None:
        """Note measures behind whose spikes there was no response: looking for it reads a whole batch."""
        self._misses.update(spikes)

    def is_due(
        self, step: int, total_steps: int | None, extreme: Extreme | None, behind: Sequence[Extreme] = ()
    ) -> bool:
        """Tell whether to keep tokens of a step; steps that stand out have a limit of their own.

        They do by the difference between trainer and rollout engine, or by curves: ``behind`` are the
        responses found behind those.
        """
        is_spike = extreme is not None and self._stands_out(extreme.size)
        if extreme is not None and math.isfinite(extreme.size):
            self._usual.append(extreme.size)
        if _is_regular(step, total_steps):
            return True
        self._curve_spikes.update({each.measure for each in behind})
        is_kept = is_spike and self._spikes < MAX_SPIKES
        self._spikes += is_kept
        return is_kept or bool(behind)

    def _stands_out(self, difference: float) -> bool:
        if not math.isfinite(difference):
            return True
        usual = median(self._usual) if len(self._usual) >= USUAL_STEPS // 2 else math.inf
        return difference > max(LEAST_SPIKE, SPIKE_FACTOR * usual)


def _is_regular(step: int, total_steps: int | None) -> bool:
    """Tell whether a step is one of those that are spread over the run."""
    return step % max(1, -(-(total_steps or 1) // MAX_TRACED_STEPS)) == 0


def find_extreme(
    keys: Sequence[str],
    trainer_log_probs: "Sequence[Tensor]",
    engine_log_probs: "Sequence[Tensor]",
    masks: "Sequence[Tensor]",
) -> Extreme | None:
    """Find the largest difference over unmasked tokens, one tensor per response; None without any.

    A difference that is NaN is larger than any other.
    """
    import torch

    lengths = torch.tensor([len(mask) for mask in masks])
    if not int(lengths.sum()):
        return None
    difference = (torch.cat(tuple(trainer_log_probs)) - torch.cat(tuple(engine_log_probs))).float().abs()
    difference = difference.nan_to_num(nan=math.inf).masked_fill(~torch.cat(tuple(masks)).bool(), -1.0)
    place = int(difference.argmax())
    if float(difference[place]) < 0:
        return None
    row = int(torch.searchsorted(lengths.cumsum(0), place, right=True))
    return Extreme(keys[row], float(difference[place]))


def find_extremes(batch: Any, measures: Sequence[str]) -> list[Extreme]:
    """Find the response of ``batch`` (verl's ``KVBatchMeta``) with the largest mean size of each measure.

    Measures that the run doesn't take of tokens have none.
    """
    import transfer_queue as tq

    keys = list(last_outputs(real_keys(batch)))
    if not keys or not measures:
        return []
    fields = [name for name in FIELDS if name != "responses"]
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=fields)
    columns = {name: list(data[name].unbind()) for name in fields if name in data}
    sizes: dict[str, list[float]] = {}
    for row in range(len(keys)):
        tensors = {name: column[row] for name, column in columns.items()}
        mask = tensors["response_mask"].bool()
        measured = _measure(tensors, has_trainer_log_probs=False)
        for measure in measures:
            if measure in measured and bool(mask.any()):
                size = float(measured[measure].float().abs()[mask].mean())
                sizes.setdefault(measure, [-1.0] * len(keys))[row] = size if math.isfinite(size) else math.inf
    return [Extreme(keys[found.index(max(found))], max(found), measure) for measure, found in sizes.items()]


class TokenTexts:
    """Texts of tokens one by one, remembered."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[tuple[int, ...], str] = {}

    def split(self, tokens: Sequence[int]) -> list[str]:
        """Decode each token; of a character made of several tokens, the last one gets it."""
        texts: list[str] = []
        waiting: tuple[int, ...] = ()
        for token in tokens:
            waiting = (*waiting, token)
            text = self._decode(waiting)
            is_part = text.endswith("\ufffd") and len(waiting) < MAX_PIECES
            texts.append("" if is_part else text)
            waiting = waiting if is_part else ()
        if waiting:
            texts[-1] = self._decode(waiting)
        return texts

    def _decode(self, tokens: tuple[int, ...]) -> str:
        known = self._known.get(tokens)
        if known is not None:
            return known
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=False)
        if len(self._known) < MAX_REMEMBERED:
            self._known[tokens] = text
        return text


class Stopwatch:
    """Adds up the seconds of the blocks that it measures."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure a block, also one that raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started


@dataclass(frozen=True)
class TokenTracing:
    """How tokens of a few responses are kept with the sample of a step."""

    texts: TokenTexts
    has_trainer_log_probs: bool
    #: The responses that stand out; they are among the sample.
    extremes: Sequence[Extreme] = ()
    watch: Stopwatch = field(default_factory=Stopwatch)


class TokenTracer:
    """Says of each step of a run whether its tokens are kept, and how."""

    def __init__(self, tokenizer: Any) -> None:
        self._texts = TokenTexts(tokenizer)
        self._schedule = TraceSchedule()
        self._curves = CurveWatch()

    def plan(
        self,
        step: int,
        total_steps: int | None,
        extreme: Extreme | None,
        metrics: Mapping[str, Any],
        find: Callable[[Sequence[str]], Sequence[Extreme]],
        *,
        has_trainer_log_probs: bool,
    ) -> TokenTracing | None:
        """Return how; None where the step is passed over. To be asked once a step.

        ``find`` is asked for the responses behind the curves of ``metrics`` that stand out.
        """
        curves = to_scalars({name: metrics[name] for name in WATCHED if name in metrics})
        spikes = self._schedule.list_wanted(step, total_steps, self._curves.find_spikes(curves))
        tracing = TokenTracing(self._texts, has_trainer_log_probs)
        behind: Sequence[Extreme] = ()
        if spikes:
            # A curve of which no token tells (KL divergence without a reference) makes no step worth keeping.
            with tracing.watch.measure():
                behind = find(spikes)
            self._schedule.note_misses({*spikes} - {each.measure for each in behind})
        if not self._schedule.is_due(step, total_steps, extreme, behind):
            return None
        return replace(tracing, extremes=(*behind, *([] if extreme is None else [extreme])))


def choose_traced(keys: Sequence[str], scores: Mapping[str, float], extremes: Sequence[Extreme]) -> list[str]:
    """Choose up to ``MAX_TRACED`` sampled responses: the extreme ones, then the best and worst in turn."""
    ranked = sorted(keys, key=lambda key: -scores[key])
    ends = [end for place in range((len(ranked) + 1) // 2) for end in (ranked[place], ranked[-1 - place])]
    first = [extreme.key for extreme in extremes if extreme.key in scores]
    return list(dict.fromkeys([*first, *ends]))[:MAX_TRACED]


def trace_tokens(keys: Sequence[str], partition_id: str, tracing: TokenTracing) -> dict[str, TokenTrace]:
    """Read the tokens of these responses from the TransferQueue, by key."""
    import transfer_queue as tq

    if not keys:
        return {}
    data = tq.kv_batch_get(keys=list(keys), partition_id=partition_id, select_fields=FIELDS)
    columns = {name: list(data[name].unbind()) for name in FIELDS if name in data}
    rows = [{name: column[row] for name, column in columns.items()} for row in range(len(keys))]
    around = {extreme.key: extreme.measure for extreme in reversed(tracing.extremes)}
    return {
        key: trace(
            row,
            tracing.texts,
            has_trainer_log_probs=tracing.has_trainer_log_probs,
            around=around.get(key),
        )
        for key, row in zip(keys, rows, strict=True)
    }


def trace(
    row: "Mapping[str, Tensor]",
    texts: TokenTexts,
    *,
    has_trainer_log_probs: bool,
    around: str | None = None,
) -> TokenTrace:
    """Trace one response; if it is too long, keep what is around the token that stands out most.

    It does by the measure ``around``, or else by the first of those that say most.

    ``row`` has 1-D tensors of the response's length. Without the trainer's own log-probabilities (bypass
    mode) those of the rollout engine are shown, and there is no difference.
    """
    mask = row["response_mask"].bool()
    measured = _measure(row, has_trainer_log_probs=has_trainer_log_probs)
    first = _choose_window(measured, mask, around)
    window = slice(first, first + MAX_TRACED_TOKENS)
    kept = mask[window].tolist()
    broken: set[int] = set()
    lists: dict[str, list[float | None]] = {}
    for name, values in measured.items():
        lists[name] = []
        for place, (value, is_written) in enumerate(zip(values[window].tolist(), kept, strict=True)):
            is_finite = math.isfinite(value)
            if is_written and not is_finite:
                broken.add(place)
            lists[name].append(float(f"{value:.4g}") if is_written and is_finite else None)
    return TokenTrace(
        first=first,
        texts=texts.split(row["responses"][window].tolist()),
        not_finite=sorted(broken),
        **lists,
    )


def _measure(row: "Mapping[str, Tensor]", *, has_trainer_log_probs: bool) -> "dict[str, Tensor]":
    found: dict[str, Tensor] = {}
    own = row.get("old_log_probs", row.get("rollout_log_probs"))
    if own is not None:
        found["log_prob"] = own
    if "entropy" in row:
        found["entropy"] = row["entropy"]
    if "advantages" in row:
        found["advantage"] = row["advantages"]
    if own is not None and "ref_log_prob" in row:
        ratio = (row["ref_log_prob"] - own).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
        found["kl"] = ratio.exp() - 1 - ratio
    if has_trainer_log_probs and {"old_log_probs", "rollout_log_probs"} <= set(row):
        found["difference"] = row["old_log_probs"] - row["rollout_log_probs"]
    return found


def _choose_window(measured: "Mapping[str, Tensor]", mask: "Tensor", around: str | None) -> int:
    """Choose where the kept tokens begin, so that the one that stands out most is in their middle."""
    length = len(mask)
    if length <= MAX_TRACED_TOKENS:
        return 0
    order = (around, "difference", "kl", "entropy", "log_prob")
    name = next((each for each in order if each is not None and each in measured), None)
    if name is None:
        return 0
    size = measured[name].float().abs().nan_to_num(nan=math.inf).masked_fill(~mask, -1.0)
    return min(max(0, int(size.argmax()) - MAX_TRACED_TOKENS // 2), length - MAX_TRACED_TOKENS)
