"""The recipes as a page to read, made from the same YAML as the form and the checks."""

from collections.abc import Iterable
from typing import Any

from trellis_contracts.recipe import Knob, Paper, Recipe

FAMILIES = {
    "supervised": "Supervised",
    "rl": "Reinforcement learning",
    "preference": "Preferences and rewards",
    "agent": "Agents",
}
HEADER = """# Recipes

What can be trained, and every knob. `trellis recipes show ID` prints the same for one recipe;
`overrides` reach whatever the engine has besides.
Made from `recipes/trellis_recipes/catalogue` by `python -m trellis_cli.documents recipes --write`.
"""


def render(recipes: Iterable[Recipe]) -> str:
    """A Markdown page: an overview by family, then each recipe."""
    listed = list(recipes)
    parts = [HEADER]
    for family, title in FAMILIES.items():
        members = [recipe for recipe in listed if recipe.family == family]
        if members:
            parts.append(f"## {title}\n\n{_overview(members)}")
            parts += [_section(recipe) for recipe in members]
    return "\n".join(parts)


def paper_of(paper: Paper) -> str:
    """Title, year and where to read it."""
    link = f", [arXiv {paper.arxiv}](https://arxiv.org/abs/{paper.arxiv})" if paper.arxiv else ""
    return f"{paper.title} ({paper.year}{link})"


def allowed_values(knob: Knob) -> str:
    """What a knob accepts: its type, choices or range, and unit."""
    if knob.choices:
        return " | ".join(knob.choices)
    bounds = []
    if knob.exclusive_minimum is not None:
        bounds.append(f"> {shown(knob.exclusive_minimum)}")
    if knob.minimum is not None:
        bounds.append(f"≥ {shown(knob.minimum)}")
    if knob.maximum is not None:
        bounds.append(f"≤ {shown(knob.maximum)}")
    return " ".join([knob.type, *bounds, *([knob.unit] if knob.unit else [])])


def shown(value: Any) -> str:
    """A value as it is written in a request; empty where there is none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:g}"
    return str(value)


def _overview(recipes: list[Recipe]) -> str:
    rows = ["| recipe | what | data |", "|---|---|---|"]
    for recipe in recipes:
        title = recipe.title.en + (" (experimental)" if recipe.is_experimental else "")
        data = ", ".join(recipe.data_formats)
        rows.append(
            f"| [`{recipe.id}`](#{recipe.id}) | **{title}.** {_cell(recipe.description.en)} | {data} |"
        )
    return "\n".join(rows) + "\n"


def _section(recipe: Recipe) -> str:
    lines = [f"### {recipe.id}\n", recipe.description.en]
    if recipe.paper:
        lines.append(f"\nPaper: {paper_of(recipe.paper)}.")
    lines.append(
        f"\nEngine: {recipe.engine}. Trains on {recipe.trains_on}; takes {', '.join(recipe.data_formats)}.\n"
    )
    lines += ["| knob | default | accepts | meaning |", "|---|---|---|---|"]
    for knob in recipe.knobs:
        accepts = _cell(allowed_values(knob))
        lines.append(f"| `{knob.name}` | {shown(knob.default)} | {accepts} | {_cell(knob.help.en)} |")
    lines += ["\n| preset | for | sets |", "|---|---|---|"]
    for preset in recipe.presets:
        settings = {**preset.params, **preset.overrides}
        values = ", ".join(f"{name}={shown(value)}" for name, value in settings.items())
        lines.append(f"| `{preset.id}` | {preset.title.en} | {_cell(values)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
