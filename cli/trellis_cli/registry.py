"""`trellis registry`: versions of named models, aliases, promotions and the way back."""

from typing import Annotated, Any

import typer

from trellis_cli.client import connect
from trellis_cli.output import Json, age, out, print_json, print_table
from trellis_cli.resolve_by_name import find_model

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the registered model, e.g. support-bot.")]
Alias = Annotated[str, typer.Argument(help="E.g. production or candidate.")]
Note = Annotated[str, typer.Option(help="Reason, shown in the history.")]


@app.command("list")
def list_names(as_json: Json = False) -> None:
    """List named models and their aliases."""
    items = connect().get("/registry")["items"]
    if as_json:
        print_json(items)
        return
    rows = [(each["name"], len(each["versions"]), describe_aliases(each)) for each in items]
    print_table(("name", "versions", "aliases"), rows)


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show the versions of a named model, newest first."""
    found = connect().get(f"/registry/{name}")
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["number"],
            each["model_name"] + ("" if each["exists"] else "  (deleted)"),
            each["model"],
            ", ".join(each["aliases"]),
            each["note"],
            age(each["created_at"]),
        )
        for each in found["versions"]
    ]
    print_table(("version", "model", "id", "aliases", "note", "age"), rows)


@app.command()
def add(
    name: Name,
    model: Annotated[str, typer.Argument(help="ID (mdl_...) or name of the model.")],
    note: Note = "",
    as_json: Json = False,
) -> None:
    """Add a model as a new version, e.g. `trellis registry add support-bot sft-7`."""
    client = connect()
    body = {"name": name, "model": find_model(client, model), "note": note}
    found = client.post("/registry", body)
    _tell(found, f"{name}:{found['versions'][0]['number']}", as_json=as_json)


@app.command()
def promote(
    name: Name,
    alias: Alias,
    version: Annotated[int, typer.Argument(help="Version number.")],
    note: Note = "",
    unless_worse: Annotated[
        str | None,
        typer.Option(
            "--unless-worse",
            help=(
                "Only promote if it isn't significantly worse on this benchmark than the current "
                "version (paired test)."
            ),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Point an alias to a version, e.g. `... promote support-bot production 3 --unless-worse gsm8k`."""
    body: dict[str, Any] = {"version": version, "note": note}
    if unless_worse is not None:
        body["gate"] = {"benchmark": unless_worse}
    found = connect().request("PUT", f"/registry/{name}/aliases/{alias}", json=body)
    _tell(found, f"{name}:{alias} is version {found['aliases'][alias]}", as_json=as_json)


@app.command()
def rollback(name: Name, alias: Alias, note: Note = "", as_json: Json = False) -> None:
    """Move an alias back to its previous version."""
    found = connect().post(f"/registry/{name}/aliases/{alias}/rollback", {"note": note})
    _tell(found, f"{name}:{alias} is version {found['aliases'][alias]}", as_json=as_json)


@app.command()
def history(name: Name, as_json: Json = False) -> None:
    """Show promotions and rollbacks, newest first."""
    items = connect().get(f"/registry/{name}/history")["items"]
    if as_json:
        print_json(items)
        return
    rows = [
        (
            age(each["created_at"]),
            each["kind"],
            each["alias"],
            each["from_version"],
            each["to_version"],
            describe_gate(each["gate"]),
            each["note"],
        )
        for each in items
    ]
    print_table(("age", "what", "alias", "from", "to", "gate", "note"), rows)


@app.command()
def delete(name: Name) -> None:
    """Delete a named model and its history; its models are kept."""
    connect().delete(f"/registry/{name}")


def describe_aliases(named: dict[str, Any]) -> str:
    """Describe in one line which version each alias points to."""
    return ", ".join(f"{alias} → {version}" for alias, version in named["aliases"].items())


def describe_gate(gate: dict[str, Any] | None) -> str:
    """Describe in one line what a condition measured."""
    if gate is None:
        return ""
    return f"{gate['benchmark']} {gate['value']:.4g} against {gate['against']:.4g}"


def _tell(found: dict[str, Any], line: str, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        out.print(line, markup=False, highlight=False)
