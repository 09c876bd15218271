"""A user and mount namespace of a process's own, in which only what rules name can be seen (Linux).

A user namespace (user_namespaces(7)) needs no privilege, and takes away those that reach beyond it: its
processes cannot look into others outside it (``/proc/<pid>/environ``, ``root``, ``mem``, ptrace), whatever
their user. All is done twice: what is mounted in the first namespace cannot be taken off in the second
(mount_namespaces(7), "locked mounts"). Standard library only, and only in a process with one thread.
"""

import contextlib
import ctypes
import errno
import os
import resource
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from trellis_contracts import gpu_devices
from trellis_contracts.isolation import Rules, is_link_target, is_run_written, is_showable

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 32, 4096, 16384, 1 << 19
#: statvfs(3)'s flags by mount(2)'s: a remount has to keep those that a mount came with.
_KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
#: Below the home: keys and logins of other programs.
_SECRETS_OF_HOME = (
    ".config/trellis", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh",
    ".netrc", ".git-credentials", ".pgpass", ".pypirc", ".npmrc",
)  # fmt: skip
#: Those who may write to these are given whatever they ask for by a process outside.
_DOORS = (
    "/run/docker.sock", "/run/containerd", "/run/podman", "/run/crio", "/run/dbus", "/run/systemd",
    "/var/run/docker.sock", "/run/user", "/run/postgresql", "/var/run/postgresql",
)  # fmt: skip
#: Where libraries keep what they have compiled or fetched, and where CUDA's multi-process service listens.
_CACHES = (
    "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "HF_HOME", "HF_HUB_CACHE", "VLLM_CACHE_ROOT",
    "XDG_CACHE_HOME", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY", "TORCH_EXTENSIONS_DIR", "TORCH_HOME",
    "FLASHINFER_WORKSPACE_BASE", "DG_JIT_CACHE_DIR", "NUMBA_CACHE_DIR",
)  # fmt: skip
#: Of the hub's client: files in its folder, and variables that name them elsewhere.
_HUB_SECRETS = ("token", "stored_tokens")
_HUB_SECRET_VARIABLES = ("HF_TOKEN_PATH", "HF_STORED_TOKENS_PATH")
#: Names the file with the token that opens a Ray cluster.
_RAY_TOKEN = "RAY_AUTH_TOKEN_PATH"  # noqa: S105 - a variable's name
#: Folders of the whole machine, which stay as they are.
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - only compared
_libc = ctypes.CDLL(None, use_errno=True)


class NotIsolated(Exception):
    """The process cannot be isolated; the message says what is in the way."""


def find_problem(rules: Rules | None = None) -> str | None:
    """Return why processes cannot be isolated on this machine, or None; tested in a child process.

    Without ``rules``, whether it is possible at all; what these name may be in the way, too.
    """
    if not hasattr(_libc, "unshare"):
        return "it needs Linux"
    tried = rules or Rules(mode="required", data_root=os.devnull)
    return _try_in_child(lambda: enter(tried))


def enter(rules: Rules) -> None:
    """Isolate this process for good: it and its children see what the rules name. One thread only."""
    folder = os.getcwd()
    for path in rules.writable:
        os.makedirs(path, exist_ok=True)
    _keep_memory_locks()
    _own_namespaces()
    _mount("none", "/", _MS_REC | _MS_SLAVE)
    if os.path.isdir(rules.data_root):
        try:
            _cover(rules)
        except OSError as error:
            raise NotIsolated(f"{error.filename or rules.data_root}: {error.strerror}") from error
    for path in _list_hidden(rules):
        _hide(path)
    # Its owner writes to it without any privilege, and the kernel starts what core_pattern names.
    _read_only("/proc/sys")
    _own_namespaces()
    # By its old path: a folder that was entered before is seen without what now lies over it.
    os.chdir(folder if os.path.isdir(folder) else "/")


def join(pid: int) -> None:
    """See what process ``pid`` sees, which was isolated before on this machine."""
    folder = os.getcwd()
    descriptors = []
    try:
        for name in ("user", "mnt"):
            descriptors.append(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC))
        for descriptor, kind in zip(descriptors, (_CLONE_NEWUSER, _CLONE_NEWNS), strict=True):
            if _libc.setns(descriptor, kind) != 0:
                raise NotIsolated(f"setns: {os.strerror(ctypes.get_errno())}")
    except OSError as error:
        raise NotIsolated(f"process {pid} cannot be joined: {error.strerror}") from error
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    os.chdir(folder if os.path.isdir(folder) else "/")


# -- Namespaces --


def _own_namespaces() -> None:
    """Enter a user and a mount namespace, with the same numbers of users and groups as before."""
    identities = {name: _identity(name) for name in ("uid_map", "gid_map")}
    if os.geteuid() == 0:
        # Only a process outside may map more than one user.
        _by_child_outside(lambda pid: _map(pid, identities))
        return
    _unshare()
    _write("/proc/self/setgroups", "deny")
    for name, text in identities.items():
        _write(f"/proc/self/{name}", text)


def _keep_memory_locks() -> None:
    """Let root lock as much memory as before: inside, it is not exempt from the limit any more.

    The network's adapters lock what they read and write.
    """
    if os.geteuid() == 0:
        # Some containers' root may not; then the limit held for it before, too.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _map(pid: int, identities: Mapping[str, str]) -> None:
    for name, text in identities.items():
        _write(f"/proc/{pid}/{name}", text)


def _identity(name: str) -> str:
    """Build lines for ``uid_map`` or ``gid_map`` that keep every number, as far as this process may."""
    if os.geteuid() != 0:
        own = os.geteuid() if name == "uid_map" else os.getegid()
        return f"{own} {own} 1"
    known = [line.split() for line in Path(f"/proc/self/{name}").read_text().splitlines()]
    return "\n".join(f"{inside} {inside} {count}" for inside, _, count in known)


def _by_child_outside(work: Callable[[int], object]) -> None:
    """Unshare while a child that stays outside waits, and have it do ``work`` with this process's id."""
    pid = os.getpid()
    go_read, go_write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(go_write)
            if os.read(go_read, 1):
                work(pid)
                code = 0
        finally:
            os._exit(code)
    os.close(go_read)
    try:
        _unshare()
        os.write(go_write, b"1")
    finally:
        os.close(go_write)
        status = os.waitpid(child, 0)[1]
    if status != 0:
        raise NotIsolated("users cannot be mapped into a namespace")


def _unshare() -> None:
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        raise NotIsolated(f"user and mount namespaces are not permitted ({os.strerror(number)})")


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        raise NotIsolated(f"{path}: {error.strerror}") from error


def _try_in_child(work: Callable[[], None]) -> str | None:
    """Try ``work`` in a child process; return what went wrong, or None."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            before = gpu_devices.list_devices()
            work()
            if obstacle := gpu_devices.find_obstacle(before):
                raise NotIsolated(obstacle)
        except Exception as error:  # noqa: BLE001 - the edge of the process: said by the one that waits
            os.write(write_end, (str(error) or type(error).__name__).encode()[:500])
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as said:
        problem = said.read().decode()
    os.waitpid(child, 0)
    return problem or None


# -- Mounts --


def _mount(source: str, target: str, flags: int, kind: str | None = None, data: str | None = None) -> None:
    words = [None if word is None else word.encode() for word in (source, target, kind, data)]
    if _libc.mount(words[0], words[1], words[2], flags, words[3]) != 0:
        raise NotIsolated(f"{target} cannot be mounted ({os.strerror(ctypes.get_errno())})")


def _read_only(path: str) -> None:
    _mount(path, path, _MS_BIND | _MS_REC)
    _remount_read_only(path)


def _remount_read_only(path: str) -> None:
    has = os.statvfs(path).f_flag
    kept = sum(flag for reported, flag in _KEPT_FLAGS.items() if has & reported)
    _mount("none", path, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept)


def _cover(rules: Rules) -> None:
    """Lay an empty folder over the data root, with what the rules name in it."""
    root = os.path.realpath(rules.data_root)
    found, links = _find_visible(rules, root)
    # Opened before they are covered.
    opened = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in found}
    temporary = _open_temporary(rules)
    try:
        _mount("tmpfs", root, _MS_NOSUID | _MS_NODEV, "tmpfs", "mode=755")
        for path in sorted(opened):  # folders before what lies in them
            _show(opened[path], path, is_writable=found[path])
        for path, descriptor in temporary.items():
            _show(descriptor, path, is_writable=True)
        _lock(filter(os.path.isfile, rules.locked))
        for link, target in links.items():
            if not os.path.lexists(link):
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(target, link)
        # What is written where nobody keeps it fails at once.
        _remount_read_only(root)
    finally:
        for descriptor in (*opened.values(), *temporary.values()):
            os.close(descriptor)


def _lock(files: Iterable[str]) -> None:
    """Make files read-only for good: what is mounted can neither be written, removed nor renamed."""
    by_folder: dict[str, list[str]] = {}
    for path in files:
        by_folder.setdefault(os.path.dirname(path), []).append(path)
    for folder, inside in by_folder.items():
        # The folder as well: it could be renamed, and another one be put in its place.
        _mount(folder, folder, _MS_BIND | _MS_REC)
        for path in inside:
            _read_only(path)


def _open_temporary(rules: Rules) -> dict[str, int]:
    """Open the folder for temporary files that replaces the current one, unless that is the machine's own."""
    folder = os.path.realpath(os.environ.get("TMPDIR") or _SHARED[0])
    if rules.temporary is None or folder in _SHARED:
        return {}
    os.makedirs(rules.temporary, mode=0o700, exist_ok=True)
    return {folder: os.open(rules.temporary, os.O_PATH | os.O_CLOEXEC)}


def _find_visible(rules: Rules, root: str) -> tuple[dict[str, bool], dict[str, str]]:
    """Map each visible real path in the data root to whether it is writable; also return the links."""
    found: dict[str, bool] = {}
    links: dict[str, str] = {}
    writable = [*rules.writable, *(os.environ[name] for name in _CACHES if name in os.environ)]
    for path, is_writable in _wanted(rules, writable):
        for real, may_write in _reach(path, root, links, is_writable=is_writable):
            found[real] = found.get(real, False) or may_write
    return _without_nested(found), links


def _without_nested(found: dict[str, bool]) -> dict[str, bool]:
    """Remove paths that a parent folder already shows in the same way; writable ones stay writable."""
    kept: dict[str, bool] = {}
    for path in sorted(found):
        above = [kept[folder] for folder in map(str, Path(path).parents) if folder in kept]
        if not above or (found[path] and not above[0]):
            kept[path] = found[path]
    return kept


def _wanted(rules: Rules, writable: Iterable[str]) -> Iterator[tuple[str, bool]]:
    yield from ((path, True) for path in writable)
    yield from ((path, False) for path in rules.read_only)
    # A Python that lies in the data root has to be found there.
    yield from ((path, False) for path in {sys.prefix, sys.base_prefix, *sys.path} if path)


def _reach(path: str, root: str, links: dict[str, str], *, is_writable: bool) -> Iterator[tuple[str, bool]]:
    """Yield the real paths in the data root behind a path, also through links, and whether each is writable.

    Links are followed as the kernel does, one at a time, so that each of them can be laid out again.
    """
    waiting, seen = [(os.path.abspath(path), is_writable)], set()
    while waiting:
        path, may_write = waiting.pop()
        if path in seen or not path.startswith(f"{root}{os.sep}") or not _leads_somewhere(path):
            continue
        seen.add(path)
        link = _find_link(path, root)
        if link is None:
            if is_showable(path, root):
                yield path, may_write
                waiting += [(entry, False) for entry in _list_links(path, root)]
        elif not is_run_written(link, root):
            links[link] = os.readlink(link)
            target = os.path.abspath(os.path.join(os.path.dirname(link), links[link]))
            # Nobody but the platform's owner lays links into the data root itself.
            is_owners = os.path.dirname(link) == root
            if is_owners or is_link_target(os.path.realpath(link), root):
                waiting.append((target + path[len(link) :], may_write and is_owners))


def _leads_somewhere(path: str) -> bool:
    """Return whether something exists there: a link may lead nowhere, or to itself."""
    try:
        os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise
    return True


def _find_link(path: str, root: str) -> str | None:
    """Return the first symbolic link on the way from the data root to a path in it, or None."""
    place = root
    for name in path[len(root) + 1 :].split(os.sep):
        place = f"{place}{os.sep}{name}"
        if os.path.islink(place):
            return place
    return None


def _list_links(path: str, root: str) -> Iterator[str]:
    """Yield the links in a folder, unless runs can write there: theirs could lead to anything."""
    if is_run_written(path, root):
        return
    for folder, folders, files in os.walk(path):
        entries = (f"{folder}{os.sep}{name}" for name in (*folders, *files))
        yield from (entry for entry in entries if os.path.islink(entry))


def _show(descriptor: int, path: str, *, is_writable: bool) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(path, exist_ok=True)
    elif not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    _mount(f"/proc/self/fd/{descriptor}", path, _MS_BIND | _MS_REC)
    if not is_writable:
        _remount_read_only(path)


def _list_hidden(rules: Rules) -> Iterator[str]:
    home = os.path.expanduser("~")
    yield from rules.hidden
    yield from (f"{home}/{name}" for name in _SECRETS_OF_HOME)
    yield from _list_hub_secrets(home)
    yield from _DOORS
    if _RAY_TOKEN not in rules.kept_variables:
        yield os.environ.get(_RAY_TOKEN) or f"{home}/.ray/auth_token"
    # A file system can be read from its disk.
    for folder, _, names in os.walk("/dev"):
        if folder not in _SHARED:
            yield from (path for path in (f"{folder}/{name}" for name in names) if _is_open_disk(path))


def _list_hub_secrets(home: str) -> Iterator[str]:
    """List the files where the hub's client may have stored a login."""
    yield from (os.environ[name] for name in _HUB_SECRET_VARIABLES if os.environ.get(name))
    caches = (f"{home}/.cache", os.environ.get("XDG_CACHE_HOME"))
    folders = [f"{cache}/huggingface" for cache in caches if cache] + [os.environ.get("HF_HOME")]
    yield from (
        f"{os.path.expanduser(folder)}/{name}" for folder in folders if folder for name in _HUB_SECRETS
    )


def _is_open_disk(path: str) -> bool:
    try:
        return stat.S_ISBLK(os.lstat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False


def _hide(path: str) -> None:
    """Lay something empty over a file or folder, if there is one."""
    path = os.path.realpath(path)
    if os.path.isdir(path):
        _mount("tmpfs", path, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_RDONLY, "tmpfs", "mode=755")
    elif os.path.exists(path):
        _mount(os.devnull, path, _MS_BIND)
