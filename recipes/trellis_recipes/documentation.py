"""The recipes as a page to read, made from the same YAML as the form and the checks."""

from collections.abc import Iterable
from typing import Any

from trellis_contracts.recipe import DataFormat, Paper, Parameter, Recipe
from trellis_contracts.row_formats import CONVERSIONS, FORMAT_ROLES, ROLES, ColumnKind

FAMILIES = {
    "supervised": "Supervised",
    "rl": "Reinforcement learning",
    "preference": "Preferences and rewards",
    "agent": "Agents",
}
HEADER = """# Recipes

All recipes and their parameters. `trellis recipes show ID` prints the same for one recipe. Use `overrides`
for any other setting of the engine. For the required columns, see [data formats](#data-formats).
Generated from `recipes/trellis_recipes/catalogue` by `python -m trellis_tools.documents recipes --write`.
"""
DATA_FORMATS = f"""## Data formats

Each part of a row is read from the first of these columns that exists. Use `columns` in a request
(`--column prompt=ask`) for other names, and `data_format` (`--data-format`) if the detected format is wrong.
Messages are lists of objects with a `content` and a `role`:
{", ".join(sorted(ROLES))}.

| format | part | columns | type |
|---|---|---|---|
"""
CONVERTED = """
Recipes accept all formats that can be converted to the one they train on:

| trains on | accepts |
|---|---|
"""


def render(recipes: Iterable[Recipe]) -> str:
    """Render a Markdown page: an overview by family, then each recipe."""
    listed = list(recipes)
    parts = [HEADER]
    for family, title in FAMILIES.items():
        members = [recipe for recipe in listed if recipe.family == family]
        if members:
            parts.append(f"## {title}\n\n{_overview(members)}")
            parts += [_section(recipe) for recipe in members]
    return "\n".join([*parts, _data_formats()])


def title_of(recipe: Recipe) -> str:
    """Return the English title, with a mark where the trainer is experimental."""
    return recipe.title.en + (" (experimental)" if recipe.is_experimental else "")


def parts_of(data_format: DataFormat) -> list[tuple[str, str, str]]:
    """List the parts of a row: the name, the columns in which each is looked for, and the allowed types."""
    return [
        (
            role.name + (" (optional)" if role.is_optional else ""),
            ", ".join(role.usual_columns),
            " or ".join(kind for kind in ColumnKind if kind in role.kinds),
        )
        for role in FORMAT_ROLES[data_format]
    ]


def paper_of(paper: Paper) -> str:
    """Return the paper's title, year and where to read it."""
    link = f", [arXiv {paper.arxiv}](https://arxiv.org/abs/{paper.arxiv})" if paper.arxiv else ""
    return f"{paper.title} ({paper.year}{link})"


def allowed_values(parameter: Parameter) -> str:
    """Describe the values that a parameter accepts: its type, choices or range, and unit."""
    if parameter.choices:
        return " | ".join(parameter.choices)
    bounds = []
    if parameter.exclusive_minimum is not None:
        bounds.append(f"> {shown(parameter.exclusive_minimum)}")
    if parameter.minimum is not None:
        bounds.append(f"≥ {shown(parameter.minimum)}")
    if parameter.maximum is not None:
        bounds.append(f"≤ {shown(parameter.maximum)}")
    return " ".join([parameter.type, *bounds, *([parameter.unit] if parameter.unit else [])])


def shown(value: Any) -> str:
    """Format a value as it is written in a request; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:g}"
    return str(value)


def _overview(recipes: list[Recipe]) -> str:
    rows = ["| recipe | description | data |", "|---|---|---|"]
    for recipe in recipes:
        what = f"**{title_of(recipe)}.** {_cell(recipe.description.en)}"
        rows.append(f"| [`{recipe.id}`](#{recipe.id}) | {what} | {', '.join(recipe.data_formats)} |")
    return "\n".join(rows) + "\n"


def _section(recipe: Recipe) -> str:
    lines = [f"### {recipe.id}\n", recipe.description.en]
    if recipe.paper:
        lines.append(f"\nPaper: {paper_of(recipe.paper)}.")
    accepted = ", ".join(recipe.data_formats)
    lines.append(f"\nEngine: {recipe.engine}. Trains on {recipe.row_format}; accepts {accepted}.\n")
    lines += ["| parameter | default | accepts | meaning |", "|---|---|---|---|"]
    for parameter in recipe.parameters:
        accepts = _cell(allowed_values(parameter))
        lines.append(
            f"| `{parameter.name}` | {shown(parameter.default)} | {accepts} | {_cell(parameter.help.en)} |"
        )
    lines += ["\n| preset | for | sets |", "|---|---|---|"]
    for preset in recipe.presets:
        settings = {**preset.params, **preset.overrides}
        values = ", ".join(f"{name}={shown(value)}" for name, value in settings.items())
        lines.append(f"| `{preset.id}` | {preset.title.en} | {_cell(values)} |")
    return "\n".join(lines) + "\n"


def _data_formats() -> str:
    rows = [
        f"| {data_format} | {name} | {columns} | {holds} |"
        for data_format in FORMAT_ROLES
        for name, columns, holds in parts_of(data_format)
    ]
    conversions = [f"| {form} | {', '.join(formats)} |" for form, formats in CONVERSIONS.items()]
    return DATA_FORMATS + "\n".join(rows) + "\n" + CONVERTED + "\n".join(conversions) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
