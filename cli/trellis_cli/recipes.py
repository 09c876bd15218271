"""`trellis recipes`: the catalogue."""

from typing import Any

import typer
from trellis_contracts.recipe import Recipe
from trellis_recipes.documentation import allowed_values, paper_of, parts_of, shown, title_of

from trellis_cli.client import connect
from trellis_cli.output import Json, out, print_json, print_table

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_recipes(as_json: Json = False) -> None:
    """List recipes."""
    recipes = connect().get("/recipes")["items"]
    if as_json:
        print_json(recipes)
        return
    print_table(
        ("recipe", "family", "engine", "what it is"),
        [(each.id, each.family, each.engine, title_of(each)) for each in map(_read, recipes)],
    )


@app.command()
def show(recipe: str, as_json: Json = False) -> None:
    """Show a recipe's parameters and presets."""
    found = connect().get(f"/recipes/{recipe}")
    if as_json:
        print_json(found)
        return
    described = _read(found)
    out.print(f"[bold]{title_of(described)}[/bold]  {described.description.en}")
    if described.paper:
        out.print(paper_of(described.paper), markup=False)
    out.print("\nrows; --column PART=COLUMN names other columns", markup=False)
    print_table(
        ("format", "part", "columns", "holds"),
        [(data_format, *part) for data_format in described.data_formats for part in parts_of(data_format)],
    )
    out.print()
    print_table(
        ("parameter", "default", "accepts", "meaning"),
        [
            (parameter.name, shown(parameter.default), allowed_values(parameter), parameter.help.en)
            for parameter in described.parameters
        ],
    )
    out.print()
    print_table(
        ("preset", "for", "sets"),
        [
            (preset.id, preset.title.en, ", ".join(f"{k}={shown(v)}" for k, v in preset.params.items()))
            for preset in described.presets
        ],
    )


def _read(found: dict[str, Any]) -> Recipe:
    """Parse a recipe from the API's response."""
    return Recipe.model_validate(
        {name: found[name] for name in (*Recipe.model_fields, *Recipe.old_names) if name in found}
    )
