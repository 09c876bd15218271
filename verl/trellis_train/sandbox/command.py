"""The bubblewrap command that isolates a Python process, and whether this machine permits it.

Inside: the system's libraries and this Python's packages read-only, a small ``/tmp`` of its own, no
network, no other processes, no environment, and nothing of the data root, of homes or of ``/proc``.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trellis_train.sandbox.errors import SandboxUnavailable
from trellis_train.sandbox.limits import Limits
from trellis_train.sandbox.seccomp import build_filter

PROGRAM = "bwrap"
HARNESS = Path(__file__).with_name("harness.py")
HARNESS_INSIDE = "/sandbox/harness.py"
#: What else of ours lies inside, where the harness imports it from.
_MODULES = ("plain_data.py", "remote_calls.py", "remote_objects.py")
_MODULES_INSIDE = "/sandbox/trellis_train/sandbox"
CODE_INSIDE = "/sandbox/code.py"
#: Where the folder lies that code brings along, and the packages that were installed for it.
FOLDER_INSIDE, PACKAGES_INSIDE = "/workflow", "/packages"
#: The kernel ends an isolated process together with the thread that started it, so all are started by
#: one that stays as long as this process.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sandbox-start")
#: Neither root nor anybody else.
_NOBODY = "65534"
_TRIAL_TIMEOUT_S = 20.0
#: Libraries are found through these; what else lies in /etc is nobody's business.
_ETC_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - inside
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    # Threads of numerical libraries take address space and bring nothing to a small function.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@cache
def require_sandbox() -> None:
    """Raise ``SandboxUnavailable`` where code cannot be isolated; found out by doing it once."""
    problem = find_problem()
    if problem:
        raise SandboxUnavailable(
            f"Code only runs in a sandbox, and this machine has none: {problem}. Install bubblewrap and "
            "allow user namespaces (in a container, use a seccomp profile that permits them)."
        )


def find_problem() -> str | None:
    """Explain why code cannot be isolated here, or return None."""
    if sys.platform != "linux":
        return "it needs Linux"
    if shutil.which(PROGRAM) is None:
        return "bubblewrap (bwrap) is not installed"
    if build_filter() is None:
        return "this CPU architecture has no system-call filter"
    with Inherited(b"") as code:
        command = build_command(["-c", "print('isolated')"], code=code, limits=Limits())
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                command.arguments,
                pass_fds=command.descriptors,
                capture_output=True,
                text=True,
                timeout=_TRIAL_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap could not run ({error})"
        finally:
            command.close()
    if done.stdout.strip() != "isolated":
        return f"bubblewrap failed ({done.stderr.strip()[-300:] or f'exit code {done.returncode}'})"
    return None


@dataclass(frozen=True)
class Belongings:
    """What code brings along, read-only."""

    #: Its own files; the process starts in this folder.
    folder: Path | None = None
    #: Installed packages, which stand in place of all of this Python's.
    packages: Path | None = None

    def list_binds(self) -> list[str]:
        """List arguments of bubblewrap."""
        places = ((self.folder, FOLDER_INSIDE), (self.packages, PACKAGES_INSIDE))
        return [
            word
            for place, inside in places
            if place is not None
            for word in ("--ro-bind", str(place), inside)
        ]

    @property
    def package_folders(self) -> list[str]:
        """Where the code finds what it imports."""
        return package_folders() if self.packages is None else [PACKAGES_INSIDE]


NOTHING = Belongings()


class Inherited:
    """Bytes as an open file that a child process inherits; they never lie on a disk."""

    def __init__(self, content: bytes) -> None:
        self.descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC)
        os.write(self.descriptor, content) if content else None
        os.lseek(self.descriptor, 0, os.SEEK_SET)

    def __enter__(self) -> "Inherited":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's end."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Command:
    """A command with the descriptors that it needs open when it starts."""

    def __init__(self, arguments: Sequence[str], filter_file: Inherited, code: Inherited) -> None:
        self.arguments = list(arguments)
        self._filter_file = filter_file
        self.descriptors = (filter_file.descriptor, code.descriptor)

    def start(self, *, descriptors: Sequence[int] = (), **options: Any) -> subprocess.Popen[bytes]:
        """Start it, with further descriptors that it inherits, in a session of its own."""

        def start() -> subprocess.Popen[bytes]:
            inherited = (*self.descriptors, *descriptors)
            return subprocess.Popen(self.arguments, pass_fds=inherited, start_new_session=True, **options)  # noqa: S603 - our own arguments

        try:
            return _starter.submit(start).result()
        finally:
            self.close()

    def close(self) -> None:
        """Close what was opened for the start."""
        self._filter_file.close()


def build_command(
    python_arguments: Sequence[str],
    *,
    code: Inherited,
    limits: Limits,
    packages: Sequence[str] | None = None,
    belongings: Belongings = NOTHING,
) -> Command:
    """Build bubblewrap's command for this Python with these arguments; ``code`` is at ``CODE_INSIDE``.

    Of the installed packages only the folders named in ``packages`` are there; None for all, or for none
    where the code brings its own.
    """
    if belongings.packages is not None:
        packages = ()
    start = "/tmp" if belongings.folder is None else FOLDER_INSIDE  # noqa: S108 - inside
    program, rules = shutil.which(PROGRAM), build_filter()
    if program is None or rules is None:
        raise SandboxUnavailable("Code only runs in a sandbox, and this machine has none.")
    filter_file = Inherited(rules)
    arguments = [
        program,
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"),
        *("--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox", "--cap-drop", "ALL"),
        *("--size", str(limits.disk_bytes), "--tmpfs", "/tmp"),  # noqa: S108 - inside
        *_list_binds(_system_folders()),
        *(_hide_packages(packages) if packages is not None else ()),
        *("--dev", "/dev", "--remount-ro", "/dev"),
        *("--ro-bind", str(HARNESS), HARNESS_INSIDE),
        *(
            word
            for name in _MODULES
            for word in ("--ro-bind", str(HARNESS.with_name(name)), f"{_MODULES_INSIDE}/{name}")
        ),
        *("--ro-bind-data", str(code.descriptor), CODE_INSIDE),
        *belongings.list_binds(),
        *(word for name, value in _ENVIRONMENT.items() for word in ("--setenv", name, value)),
        *("--chdir", start, "--remount-ro", "/", "--seccomp", str(filter_file.descriptor)),
        *("--", _python(), "-I", "-S", "-B", *python_arguments),
    ]
    return Command(arguments, filter_file, code)


def package_folders() -> list[str]:
    """Return the folders of the packages that isolated code may import."""
    return list(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))


def _hide_packages(kept: Sequence[str]) -> list[str]:
    """Cover the folders of all packages with empty ones that hold only some of these packages."""
    base = {"base": sys.base_prefix, "platbase": sys.base_prefix}
    of_base = [sysconfig.get_path(name, vars=base) for name in ("purelib", "platlib")]
    arguments = []
    for folder in dict.fromkeys([*package_folders(), *of_base]):
        if not os.path.isdir(folder):
            continue
        arguments += ["--tmpfs", folder]
        for name in kept:
            arguments += ["--ro-bind-try", f"{folder}/{name}", f"{folder}/{name}"]
        arguments += ["--remount-ro", folder]
    return arguments


def _python() -> str:
    """Return the interpreter behind the virtual environment, whose folder has scripts but no libraries."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return os.path.realpath(base)


def _system_folders() -> Mapping[str, str | None]:
    """Map each folder to its target if it is a link. Folders of this Python elsewhere are included."""
    folders: dict[str, str | None] = {"/usr": None}
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            folders[name] = os.readlink(name)
        elif os.path.isdir(name):
            folders[name] = None
    python_home = str(Path(_python()).parents[1])
    for name in (sys.base_prefix, python_home, *package_folders()):
        if not name.startswith("/usr/") and name != "/usr":
            folders[name] = None
    return folders


def _list_binds(folders: Mapping[str, str | None]) -> list[str]:
    arguments = []
    for name, target in folders.items():
        arguments += ["--ro-bind", name, name] if target is None else ["--symlink", target, name]
    for name in _ETC_FILES:
        arguments += ["--ro-bind-try", name, name]
    return arguments
