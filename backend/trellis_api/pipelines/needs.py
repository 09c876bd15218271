"""What a pipeline needs besides its rows: a tokenizer, further datasets, judges.

Names and ids are resolved here, where the database is at hand, into plain data: the process that works on
the rows makes an operator's ``Context`` of it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from sqlmodel import Session
from trellis_contracts.data_tasks import DatasetVersion, Needs
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.pipeline import Pipeline
from trellis_data.operator import Context
from trellis_data.scoring.endpoint_judge import EndpointJudge
from trellis_data.versions.version_rows import files_of

from trellis_api.core.settings import Settings
from trellis_api.datasets import repository as datasets
from trellis_api.datasets import versions
from trellis_api.datasets.errors import DatasetNotFound
from trellis_api.datasets.store import open_store
from trellis_api.models.ready import require_ready
from trellis_api.pipelines.errors import JudgeUnknown

_JUDGE_OPERATOR = "judge"


def outline(needs: Needs) -> Context:
    """Make enough of a context to check a pipeline; no file is read and no judge is called."""
    nowhere = Path("/nonexistent")
    return Context(
        tokenizer=needs.tokenizer,
        resources={name: files[0] for name, files in needs.resources.items()},
        scorers={
            name: EndpointJudge(name, endpoint, nowhere, needs.max_judge_cost)
            for name, endpoint in needs.judges.items()
        },
    )


def find_needs(
    session: Session,
    settings: Settings,
    *,
    tokenizer: str | None,
    judges: Iterable[str],
    resources: Mapping[str, DatasetVersion],
    max_judge_cost: float = 1.0,
) -> Needs:
    """Find everything that is named; raises if it doesn't exist. Nothing of it is deleted meanwhile."""
    return Needs(
        tokenizer=find_model_folder(session, settings, model_id=tokenizer) if tokenizer else None,
        resources={name: _find_files(session, settings, each) for name, each in resources.items()},
        judges={name: find_judge(settings, name) for name in judges},
        max_judge_cost=max_judge_cost,
        allows_local_addresses=settings.allows_local_addresses,
    )


def judges_of(pipeline: Pipeline, named: Iterable[str] = ()) -> list[str]:
    """List the judges that steps use, and the other named ones, each once."""
    asked = (step.params.get("scorer") for step in pipeline.steps if step.operator == _JUDGE_OPERATOR)
    return list(dict.fromkeys([*named, *(each for each in asked if isinstance(each, str) and each)]))


def find_model_folder(session: Session, settings: Settings, *, model_id: str) -> Path:
    """Return the folder of a model's files."""
    return settings.data_root / (require_ready(session, model_id=model_id).path or "")


def find_judge(settings: Settings, name: str) -> JudgeEndpoint:
    """Return the judge's endpoint; raises ``JudgeUnknown``."""
    if name not in settings.judges:
        known = ", ".join(sorted(settings.judges)) or "none configured (TRELLIS_JUDGES)"
        raise JudgeUnknown(f"Unknown judge '{name}'; available: {known}.", {"judge": name})
    return settings.judges[name]


def _find_files(session: Session, settings: Settings, wanted: DatasetVersion) -> list[Path]:
    """Find the files of a version, split by split."""
    if datasets.lock_dataset(session, dataset_id=wanted.dataset_id, is_shared=True) is None:
        raise DatasetNotFound(f"Dataset '{wanted.dataset_id}' not found.")
    row = versions.resolve(session, dataset_id=wanted.dataset_id, revision=wanted.version)
    store = open_store(settings)
    splits = files_of(store, store.version(row.id))
    return [path for files in splits.values() for path in files]
