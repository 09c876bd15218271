"""The operators' part of docs/data.md, made from the catalogue."""

from trellis_data.catalogue import operators
from trellis_data.operator import Operator

BEGIN, END = (
    "<!-- operators: made by `python -m trellis_tools.documents data --write` -->",
    "<!-- /operators -->",
)
_GROUPS = {
    "clean": "Clean",
    "deduplicate": "Deduplicate",
    "score": "Score",
    "filter": "Filter",
    "convert": "Convert",
    "split": "Split",
}


def render_operators(page: str) -> str:
    """Return the page with its section about operators replaced by the current one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{_tables()}\n{END}{after}"


def _tables() -> str:
    parts = []
    for group, title in _GROUPS.items():
        members = [each for each in operators().values() if each.group == group]
        if members:
            head = f"### {title}\n\n| operator | what it does | parameters (default) |\n|---|---|---|\n"
            parts.append(head + "".join(_row(each) for each in members))
    return "\n".join(parts)


def _row(operator: type[Operator]) -> str:
    parameters = []
    for name, field in operator.Params.model_fields.items():
        default = "" if field.is_required() else field.get_default(call_default_factory=True)
        shown = "" if default is None or default == "" else f" ({_short(default)})"
        parameters.append(f"`{name}`{shown}")
    return f"| `{operator.id}` | {operator.help.en} | {', '.join(parameters) or 'none'} |\n"


def _short(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text.replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:60]}…"
