"""What is measured of an agent's episodes, beside what verl measures of every run.

``agent/<number>/mean``: of each number that a loop reports in ``extra_fields["agent"]``. ``train/*``,
``eval/*`` and ``baseline/*`` (``eval/*`` before the first step) say the same under the names of the task.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trellis_contracts.events import Split

from trellis_train.hooks.metrics import to_scalars
from trellis_train.hooks.session_failures import SessionsFailing, SessionWatch, read_sessions
from trellis_train.rollout.sample_ids import last_outputs, real_keys

#: Of what loops report with the reward, by the name of the metric.
_TRAIN = {"train/accuracy": "acc", "train/avg_score": "answer_score", "train/avg_strategy": "strategy"}
#: Of verl's metrics of a step.
_STEP = {
    "train/avg_reward": "critic/score/mean",
    "train/policy_loss": "actor/pg_loss",
    "train/loss": "actor/loss",
}
#: Of what verl's validation averages (``val-core/<source>/<name>/mean@<n>``).
_EVAL = {
    "eval/accuracy": "acc",
    "eval/avg_score": "answer_score",
    "eval/avg_hits": "hits",
    "eval/avg_strategy": "strategy",
    "eval/avg_reward": "reward",
    "eval/avg_turns": "turns",
    "eval/avg_tokens": "tokens",
}
_FIRST_HIT = "eval/first_hit_turn"
_VALIDATED = re.compile(r"val-(?:core|aux)/.+/(\w+)/mean@\d+")


class MeasuresEpisodes:
    """Mixed in before one of verl's trainers where its rollouts are episodes; ``Any``: the trainer's own."""

    global_steps: Any
    _report_rollouts: Any
    _sessions: SessionWatch | None = None

    def _build_replay_buffer(self) -> Any:
        buffer = super()._build_replay_buffer()  # type: ignore[misc]
        sample = buffer.sample

        def sample_and_check(*args: Any, **kwargs: Any) -> Any:
            batch, metrics = sample(*args, **kwargs)
            self._check_sessions(batch, "validation" if batch.partition_id == "val" else "train")
            return batch, metrics

        buffer.sample = sample_and_check
        return buffer

    def _check_sessions(self, batch: Any, split: Split) -> None:
        """Raise ``SessionsFailing`` before anything is computed of failed sessions; they are shown first."""
        self._sessions = self._sessions or SessionWatch()
        try:
            self._sessions.take(read_sessions(batch), step=self.global_steps, split=split)
        except SessionsFailing:
            self._report_rollouts(batch, split)
            raise

    def _compute_metrics(self, batch: Any, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super()._compute_metrics(batch, metrics, *args, **kwargs)  # type: ignore[misc]
        metrics.update(collect_agent_metrics(batch))


def collect_agent_metrics(batch: Any) -> dict[str, float]:
    """Average over the episodes of ``batch`` (verl's ``KVBatchMeta``), using each one's last output only."""
    import transfer_queue as tq

    keys = list(last_outputs(real_keys(batch)))
    if not keys:
        return {}
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
    if "extra_fields" not in data:
        return {}
    column = data["extra_fields"]
    return average(column.tolist() if hasattr(column, "tolist") else list(column))


def average(extra_fields: Sequence[Any]) -> dict[str, float]:
    """Average what loops report in the extra fields of each episode."""
    fields = [getattr(each, "data", each) for each in extra_fields]
    numbers = [to_scalars(each.get("agent") or {}) for each in fields if isinstance(each, dict)]
    rewards = [to_scalars(each.get("reward_extra_info") or {}) for each in fields if isinstance(each, dict)]
    names = dict.fromkeys(name for each in numbers for name in each)
    found = {f"agent/{name}/mean": _mean(numbers, name) for name in names}
    if names:
        found |= {metric: _mean(rewards, name) for metric, name in _TRAIN.items()}
    return {name: value for name, value in found.items() if value is not None}


def derive_agent_metrics(values: Mapping[str, float], step: int) -> dict[str, float]:
    """Derive agent metrics from verl's own metrics of a step."""
    found = {metric: values[name] for metric, name in _STEP.items() if name in values}
    measured: dict[str, list[float]] = {}
    for name, value in values.items():
        if (match := _VALIDATED.fullmatch(name)) is not None:
            measured.setdefault(match[1], []).append(value)
    means = {name: sum(values) / len(values) for name, values in measured.items()}
    told = {metric: means[name] for metric, name in _EVAL.items() if name in means}
    if means.get("found"):  # the mean turn of the episodes that found somebody
        told[_FIRST_HIT] = means["found_turn"] / means["found"]
    baseline = {metric.replace("eval/", "baseline/"): value for metric, value in told.items()}
    return found | told | (baseline if step == 0 else {})


def _mean(rows: Sequence[Mapping[str, float]], name: str) -> float | None:
    given = [row[name] for row in rows if name in row]
    return sum(given) / len(given) if given else None
