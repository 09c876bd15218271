"""How much of a file has arrived, on stderr."""

from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from trellis_cli.output import err, size


class FileBar:
    """A bar while a file is sent; nothing where nobody looks."""

    def __init__(self, file: Path) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bar = Progress(*columns, console=err, disable=not err.is_terminal, transient=True)
        self._task = self._bar.add_task(escape(file.name), total=file.stat().st_size)
        self._file, self._has_begun = file, False

    def __enter__(self) -> "FileBar":
        self._bar.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._bar.stop()

    def show(self, there: int) -> None:
        """Show that so many bytes have been uploaded."""
        if not self._has_begun and there:
            err.print(f"{self._file.name}: {size(there)} already uploaded", markup=False, highlight=False)
        self._has_begun = True
        self._bar.update(self._task, completed=there)
