"""`trellis votes`: which of two answers is better, win rates, and pairs to learn from."""

from typing import Annotated, Any

import typer

from trellis_cli.client import connect
from trellis_cli.output import Json, age, out, print_json, print_table
from trellis_cli.waiting import wait_for_dataset

app = typer.Typer(no_args_is_help=True)
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", help="Votes on this model (name, ID or JOB:STEP); given twice: between these two."
    ),
]
BlindOnly = Annotated[bool, typer.Option("--blind-only", help="Only blind votes.")]
_SHOWN = 48


@app.command("list")
def list_votes(model: Models = None, blind_only: BlindOnly = False, as_json: Json = False) -> None:
    """List votes, newest first."""
    items = list(connect().pages("/votes", **_filter(model, blind_only)))
    if as_json:
        print_json(items)
        return
    rows = [
        (
            each["id"],
            each["a"]["model"],
            each["b"]["model"],
            _winner(each),
            "yes" if each["is_blind"] else "",
            each["messages"][-1]["content"][:_SHOWN],
            age(each["created_at"]),
        )
        for each in items
    ]
    print_table(("id", "a", "b", "better", "blind", "prompt", "age"), rows)


@app.command("win-rates")
def win_rates(model: Models = None, blind_only: BlindOnly = False, as_json: Json = False) -> None:
    """Show how often each of two models won, with a 95% CI; ties don't count toward the rate."""
    items = connect().get("/votes/win-rates", **_filter(model, blind_only))["items"]
    if as_json:
        print_json(items)
        return
    rows = [
        (
            each["model_a"],
            each["model_b"],
            each["votes"],
            each["wins_a"],
            each["wins_b"],
            each["ties"],
            _rate(each),
        )
        for each in items
    ]
    print_table(("a", "b", "votes", "a wins", "b wins", "ties", "win rate of a"), rows)


@app.command()
def dataset(
    name: Annotated[str, typer.Argument(help="Name of the new dataset.")],
    model: Models = None,
    blind_only: BlindOnly = False,
    wait: Annotated[bool, typer.Option(help="Wait until the dataset is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Create a dataset of preference pairs for DPO, e.g. `trellis votes dataset votes-1 --blind-only`."""
    client = connect()
    body = {"name": name, "models": model or [], "blind_only": blind_only}
    made = client.post("/votes/dataset", body)
    if wait:
        made = wait_for_dataset(client, made["id"])
    if as_json:
        print_json(made)
        return
    told = f"{made['row_count']} pairs" if wait else made["state"]
    out.print(f"{made['id']}  {made['name']}  {told}", markup=False, highlight=False)


@app.command()
def delete(vote: Annotated[str, typer.Argument(help="Vote ID (vot_...).")]) -> None:
    """Delete a vote; datasets created from it are kept."""
    connect().delete(f"/votes/{vote}")


def _filter(models: list[str] | None, blind_only: bool) -> dict[str, Any]:
    return {**({"model": models} if models else {}), **({"blind_only": True} if blind_only else {})}


def _winner(vote: dict[str, Any]) -> str:
    sides = {"a": vote["a"]["model"], "b": vote["b"]["model"]}
    return str(sides.get(vote["verdict"], vote["verdict"]))


def _rate(found: dict[str, Any]) -> str:
    if found["win_rate"] is None:
        return "no decisive votes"
    return f"{found['win_rate']:.1%} ({found['low']:.1%} to {found['high']:.1%})"
