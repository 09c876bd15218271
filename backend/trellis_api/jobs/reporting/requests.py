"""Whether metrics can be sent where a request wants them, before anything runs."""

import re
from importlib.util import find_spec

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.jobs.errors import WandbNotInstalled, WandbNotSetUp, WandbProjectName
from trellis_api.jobs.reporting.schemas import ReportTo

#: W&B refuses these in the names of projects, and longer ones.
_NOT_IN_PROJECT, _MAX_PROJECT = re.compile(r"[/\\#?%:]"), 128
_PACKAGE = "wandb"


def find_report_problems(settings: Settings, wanted: ReportTo | None) -> list[tuple[DomainError, str]]:
    """List the problems that keep the metrics from being sent, each with its field."""
    if wanted is None:
        return []
    project, problems = wanted.wandb.project, list[tuple[type[DomainError], str, str]]()
    if settings.wandb_api_key is None and not settings.wandb_offline:
        message = (
            "Weights & Biases isn't set up. Set TRELLIS_WANDB_API_KEY for the API and the workers, or "
            "TRELLIS_WANDB_OFFLINE=true to keep the runs for wandb sync."
        )
        problems.append((WandbNotSetUp, "report_to.wandb", message))
    elif find_spec(_PACKAGE) is None:
        message = "The package wandb isn't installed. Run pip install wandb where the workers run."
        problems.append((WandbNotInstalled, "report_to.wandb", message))
    if len(project) > _MAX_PROJECT or _NOT_IN_PROJECT.search(project):
        message = rf"A W&B project name has at most {_MAX_PROJECT} characters and none of / \ # ? % :"
        problems.append((WandbProjectName, "report_to.wandb.project", message))
    return [
        (kind(message, [{"code": kind.code, "field": field, "message": message}]), field)
        for kind, field, message in problems
    ]


def refuse_unsendable(settings: Settings, wanted: ReportTo | None) -> None:
    """Raise the first of ``find_report_problems``."""
    for error, _ in find_report_problems(settings, wanted):
        raise error
