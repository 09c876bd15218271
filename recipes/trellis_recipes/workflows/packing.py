"""A folder with a workflow as an archive, for an upload."""

import tarfile
from pathlib import Path

from trellis_recipes.workflows.package import list_files


def pack(folder: Path, archive: Path) -> Path:
    """Write the files of a package into a tar archive: without owners and times, the same bytes each time."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime, member.mode = 0, 0o644
        return member

    with tarfile.open(archive, "w:gz", compresslevel=6) as opened:
        for path in list_files(folder):
            opened.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=plain)
    return archive
