"""`trellis models push`, `trellis models gguf` and `trellis transfers`: models on their way elsewhere."""

import hashlib
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient, connect
from trellis_cli.downloading import write_answer
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.model_files import Model, read_card_file
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, age, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_model, find_transfer
from trellis_cli.task_bar import TransferBar
from trellis_cli.waiting import OVER, WaitForEnd, read_patiently, wait_for_end

app = typer.Typer(no_args_is_help=True)
Transfer = Annotated[str, typer.Argument(help="ID (trf_...) or the name of its model.")]
Wait = Annotated[bool, typer.Option(help="Wait until it finishes.")]
_POLL_S = 1.0
_UNFINISHED = ("queued", "running")


def push(
    model: Model,
    repo: Annotated[str, typer.Argument(help="owner/name on the hub; created if it doesn't exist.")],
    modelscope: Annotated[
        bool, typer.Option("--modelscope", help="Push to ModelScope instead of the Hugging Face Hub.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="Branch; default: main. Created if it doesn't exist.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Create the repository as public; default: private.")
    ] = False,
    message: Annotated[str, typer.Option(help="Commit message; default: the model's name.")] = "",
    card: Annotated[
        Path | None, typer.Option(help="Your edited card, - for stdin; default: a new one.")
    ] = None,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Push a model with its card to a hub, e.g. `trellis models push support-bot team/support-bot`.

    Address and token are configured on the workers: HF_ENDPOINT and HF_TOKEN, or MODELSCOPE_ENDPOINT and
    MODELSCOPE_API_TOKEN.
    """
    client = connect()
    body: dict[str, Any] = {"repo_id": repo, "private": not public, "message": message}
    body |= {"hub": "modelscope"} if modelscope else {}
    body |= {"revision": revision} if revision else {}
    body |= {"card": read_card_file(card)} if card else {}
    transfer = client.post(f"/models/{find_model(client, model)}/push", body)
    _follow(client, transfer, wait=wait, as_json=as_json)


def gguf(
    model: Model,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Download it to this file or folder.")
    ] = None,
    kind: Annotated[str, typer.Option("--type", help="f16, q8_0 or q4_k_m.")] = "q8_0",
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Export a model to a GGUF file, e.g. `trellis models gguf support-bot --output .`."""
    if output is not None and not wait:
        raise Problem("--output can't be combined with --no-wait", exit_code=ExitCode.USAGE)
    client = connect()
    transfer = client.post(f"/models/{find_model(client, model)}/gguf", {"type": kind})
    transfer = _follow(client, transfer, wait=wait, as_json=as_json)
    if output is not None:
        _download(client, transfer, output)


@app.command("list")
def list_transfers(
    model: Annotated[str | None, typer.Option(help="Filter by model.")] = None, as_json: Json = False
) -> None:
    """List pushes and exports, newest first."""
    client = connect()
    only = {} if model is None else {"model": find_model(client, model)}
    items = list(client.pages("/transfers", **only))
    if as_json:
        print_json(items)
        return
    rows = [
        (
            each["id"],
            each["kind"],
            each["model_name"],
            styled(each["state"]),
            describe(each),
            age(each["created_at"]),
        )
        for each in items
    ]
    print_table(("id", "kind", "model", "state", "what", "age"), rows)


@also_known_as(app, "cancel", now="stop")
@app.command()
def stop(transfer: Transfer, wait: WaitForEnd = False, as_json: Json = False) -> None:
    """Stop a queued or running transfer; nothing is committed to the hub."""
    client = connect()
    path = f"/transfers/{find_transfer(client, transfer, in_states=_UNFINISHED)}"
    stopped = client.post(f"{path}/cancel")
    if wait:
        stopped = wait_for_end(client, path)
    _print(stopped, as_json=as_json)


@app.command()
def resume(transfer: Transfer, wait: Wait = True, as_json: Json = False) -> None:
    """Resume a failed or stopped transfer; files that the hub already has are skipped."""
    client = connect()
    called = find_transfer(client, transfer, in_states=("failed", "cancelled"))
    _follow(client, client.post(f"/transfers/{called}/resume"), wait=wait, as_json=as_json)


@app.command()
def download(
    transfer: Transfer,
    output: Annotated[Path, typer.Argument(help="Output file or folder.")] = Path(),
) -> None:
    """Download an exported file."""
    client = connect()
    called = find_transfer(client, transfer, in_states=("succeeded",))
    _download(client, client.get(f"/transfers/{called}"), output)


@app.command()
def delete(transfer: Transfer) -> None:
    """Delete a finished transfer and its exported file; pushed files stay on the hub."""
    client = connect()
    client.delete(f"/transfers/{find_transfer(client, transfer, in_states=OVER)}")


def describe(transfer: dict[str, Any]) -> str:
    """Describe in one line where a transfer goes, or what it has left."""
    if transfer["state"] == "failed":
        return str(transfer["reason"])
    request, result = transfer["request"], transfer["result"] or {}
    if transfer["kind"] == "push":
        return str(result.get("url") or f"{request['repo_id']}@{request['revision']}")
    return f"{result['file']}  {size(result['size_bytes'])}" if result else str(request["type"])


def _follow(client: ApiClient, transfer: dict[str, Any], *, wait: bool, as_json: bool) -> dict[str, Any]:
    if wait:
        with TransferBar() as bar:
            while transfer["state"] in _UNFINISHED:
                bar.show(transfer)
                time.sleep(_POLL_S)
                transfer = read_patiently(client, f"/transfers/{transfer['id']}")
        if transfer["state"] != "succeeded":
            hint = f"trellis transfers resume {transfer['id']}"
            raise Problem(
                f"{transfer['id']} {transfer['state']}: {transfer['reason'] or ''}".rstrip(": "), hint=hint
            )
    _print(transfer, as_json=as_json)
    return transfer


def _print(transfer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(transfer)
        return
    line = f"{transfer['id']}  {transfer['state']}  {describe(transfer)}"
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _download(client: ApiClient, transfer: dict[str, Any], output: Path) -> None:
    if not transfer["has_file"]:
        raise Problem(f"{transfer['id']} has no file: it isn't an export, or isn't finished")
    target = output / transfer["result"]["file"] if output.is_dir() else output
    unfinished = target.with_name(f".{target.name}.{transfer['id']}.unfinished")
    there = unfinished.stat().st_size if unfinished.exists() else 0
    total = int(transfer["result"]["size_bytes"])
    headers = {"Range": f"bytes={there}-"} if 0 < there < total else {}
    try:
        with client.open(f"/transfers/{transfer['id']}/file", headers=headers) as answer:
            write_answer(answer, unfinished, there)
    except OSError as error:
        raise Problem(f"{target} cannot be written: {error.strerror}") from error
    if unfinished.stat().st_size < total:
        raise Problem(f"{target.name} is incomplete", hint="run the same command again to resume")
    with unfinished.open("rb") as written:
        if hashlib.file_digest(written, "sha256").hexdigest() != transfer["result"]["sha256"]:
            unfinished.unlink()
            raise Problem(f"{target.name} has the wrong SHA-256", hint="download it again")
    unfinished.replace(target)
    out.print(f"{target}  {size(total)}", markup=False, highlight=False, soft_wrap=True)
