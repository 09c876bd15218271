"""`trellis up`, `down`, `status`, `logs`, `doctor`, `demo`, `gpu-check`: the platform on this machine."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trellis_cli import doctor as doctor_checks
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, err, out, print_json, print_table, styled
from trellis_cli.services import logs as service_logs
from trellis_cli.services.platform import Platform, load_platform
from trellis_cli.services.supervisor import SERVICES, Supervisor
from trellis_cli.services.watch import Watch
from trellis_cli.services.watcher import WatcherService
from trellis_cli.systemd_unit import install_service

Port = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help="Port of the API and the dashboard.")
]


def say(line: str) -> None:
    """Print progress on stderr."""
    err.print(line, style="dim", markup=False, highlight=False)


def start(port: int | None) -> Platform:
    """Check the machine, start what is not running, and wait until it answers."""
    platform = load_platform(port)
    platform.layout.prepare()
    blocking = [each for each in doctor_checks.examine(platform.settings) if each.state == "failing"]
    if blocking:
        raise Problem("; ".join(f"{each.name}: {each.detail}" for each in blocking))
    supervisor = Supervisor(platform, say)
    supervisor.up()
    supervisor.watch()
    return platform


def report(platform: Platform, as_json: bool) -> bool:
    """Print the status table; True when nothing is wrong."""
    services = Supervisor(platform, say).status(with_watcher=True)
    checks = [doctor_checks.check_database(platform.settings), *doctor_checks.examine(platform.settings)]
    is_healthy = all(each.is_healthy for each in services) and all(each.state != "failing" for each in checks)
    if as_json:
        value: dict[str, Any] = {
            "healthy": is_healthy,
            "url": platform.url,
            "data_root": str(platform.settings.data_root),
            "services": [vars(each) for each in services],
            "checks": [vars(each) for each in checks],
        }
        print_json(value)
        return is_healthy
    rows = [(each.name, styled(each.state), each.pid, each.detail) for each in services]
    rows += [(each.name, styled(each.state), None, each.detail) for each in checks]
    print_table(("part", "state", "pid", ""), rows)
    out.print(f"\n{platform.url}   data root {platform.settings.data_root}", highlight=False, soft_wrap=True)
    return is_healthy


def login_link(platform: Platform) -> str:
    """Create a one-time link that opens the dashboard logged in."""
    from trellis_api.auth.login_link import create_login_link

    settings = platform.settings.model_copy()
    settings.public_url = settings.public_url or platform.url
    return create_login_link(settings)


def up(port: Port = None, as_json: Json = False) -> None:
    """Start all services that aren't running and print their status."""
    platform = start(port)
    is_healthy = report(platform, as_json)
    if not as_json:
        out.print(f"log in: {login_link(platform)}", highlight=False, soft_wrap=True)
    if not is_healthy:
        raise typer.Exit(ExitCode.FAILED)


def down() -> None:
    """Stop all services. Data is kept; running jobs end as crashed and can be resumed."""
    ended = Supervisor(load_platform(), say).down()
    out.print(f"stopped: {', '.join(ended)}" if ended else "nothing was running")


def supervise(port: Port = None) -> None:
    """Start all services and keep restarting any that die. For systemd; `up` already does this."""
    platform = load_platform(port)
    platform.layout.prepare()
    supervisor = Supervisor(platform, stamp)
    supervisor.up()
    Watch(supervisor).run()


def stamp(line: str) -> None:
    """Print a line of the supervisor's log, with the time."""
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {line}", flush=True)


def status(port: Port = None, as_json: Json = False) -> None:
    """Show the status of all services; exits with 1 if anything is wrong."""
    if not report(load_platform(port), as_json):
        raise typer.Exit(ExitCode.FAILED)


def logs(
    service: Annotated[
        list[str] | None, typer.Argument(help="redis, ray, api, worker, beat or supervisor; default: all.")
    ] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the logs.")] = False,
    lines: Annotated[
        int, typer.Option("-n", min=1, help=("Number of lines to show from the end of each log."))
    ] = 30,
) -> None:
    """Show service logs."""
    layout = load_platform().layout
    known = [*(each.name for each in SERVICES), WatcherService.name]
    unknown = set(service or ()) - set(known)
    if unknown:
        raise Problem(
            f"unknown service: {', '.join(sorted(unknown))}",
            hint=f"known: {', '.join(known)}",
            exit_code=ExitCode.USAGE,
        )
    paths = {name: layout.log_path(name) for name in service or known}
    if follow:
        for name, line in service_logs.follow(paths, lines):
            out.print(f"{name:7}| {line}", markup=False, highlight=False, soft_wrap=True)
    for name, path in paths.items():
        for line in service_logs.tail(path, lines):
            out.print(f"{name:7}| {line}", markup=False, highlight=False, soft_wrap=True)


def doctor(as_json: Json = False) -> None:
    """Check this machine: disk, memory, shared memory, Python, dashboard, GPUs."""
    checks = doctor_checks.examine(load_platform().settings)
    if as_json:
        print_json([vars(each) for each in checks])
    else:
        print_table(("check", "state", ""), [(each.name, styled(each.state), each.detail) for each in checks])
    if any(each.state == "failing" for each in checks):
        raise typer.Exit(ExitCode.FAILED)


def demo(
    port: Port = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=("A pretrained model, e.g. smollm2-135m-instruct; default: a tiny model created on the fly.")
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the data, the model and both jobs.")] = 1,
    as_json: Json = False,
) -> None:
    """Train a small model on this machine (SFT, then GRPO) through the API. The platform keeps running.

    With --model, a pretrained model learns to classify customer messages (about 25 min on two cores).
    """
    from trellis_cli.demo.starter import run_demo
    from trellis_cli.demo.tickets import run_tickets_demo

    platform = start(port)
    if model is None:
        result = run_demo(platform, seed=seed)
    else:
        result = run_tickets_demo(platform, model=model, seed=seed)
        print_answers(result["answers"])
        out.print(f"\n{result['seconds'] / 60:.1f} min in total", highlight=False)
    link = login_link(platform)
    result["url"] = link
    out.print(
        f"\nvalidation accuracy: {result['accuracy_before']:.3f} before GRPO, "
        f"{result['accuracy_after']:.3f} after"
        f"\ndashboard: {link}",
        highlight=False,
        soft_wrap=True,
    )
    if as_json:
        print(json.dumps(result))


def print_answers(answers: list[dict[str, Any]]) -> None:
    """Show held-out prompts with the answers before and after, side by side."""
    for each in answers:
        out.print(f"\n{each['prompt']}", markup=False, highlight=False, soft_wrap=True)
        print_table(("right", "before GRPO", "after GRPO"), [(each["right"], each["before"], each["after"])])


def gpu_check(
    is_quick: Annotated[
        bool, typer.Option("--quick", help=("Check libraries only; don't train anything."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Check NVIDIA driver and libraries, then run short vLLM, SFT, DPO and GRPO jobs."""
    from trellis_cli.gpu_check.check import run_gpu_check

    is_passed = run_gpu_check(is_quick=is_quick, as_json=as_json)
    raise typer.Exit(ExitCode.OK if is_passed else ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the commands to the root application."""
    for command in (up, down, supervise, install_service, status, logs, doctor, demo):
        app.command()(command)
    app.command("gpu-check")(gpu_check)
