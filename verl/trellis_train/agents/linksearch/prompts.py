"""What the agent is told beside its tools."""

from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.shape import GENERATED, INDEX, TABLES, Shape, quote

_SYSTEM = (
    "You find people in a database of profiles. Search it with SQL, read profiles where the rows do not"
    " tell enough, and return the LinkedIn handles of everybody who fits, at most {profiles}."
    " You have {turns} turns with up to {calls} tool calls each.\n"
    "Tables: {tables}.{remarks}"
)
LAST_TURN = "This is your last turn: call return_results now with the handles you have found."


def system_prompt(options: Options, shape: Shape = GENERATED) -> str:
    """Return the system prompt, the same for all episodes of a run; ``shape`` is its database's."""
    tables = [f"{table}({_listed(shape.columns[table])})" for table in TABLES if shape.has(table)]
    tables.append(f"{INDEX}({_listed(shape.indexed)}; rowid = profiles.rid)")
    remarks = ["profile_id is profiles.id"] if len(shape.columns) > 1 else []
    remarks += ["skills are separated by ', '"] if shape.has_comma_skills else []
    return _SYSTEM.format(
        profiles=options.max_profiles,
        turns=options.turns,
        calls=options.max_calls,
        tables=", ".join(tables),
        remarks=f" {'; '.join(remarks)}." if remarks else "",
    )


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(map(quote, columns))
