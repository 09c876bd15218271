"""`trellis models download` and `trellis models card`: a model taken elsewhere, and what is known of it."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from trellis_cli.client import ApiClient, connect
from trellis_cli.downloading import fetch_all
from trellis_cli.errors import Problem
from trellis_cli.output import err, out, size
from trellis_cli.resolve_by_name import find_job, find_model

CARD = "README.md"
_CHECKPOINT = re.compile(r"(.+):(\d+)")
Model = Annotated[str, typer.Argument(help="ID (mdl_...) or name; the latest if several share the name.")]


def download(
    name: Annotated[str, typer.Argument(help="Model name or ID, or a checkpoint as JOB:STEP.")],
    folder: Annotated[Path, typer.Argument(help="Target folder; created if it doesn't exist.")],
) -> None:
    """Download all files of a model or checkpoint, e.g. `trellis models download support-bot ./support-bot`.

    Run it again to download missing files. If the model has no README.md, its model card is added.
    """
    client = connect()
    address = find_address(client, name)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    try:
        with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as bar:
            total = client.get(f"{address}/files")["size_bytes"]
            task, there = bar.add_task("downloading", total=total), dict[str, int]()

            def tell(file: str, count: int) -> None:
                there[file] = count
                bar.update(task, completed=sum(there.values()))

            written = fetch_all(client, address, folder, tell=tell)
        if address.startswith("/models/") and not (folder / CARD).exists():
            (folder / CARD).write_text(read_card(client, address), encoding="utf-8")
            written.append(folder / CARD)
    except OSError as error:
        raise Problem(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    count = sum(path.stat().st_size for path in written)
    out.print(f"{folder}  {len(written)} files  {size(count)}", markup=False, highlight=False, soft_wrap=True)


def card(
    model: Model,
    verify: Annotated[
        Path | None, typer.Option("--verify", help="Check this card against current data; - for stdin.")
    ] = None,
) -> None:
    """Print a model's card; with --verify, check whether a card is up to date (exit code 4 if not)."""
    client = connect()
    address = f"/models/{find_model(client, model)}"
    if verify is None:
        sys.stdout.write(read_card(client, address))
        return
    found = client.post(f"{address}/card/check", {"card": read_card_file(verify)})
    out.print(f"up to date: {found['statements']} statements match the platform", highlight=False)


def find_address(client: ApiClient, name: str) -> str:
    """Return the address of a model, or of a checkpoint if the name is JOB:STEP and no model has it."""
    match = _CHECKPOINT.fullmatch(name)
    if match is not None and not any(each["name"] == name for each in client.pages("/models", text=name)):
        return f"/jobs/{find_job(client, match.group(1))}/checkpoints/{match.group(2)}"
    return f"/models/{find_model(client, name)}"


def read_card_file(path: Path) -> str:
    """Read a model card from a file; `-` reads stdin."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"{path} cannot be read: {error}") from error


def read_card(client: ApiClient, address: str) -> str:
    """Read the model's current card."""
    with client.stream(f"{address}/card") as pieces:
        return b"".join(pieces).decode()
