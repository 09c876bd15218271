"""`trellis recipes`: the catalogue."""

from typing import Any

import typer

from trellis_cli.client import connect
from trellis_cli.output import Json, out, print_json, print_table

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_recipes(as_json: Json = False) -> None:
    """What can be trained."""
    recipes = connect().get("/recipes")["items"]
    if as_json:
        print_json(recipes)
        return
    print_table(
        ("recipe", "family", "engine", "what it is"),
        [(each["id"], each["family"], each["engine"], each["title"]["en"]) for each in recipes],
    )


@app.command()
def show(recipe: str, as_json: Json = False) -> None:
    """The knobs and presets of a recipe."""
    found = connect().get(f"/recipes/{recipe}")
    if as_json:
        print_json(found)
        return
    out.print(f"[bold]{found['title']['en']}[/bold]  {found['description']['en']}\n")
    print_table(
        ("knob", "default", "allowed", "meaning"),
        [(knob["name"], knob["default"], _range(knob), knob["help"]["en"]) for knob in found["knobs"]],
    )
    presets = ", ".join(preset["id"] for preset in found["presets"])
    out.print(f"\npresets: {presets}    data: {', '.join(found['data_formats'])}")


def _range(knob: dict[str, Any]) -> str:
    if knob.get("choices"):
        return " | ".join(knob["choices"])
    low = knob.get("minimum")
    above = knob.get("exclusive_minimum")
    high = knob.get("maximum")
    start = f"> {above:g}" if above is not None else "" if low is None else f"≥ {low:g}"
    return f"{start} ≤ {high:g}".strip() if high is not None else start
