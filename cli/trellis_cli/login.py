"""`trellis login | logout`: the platform that the commands and scripts of this user speak to."""

import sys
from typing import Annotated

import typer
from trellis_contracts.connection import Connection, remove_connection, write_connection

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem, Refusal
from trellis_cli.output import out
from trellis_cli.platform_commands import login_link
from trellis_cli.services.platform import load_platform

_UNAUTHORIZED = 401


def login(
    url: Annotated[
        str | None,
        typer.Argument(
            help=("Platform URL, e.g. https://trellis.example.org. If omitted, prints a login link.")
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="If omitted (recommended), prompted for or read from stdin.")
    ] = None,
) -> None:
    """Save a platform's URL and token for the CLI; without URL, print a login link for this machine.

    The file is private to this user (~/.config/trellis/connection.json). The link opens this machine's
    dashboard; it works once, for 15 minutes.
    """
    if url is None:
        if token is not None:
            raise Problem("--token requires a URL: trellis login URL", exit_code=ExitCode.USAGE)
        out.print(login_link(load_platform()), highlight=False)
        return
    if not url.startswith(("http://", "https://")):
        raise Problem(f"'{url}' is not a valid URL", hint=f"https://{url}?", exit_code=ExitCode.USAGE)
    connection = Connection(url=url.rstrip("/"), token=token or _ask_token())
    client = ApiClient(connection.url, connection.token)
    try:
        name = client.get("/auth/me")["name"]
    except Refusal as refusal:
        if refusal.status != _UNAUTHORIZED:
            raise
        raise Problem(
            f"{connection.url} rejected this token",
            hint="you'll find it in admin.token in that platform's data root",
            exit_code=ExitCode.REFUSED,
        ) from None
    path = write_connection(connection)
    out.print(f"logged in to {connection.url} as {name}; stored in {path}", highlight=False, markup=False)


def logout() -> None:
    """Remove the saved URL and token."""
    out.print("logged out" if remove_connection() else "nothing saved")


def _ask_token() -> str:
    given = typer.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    token = str(given).strip()
    if not token:
        raise Problem("no token provided", exit_code=ExitCode.USAGE)
    return token


def register(app: typer.Typer) -> None:
    """Add the commands to the root application."""
    for command in (login, logout):
        app.command()(command)
