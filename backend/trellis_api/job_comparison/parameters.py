"""In what jobs differ: their requests, flattened, with where model and data come from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlmodel import Session, col, select

from trellis_api.job_comparison.schemas import ComparedParameter, ParameterGroup
from trellis_api.jobs.models import Job
from trellis_api.jobs.resolved_params import map_resolved
from trellis_api.jobs.schemas import JobRead
from trellis_api.models.models import Model
from trellis_api.sweeps.repository import map_trials

#: Group and name of a setting.
Key = tuple[str, str]
#: The name of a job that made a model, and the step of its checkpoint.
Origin = tuple[str, int | None]
SEED: Key = ("run", "seed")
_GROUPS: tuple[ParameterGroup, ...] = ("run", "model", "data", "params", "overrides")


def describe(session: Session, *, jobs: Sequence[Job], reads: Sequence[JobRead]) -> dict[str, dict[Key, Any]]:
    """Map the id of each job to all of its settings, without null values."""
    origins, params = _map_origins(session, jobs), _map_params(session, jobs)
    return {read.id: _flatten(read, origins.get(read.model.id), params[read.id]) for read in reads}


def list_differing(settings: Mapping[str, Mapping[Key, Any]]) -> list[ComparedParameter]:
    """List the settings whose value is not the same in all jobs."""
    keys = {key for own in settings.values() for key in own}
    order = {group: place for place, group in enumerate(_GROUPS)}
    differing = [key for key in keys if len({_freeze(own.get(key)) for own in settings.values()}) > 1]
    return [
        ComparedParameter(
            group=cast(ParameterGroup, group),
            name=name,
            values={job_id: own[group, name] for job_id, own in settings.items() if (group, name) in own},
        )
        for group, name in sorted(differing, key=lambda key: (order[cast(ParameterGroup, key[0])], key[1]))
    ]


def list_groups(
    session: Session, *, settings: Mapping[str, Mapping[Key, Any]], jobs: Sequence[Job]
) -> list[list[str]]:
    """List all jobs in groups that differ only in the seed or are one trial of a sweep.

    A job's group is a label that anybody may edit, so it says nothing about settings.
    """
    trials = map_trials(session, job_ids=[job.id for job in jobs])
    groups: list[tuple[set[str], list[str]]] = []
    for job in jobs:
        rest = [(list(key), _freeze(value)) for key, value in settings[job.id].items() if key != SEED]
        names, ids = {json.dumps(sorted(rest))}, [job.id]
        if job.id in trials:
            names.add(json.dumps(trials[job.id]))
        for known in [each for each in groups if each[0] & names]:
            groups.remove(known)
            names, ids = names | known[0], known[1] + ids
        groups.append((names, ids))
    order = {job.id: place for place, job in enumerate(jobs)}
    return sorted((sorted(ids, key=order.__getitem__) for _, ids in groups), key=lambda ids: order[ids[0]])


def group_by_seed(
    session: Session, *, settings: Mapping[str, Mapping[Key, Any]], jobs: Sequence[Job]
) -> list[list[str]]:
    """Return the groups with two seeds or more."""
    groups = list_groups(session, settings=settings, jobs=jobs)
    return [ids for ids in groups if len({_freeze(settings[each].get(SEED)) for each in ids}) > 1]


def _flatten(job: JobRead, origin: Origin | None, params: Mapping[str, Any]) -> dict[Key, Any]:
    validation = job.validation_dataset
    found: dict[Key, Any] = {
        ("run", "recipe"): job.recipe,
        ("run", "preset"): job.preset,
        SEED: job.seed,
        ("run", "gpus"): job.resources.gpus,
        ("model", "model"): job.model.name or job.model.id,
        ("model", "trained_by"): None if origin is None else origin[0],
        ("model", "trained_by_step"): None if origin is None else origin[1],
        ("data", "dataset"): (job.dataset.name or job.dataset.id) if job.dataset else None,
        ("data", "dataset_version"): job.dataset_version,
        ("data", "dataset_split"): job.dataset_split,
        ("data", "validation_dataset"): (validation.name or validation.id) if validation else None,
        ("data", "validation_version"): job.validation_version,
        ("data", "validation_split"): job.validation_split,
        ("data", "data_format"): job.data_format,
    }
    found |= {("data", f"columns.{role}"): column for role, column in job.columns.items()}
    # A parameter "seed" that was left empty is the job's own seed, which stands above.
    found |= {("params", name): value for name, value in _join(params) if (name, value) != ("seed", job.seed)}
    found |= {("overrides", name): value for name, value in _join(job.overrides)}
    return {key: value for key, value in found.items() if value is not None}


def _map_params(session: Session, jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
    """Map each job to its effective parameters: a default counts as much as the same value set by hand.

    Only those that a job was given, or that the recipes of all have: of two recipes, the rest says nothing.
    """
    resolved = map_resolved(session, jobs=jobs)
    known = [set(own) for own in resolved.values() if own is not None]
    wanted = {name for job in jobs for name in job.params} | (set.intersection(*known) if known else set())
    return {job.id: _complete(job.params, resolved[job.id] or {}, wanted) for job in jobs}


def _complete(given: Mapping[str, Any], resolved: Mapping[str, Any], wanted: set[str]) -> dict[str, Any]:
    """Merge the given parameters with the resolved rest; equal values keep the type of the parameter.

    A parameter that was given as null has the value that was derived for it.
    """
    found = {name: value for name, value in resolved.items() if name in wanted}
    odd = {name: value for name, value in given.items() if value is not None and found.get(name) != value}
    return found | odd


def _join(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            found += _join(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, value))
    return found


def _map_origins(session: Session, jobs: Sequence[Job]) -> dict[str, Origin]:
    """Map each model that a job of the platform made to that job and its step."""
    models = session.exec(select(Model).where(col(Model.id).in_({job.model_id for job in jobs})))
    return {
        model.id: (str(model.lineage.get("job_name") or model.source_job_id), model.source_step)
        for model in models
        if model.source_job_id is not None
    }


def _freeze(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
