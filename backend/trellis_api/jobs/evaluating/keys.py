"""Names of the scores of checkpoints among their job's metrics: ``eval/<label>/<metric>``."""

from typing import Any

from trellis_api.jobs.models import Job

_PREFIX = "eval"


def name_score(label: str, metric: str) -> str:
    """Return the key under which a score of a checkpoint is one of its job's metrics."""
    return f"{_PREFIX}/{label}/{metric}"


def list_prefixes(job: Job) -> tuple[str, ...]:
    """List the prefixes of the keys of the job's evaluations; other metrics may be called ``eval/`` too."""
    orders = (job.evaluate or {}).get("benchmarks", [])
    return tuple(f"{_PREFIX}/{order['label']}/" for order in orders)


def name_best_by(evaluate: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the ``BestBy`` that selects the best checkpoint; None if no score does or it has no name."""
    best_by = (evaluate or {}).get("best_by")
    if not best_by or not best_by.get("metric"):
        return None
    return {"metric": name_score(best_by["label"], best_by["metric"]), "mode": best_by["mode"]}
