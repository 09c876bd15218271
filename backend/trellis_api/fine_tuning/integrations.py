"""The ``integrations`` of a fine-tuning job: one with Weights & Biases, which is a job's ``report_to``."""

from trellis_api.core.settings import Settings
from trellis_api.fine_tuning.errors import FineTuningRefused
from trellis_api.fine_tuning.requests import FineTuningCreate
from trellis_api.jobs.reporting.requests import find_report_problems

WANDB = "wandb"


def refuse_unsupported(request: FineTuningCreate, settings: Settings) -> None:
    """Raise ``FineTuningRefused`` for other services than Weights & Biases, and where it isn't set up."""
    for place, integration in enumerate(request.integrations or []):
        param = f"integrations.{place}"
        if integration.type != WANDB:
            raise FineTuningRefused(
                f"{param}: '{integration.type}' is not supported; 'wandb' is.", {"param": f"{param}.type"}
            )
        if integration.wandb is None:
            raise FineTuningRefused(
                f"{param}: 'wandb' with a project is needed.", {"param": f"{param}.wandb"}
            )
        if place > 0:
            raise FineTuningRefused(f"{param}: one integration is supported.", {"param": param})
    for error, field in find_report_problems(settings, request.report_to):
        part = "type" if field == "report_to.wandb" else field.removeprefix("report_to.")
        raise FineTuningRefused(f"integrations.0: {error.message}", {"param": f"integrations.0.{part}"})
