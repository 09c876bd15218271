"""Where the files of an evaluation lie."""

from pathlib import Path

from trellis_contracts.evaluation import RESULT_FILE, SAMPLES_FOLDER

from trellis_api.core.settings import Settings


def evaluation_folder(settings: Settings, evaluation_id: str) -> Path:
    """Return the folder for samples, results and whatever attempts share."""
    return settings.data_root / "evaluations" / evaluation_id


def result_path(settings: Settings, evaluation_id: str) -> Path:
    """Return the path of the result that a run writes at its end."""
    return evaluation_folder(settings, evaluation_id) / RESULT_FILE


def samples_path(settings: Settings, evaluation_id: str, label: str) -> Path:
    """Return the path of a benchmark's samples, which exist once it is done."""
    return evaluation_folder(settings, evaluation_id) / SAMPLES_FOLDER / f"{label}.sqlite"
