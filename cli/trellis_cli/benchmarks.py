"""`trellis benchmarks`: what models can be measured on."""

import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, err, out, print_json, print_table, size, styled
from trellis_cli.waiting import read_patiently

app = typer.Typer(no_args_is_help=True)
_PAUSE_S = 0.5
_ON_ITS_WAY = ("pending", "installing")


@app.command("list")
def list_benchmarks(as_json: Json = False) -> None:
    """List benchmarks. Hundreds more come from lm-evaluation-harness (harness:TASK)."""
    found = connect().get("/benchmarks")["items"]
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["name"],
            each["title"]["en"],
            styled(each["state"]),
            f"{sum(each['rows'].values()):,}",
            ", ".join(each["metrics"]),
            (each["revision"] or each["source"]["revision"])[:12],
            escape(each["unavailable"]["en"] if each["unavailable"] else ""),
        )
        for each in found
    ]
    print_table(("name", "title", "files", "rows", "metrics", "revision", "cannot be used"), rows)


@app.command()
def show(benchmark: str) -> None:
    """Show a benchmark as JSON."""
    print_json(connect().get(f"/benchmarks/{benchmark}"))


@app.command()
def install(
    benchmark: Annotated[list[str], typer.Argument(help="Benchmark names.")],
    wait: Annotated[bool, typer.Option(help="Wait until the files are downloaded.")] = True,
    as_json: Json = False,
) -> None:
    """Download benchmark files at their pinned revision. Evaluations do this automatically."""
    client = connect()
    found = [_install(client, name) for name in benchmark]
    if wait:
        found = [_wait(client, each["name"]) for each in found]
    for each in found:
        if as_json:
            print_json(each)
        elif each["state"] == "ready":
            revision = each["revision"] or "a folder of files"
            out.print(f"{each['name']}: {size(each['size_bytes'])}, {revision}", highlight=False)
        else:
            out.print(f"{each['name']}: {each['state']}", highlight=False)


def _install(client: ApiClient, name: str) -> dict[str, Any]:
    """Install a benchmark unless it is installed or being installed already."""
    found = read_patiently(client, f"/benchmarks/{name}")
    if found["state"] in ("ready", *_ON_ITS_WAY):
        err.print(f"{name} is {found['state']}", highlight=False)
        return found
    asked: dict[str, Any] = client.post(f"/benchmarks/{name}/install")
    return asked


def _wait(client: ApiClient, name: str) -> dict[str, Any]:
    with err.status(f"bringing {name}"):
        while True:
            found = read_patiently(client, f"/benchmarks/{name}")
            if found["state"] == "ready":
                return found
            if found["state"] not in _ON_ITS_WAY:
                raise Problem(
                    f"{name}: files not installed: {found['state_reason'] or found['state']}",
                    hint="without network access, set TRELLIS_BENCHMARK_MIRROR (see docs/evaluation.md)",
                    exit_code=ExitCode.FAILED,
                )
            time.sleep(_PAUSE_S)
