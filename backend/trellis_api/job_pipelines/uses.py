"""What pipelines are going to use: what the stages that wait or run name in a parameter."""

from collections.abc import Collection

from sqlmodel import Session

from trellis_api.core.uses import Finder, Use
from trellis_api.job_pipelines import repository


def find_naming(parameter: str) -> Finder[str]:
    """Make the finder of active pipelines that will start a job whose parameter names a thing."""

    def find(session: Session, keys: Collection[str]) -> dict[str, list[Use]]:
        found: dict[str, list[Use]] = {key: [] for key in keys}
        for pipeline_id, name, document in repository.list_active_documents(session):
            value = (document.get("params") or {}).get(parameter)
            if isinstance(value, str) and value in found:
                found[value].append(Use("pipeline", pipeline_id, name))
        return found

    return find
