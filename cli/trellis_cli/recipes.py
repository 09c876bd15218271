"""`trellis recipes`: the catalogue."""

import typer
from trellis_contracts.recipe import Recipe
from trellis_recipes.documentation import allowed_values, paper_of, shown

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
    described = Recipe.model_validate({name: found[name] for name in Recipe.model_fields if name in found})
    out.print(f"[bold]{described.title.en}[/bold]  {described.description.en}")
    if described.paper:
        out.print(paper_of(described.paper), markup=False)
    out.print(f"\ndata: {', '.join(described.data_formats)}\n")
    print_table(
        ("knob", "default", "accepts", "meaning"),
        [(knob.name, shown(knob.default), allowed_values(knob), knob.help.en) for knob in described.knobs],
    )
    out.print()
    print_table(
        ("preset", "for", "sets"),
        [
            (preset.id, preset.title.en, ", ".join(f"{k}={shown(v)}" for k, v in preset.params.items()))
            for preset in described.presets
        ],
    )
