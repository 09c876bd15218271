"""The platform that a campaign breaks: in a folder of its own, with links and a disk that can fail."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from sqlalchemy import inspect, make_url
from sqlalchemy.exc import SQLAlchemyError
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_cli.client import ApiClient, connect_to
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.services.layout import Layout
from trellis_cli.services.ports import is_free, wait_until_free
from trellis_cli.services.process import marked
from trellis_cli.services.ray import TEMPORARY as RAY_TEMPORARY
from trellis_cli.services.service import Service
from trellis_cli.services.supervisor import Say, Supervisor
from trellis_cli.services.temporary import platform_in
from trellis_contracts.attempt import KEY_FILES, PREPARED_FOLDER

from trellis_tools.chaos.chats import ANSWER_S, WAIT_S
from trellis_tools.chaos.disk import MIB, SmallDisk, small_disk
from trellis_tools.chaos.link import Address, Link
from trellis_tools.chaos.processes import RunFinder, list_remains, list_tree

#: The links by name.
RUNS_TO_API, WORKERS_TO_RAY, TO_DATABASE = "runs to the API", "workers to Ray", "services to the database"
#: Below the campaign's folder.
DATA_FOLDER, TEMPORARY_FOLDER, RECORDS_FOLDER = "d", "tmp", "records"
_POSTGRES_PORT = 5432

#: The address is short, as Ray's sockets have little room for theirs.
_PREFIX = "trchaos-"
_REQUEST_TIMEOUT_S = 20.0
_SETTINGS = {
    "TRELLIS_PLATFORM": "cpu",
    # One: which job waits for which is then known.
    "TRELLIS_SLOTS": "1",
    "TRELLIS_MIN_FREE_DISK_BYTES": str(64 * MIB),
    "TRELLIS_ENDPOINT_WAIT_S": str(WAIT_S),
    "TRELLIS_ENDPOINT_ANSWER_S": str(ANSWER_S),
}
_PORTS_TIMEOUT_S = 15.0


@dataclass
class Ground:
    """A running platform, and hands to break it with."""

    supervisor: Supervisor
    client: ApiClient
    #: Everything that the campaign makes lies in here.
    folder: Path
    #: Between runs and the API, workers and Ray, services and a database server.
    links: dict[str, Link]
    #: Or why there is none.
    disk: SmallDisk | str
    runs: RunFinder = field(init=False)
    #: The job that runs the engine of the campaign's endpoint.
    serving_job: str | None = None

    def __post_init__(self) -> None:
        self.runs = RunFinder(self.data_root)

    @property
    def data_root(self) -> Path:
        """The platform's."""
        return self.supervisor.platform.settings.data_root

    @property
    def is_on_sqlite(self) -> bool:
        """Whether the database is a file of the data root."""
        return self.supervisor.platform.settings.database_url is None

    def service(self, name: str) -> Service:
        """Return the service of this name; the supervisor's process is one, too."""
        services = (*self.supervisor.services, self.supervisor.watcher)
        return next(each for each in services if each.name == name)

    def find_trainings(self) -> dict[str, psutil.Process]:
        """Find the supervising process of each job that is training."""
        return {job: process for job, process in self.runs.find().items() if job != self.serving_job}

    def find_serving(self) -> psutil.Process | None:
        """Find the process that supervises the endpoint's engine."""
        return None if self.serving_job is None else self.runs.find().get(self.serving_job)

    def find_problems(self) -> list[str]:
        """List what is wrong with the services now, including the supervisor."""
        platform = self.supervisor.platform
        platform.state = platform.layout.read_state()
        return [
            f"{each.name}: {each.detail}"
            for each in self.supervisor.status(with_watcher=True)
            if not each.is_healthy
        ]

    def start(self) -> None:
        """Start the services that are not running, and the supervisor, as ./init.sh does."""
        self.supervisor.up()
        self.supervisor.watch()

    def list_left(self, job_ids: list[str], *, is_idle: bool) -> list[str]:
        """List processes still working for these jobs; if no job runs, also those busy on the cluster."""
        return list_left_of(self.supervisor, [f"/jobs/{job_id}/" for job_id in job_ids], is_idle=is_idle)

    def list_naming(self, needles: list[str]) -> list[str]:
        """List the platform's processes whose command or environment contains one of these texts."""
        return list_left_of(self.supervisor, needles, is_idle=False)

    @property
    def has_records(self) -> bool:
        """Whether something of the platform is kept for whoever looks for a cause."""
        return (self.folder / RECORDS_FOLDER).exists()

    def keep_records(self) -> Path:
        """Copy what tells what happened, as the disk goes with the campaign: logs, database, spools."""
        records = self.folder / RECORDS_FOLDER
        with contextlib.suppress(shutil.Error):  # files that end meanwhile: the others are copied
            shutil.copytree(
                self.data_root,
                records,
                ignore=shutil.ignore_patterns(
                    "checkpoints", "starter", "models", "filling", "sockets", "*.safetensors"
                ),
                ignore_dangling_symlinks=True,
                dirs_exist_ok=True,
            )
        return records

    def list_left_at_end(self) -> tuple[list[str], list[int], list[str]]:
        """List processes, ports and files that are left over after the platform was stopped."""
        platform = self.supervisor.platform
        processes = [f"{each.pid}" for each in marked(f"{platform.state.instance}:")]
        processes += list_remains(_all_pids(), [str(self.folder)])
        state = platform.state
        ports = [
            port for port in (platform.settings.port, state.redis_port, *state.ray_ports.values()) if port
        ]
        wait_until_free(ports, _PORTS_TIMEOUT_S)
        return processes, [port for port in ports if not is_free(port)], list_stray_files(self.folder)


def list_left_of(supervisor: Supervisor, needles: list[str], *, is_idle: bool) -> list[str]:
    """List a platform's processes that contain a needle; when no job runs, also those busy on its cluster."""
    candidates = {each.pid for each in marked(supervisor.platform.mark(""))}
    head = next(service.pid for service in supervisor.services if service.name == "ray")
    candidates |= {each.pid for each in list_tree(head)} if head else set()
    return list_remains(candidates, needles, is_cluster=is_idle)


def _all_pids() -> set[int]:
    own = os.getpid()
    return {int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own}


def list_stray_files(folder: Path) -> list[str]:
    """List unfinished drafts, keys of finished runs, and leftover temporary files."""
    data_root, temporary = folder / DATA_FOLDER, folder / TEMPORARY_FOLDER
    stray = [path for pattern in ("*.tmp", "*.partial", ".*.partial") for path in data_root.rglob(pattern)]
    # What a run prepares is its own, and goes with the job.
    stray = [path for path in stray if path.parent.name != PREPARED_FOLDER]
    stray += [path for name in KEY_FILES for path in data_root.glob(f"jobs/*/*/{name}")]
    kept = "torchinductor_*"  # what is compiled is for all runs
    for place in (temporary, data_root / "ray" / "head" / RAY_TEMPORARY):
        stray += [path for path in place.glob("*") if not path.match(kept)]
    return [str(path.relative_to(folder)) for path in stray]


@contextlib.contextmanager
def prepared_ground(database_url: str | None, say: Say) -> Iterator[Ground]:
    """Start a platform to break, and take it away again with all that it holds.

    Where the block raises or asks for it (``keep_records``), the folder stays with the records alone.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    data_root, temporary = folder / DATA_FOLDER, folder / TEMPORARY_FOLDER
    data_root.mkdir()
    temporary.mkdir()
    ground: Ground | None = None
    try:
        with contextlib.ExitStack() as stack:
            disk = stack.enter_context(small_disk(data_root))
            links = _make_links(data_root, database_url)
            for link in links.values():
                stack.callback(link.close)
            variables = {**_SETTINGS, **_name_links(links, database_url), "TMPDIR": str(temporary)}
            supervisor = stack.enter_context(platform_in(data_root, variables, say))
            supervisor.watch()
            client = connect_to(supervisor.platform, timeout_s=_REQUEST_TIMEOUT_S)
            ground = Ground(supervisor, client, folder, links, disk)
            try:
                yield ground
            except BaseException:
                ground.keep_records()
                raise
    finally:
        shutil.rmtree(data_root, ignore_errors=True)
        if ground is None or not ground.has_records:
            shutil.rmtree(folder, ignore_errors=True)


def _make_links(data_root: Path, database_url: str | None) -> dict[str, Link]:
    layout = Layout(data_root)

    def find_api() -> Address:
        return "127.0.0.1", layout.read_state().api_port or 0

    def find_ray() -> Address:
        return "127.0.0.1", layout.read_state().ray_ports.get("dashboard", 0)

    links = {RUNS_TO_API: Link(find_api), WORKERS_TO_RAY: Link(find_ray)}
    if database_url is not None:
        server = make_url(database_url)
        links[TO_DATABASE] = Link(lambda: (server.host or "127.0.0.1", server.port or _POSTGRES_PORT))
    return links


def _name_links(links: dict[str, Link], database_url: str | None) -> dict[str, str]:
    """Return the settings that route the platform's connections through the links."""
    settings = {
        "TRELLIS_PUBLIC_URL": f"http://127.0.0.1:{links[RUNS_TO_API].port}",
        "TRELLIS_RAY_DASHBOARD_URL": f"http://127.0.0.1:{links[WORKERS_TO_RAY].port}",
    }
    if database_url is not None:
        url = make_url(database_url).set(host="127.0.0.1", port=links[TO_DATABASE].port)
        settings["TRELLIS_DATABASE_URL"] = url.render_as_string(hide_password=False)
    return settings


def check_database(database_url: str) -> None:
    """Refuse one that is not a PostgreSQL server's, or that holds anything."""
    hint = "create one, e.g. with createdb chaos"
    try:
        database = Database(Settings(database_url=database_url))
        tables = [] if database.is_sqlite else inspect(database.engine).get_table_names()
    except SQLAlchemyError as error:
        problem = str(error).splitlines()[0]
        raise Problem(f"cannot use the database: {problem}", exit_code=ExitCode.USAGE) from error
    if database.is_sqlite:
        raise Problem("SQLite is the default; omit --database", hint=hint, exit_code=ExitCode.USAGE)
    if tables:
        raise Problem(
            f"the database is not empty: {', '.join(tables[:3])} ...", hint=hint, exit_code=ExitCode.USAGE
        )
