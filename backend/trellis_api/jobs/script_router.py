"""Scripts that start verl: read, and answered with the job that they describe."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from trellis_recipes.script_import import BadScript, ImportedScript, import_script

from trellis_api.core.dependencies import SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES, InvalidRequest

#: Far more than any script that starts a training.
MAX_SCRIPT_CHARACTERS = 200_000
router = APIRouter(prefix="/jobs", tags=["jobs"], responses={401: ERROR_RESPONSES[401]})


class ScriptImport(BaseModel):
    """A shell script that starts verl's PPO or SFT trainer."""

    model_config = ConfigDict(extra="forbid")

    script: str = Field(
        min_length=1, max_length=MAX_SCRIPT_CHARACTERS, description="The text of the script; it is never run."
    )


class UnreadableScript(InvalidRequest):
    """The script starts nothing that the platform runs, or is no shell script."""

    code = "unreadable_script"


@router.post(
    "/import-script", summary="Convert a verl script to a job", responses={422: ERROR_RESPONSES[422]}
)
def import_job_script(body: ScriptImport, settings: SettingsDep) -> ImportedScript:
    """Return recipe, parameters and overrides of the script's settings, and what was left out and why.

    Nothing is launched: model and dataset are the platform's own, and are chosen by the caller.
    """
    try:
        return import_script(body.script, platform=settings.resolved_platform)
    except BadScript as error:
        details = [{"code": UnreadableScript.code, "field": "script", "message": str(error)}]
        raise UnreadableScript(str(error), details) from None
