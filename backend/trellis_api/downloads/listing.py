"""The files that may be given away of a folder of ours: regular ones below it, under names of our own making.

A name in a request is only compared with these names and never becomes part of a path.
"""

from dataclasses import dataclass
from pathlib import Path

from sqlmodel import Session

from trellis_api.core.settings import Settings
from trellis_api.downloads.errors import FileNotInFolder, FolderNotDownloadable
from trellis_api.jobs import service as jobs
from trellis_api.jobs.errors import CheckpointInUse, CheckpointNotFound
from trellis_api.models.inspection import OutsideRoot, UnusableFolder, list_files
from trellis_api.models.models import Model
from trellis_api.models.service import get_model


@dataclass(frozen=True)
class Listed:
    """A file as it was when it was looked at."""

    name: str
    path: Path
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True)
class Folder:
    """What is downloaded, and how its archive is called."""

    title: str
    files: list[Listed]

    def find(self, name: str) -> Listed:
        """Return the file with this name."""
        found = next((file for file in self.files if file.name == name), None)
        if found is None:
            raise FileNotInFolder(name)
        return found


def list_model(session: Session, settings: Settings, *, model_id: str) -> tuple[Model, Folder]:
    """List the files of a model."""
    model = get_model(session, model_id=model_id)
    if not model.path:
        raise FolderNotDownloadable(f"The weights of {model.name} aren't downloaded yet ({model.state}).")
    return model, _list(model.name, settings.data_root / model.path, settings)


def list_checkpoint(session: Session, settings: Settings, *, job_id: str, step: int) -> Folder:
    """List the files of a checkpoint, as the trainer left them."""
    job = jobs.get_job(session, job_id=job_id)
    row = jobs.get_usable_checkpoint(session, job_id=job_id, step=step)
    folder = jobs.find_folder(row, row.path, data_root=settings.data_root)
    if folder is None:
        raise CheckpointNotFound(f"The files of the checkpoint at step {step} are missing.")
    if jobs.may_be_overwritten(job, row):
        raise CheckpointInUse("The resumed run is about to overwrite this checkpoint. Try again later.")
    return _list(f"{job_id}-step-{step}", folder, settings)


def _list(title: str, folder: Path, settings: Settings) -> Folder:
    root = settings.data_root.resolve()
    resolved = folder.resolve()
    if not resolved.is_relative_to(root) or resolved == root or not resolved.is_dir():
        raise FolderNotDownloadable("The folder is missing or is not managed by the platform.")
    try:
        files = [_look(resolved, path) for path in list_files(resolved, root=root)]
    except (OutsideRoot, UnusableFolder) as error:
        raise FolderNotDownloadable(f"The folder can't be downloaded: {error}") from error
    except OSError as error:
        raise FolderNotDownloadable(f"A file of the folder cannot be read: {error.strerror}.") from error
    if not files:
        raise FolderNotDownloadable("The folder is empty.")
    return Folder(title, sorted(files, key=lambda file: file.name))


def _look(folder: Path, path: Path) -> Listed:
    state = path.stat()
    return Listed(path.relative_to(folder).as_posix(), path, state.st_size, state.st_mtime_ns)
