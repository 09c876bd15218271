"""Queries by seed: one to four constraints, the SQL that answers them, and who that is."""

import itertools
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from trellis_train.agents.linksearch.profiles import vocabulary

Split = Literal["train", "eval"]
TRAIN: Split = "train"
EVAL: Split = "eval"
MOST_GOLD = 10
MOST_CONSTRAINTS = 4
#: Draws for each query that is wanted; beyond it the database does not hold enough of them.
_PATIENCE = 400
#: Of each kind of constraint, the condition on a profile ``p`` with one parameter.
CONDITIONS = {
    "title": "EXISTS (SELECT 1 FROM experiences e WHERE e.profile_id = p.id AND e.title = '{}')",
    "current_title": "EXISTS (SELECT 1 FROM experiences e WHERE e.profile_id = p.id AND e.is_current = 1"
    " AND e.title = '{}')",
    "company": "EXISTS (SELECT 1 FROM experiences e WHERE e.profile_id = p.id AND e.company = '{}')",
    "current_company": "EXISTS (SELECT 1 FROM experiences e WHERE e.profile_id = p.id AND e.is_current = 1"
    " AND e.company = '{}')",
    "location": "EXISTS (SELECT 1 FROM experiences e WHERE e.profile_id = p.id AND e.location = '{}')",
    "skill": "', ' || p.skills || ', ' LIKE '%, {}, %'",
    "school": "EXISTS (SELECT 1 FROM educations d WHERE d.profile_id = p.id AND d.school = '{}')",
    "field_of_study": "EXISTS (SELECT 1 FROM educations d WHERE d.profile_id = p.id"
    " AND d.field_of_study = '{}')",
    "name": "p.name = '{}'",
    "degree": "EXISTS (SELECT 1 FROM educations d WHERE d.profile_id = p.id AND d.degree = '{}')",
}
KINDS = tuple(CONDITIONS)


@dataclass(frozen=True, order=True)
class Constraint:
    """What a person has to be."""

    kind: str
    value: str


@dataclass(frozen=True)
class Query:
    """A question about the database, with everybody it asks for."""

    id: str
    query: str
    gold_handles: list[str]
    split: Split
    #: The number of its constraints.
    difficulty: int
    constraints: list[dict[str, str]]
    gold_sql: str

    def as_row(self) -> dict[str, Any]:
        return asdict(self)


class NotEnoughQueries(ValueError):
    """The database does not hold so many different questions with one to ten answers."""


def make_queries(
    database: Path, *, train: int, evaluation: int, seed: int, most_constraints: int = MOST_CONSTRAINTS
) -> Iterator[Query]:
    """Make the queries of each split; no set of constraints is in both splits, or twice in one."""
    draw = random.Random(f"{seed}:queries")  # noqa: S311 - no secret
    seen = set[tuple[Constraint, ...]]()
    with closing(
        sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    ) as connection:
        people = read_people(connection)
        wanted = [*itertools.repeat(EVAL, evaluation), *itertools.repeat(TRAIN, train)]
        for number, split in enumerate(wanted):
            constraints, sql, gold = _draw_query(draw, connection, people, seen, most_constraints)
            yield Query(
                id=f"{split}-{number if split == EVAL else number - evaluation:05d}",
                query=_word(draw, constraints),
                gold_handles=gold,
                split=split,
                difficulty=len(constraints),
                constraints=[asdict(each) for each in constraints],
                gold_sql=sql,
            )


def gold_sql(constraints: tuple[Constraint, ...]) -> str:
    """Return the SQL that selects the handles of all matching profiles in alphabetical order."""
    conditions = [CONDITIONS[each.kind].format(each.value.replace("'", "''")) for each in constraints]
    where = " AND ".join(conditions)
    return f"SELECT p.linkedin_handle FROM profiles p WHERE {where} ORDER BY p.linkedin_handle"  # noqa: S608


def _draw_query(
    draw: random.Random,
    connection: sqlite3.Connection,
    people: list[dict[str, list[str]]],
    seen: set[tuple[Constraint, ...]],
    most_constraints: int,
) -> tuple[tuple[Constraint, ...], str, list[str]]:
    """Draw constraints that hold for some person, and for no more than ten."""
    for _ in range(_PATIENCE):
        person, count = draw.choice(people), draw.randint(1, most_constraints)
        kinds = _draw_kinds(draw, person, count)
        constraints = tuple(sorted(Constraint(kind, draw.choice(person[kind])) for kind in kinds))
        if constraints in seen:
            continue
        seen.add(constraints)
        sql = gold_sql(constraints)
        gold = [row[0] for row in connection.execute(sql).fetchmany(MOST_GOLD + 1)]
        if len(gold) <= MOST_GOLD:
            return constraints, sql, gold
    raise NotEnoughQueries(
        "there are not enough profiles for that many distinct queries with 1 to 10 answers:"
        " request fewer queries or generate more profiles"
    )


def _draw_kinds(draw: random.Random, person: dict[str, list[str]], count: int) -> list[str]:
    """Draw kinds that are not redundant: whoever works as a clerk now has been one."""
    order = draw.sample([kind for kind in KINDS if person[kind]], k=sum(bool(person[kind]) for kind in KINDS))
    kinds = list[str]()
    for kind in order:
        about = kind.removeprefix("current_")
        is_said = any(each.removeprefix("current_") == about for each in kinds)
        if not is_said and (kind != "name" or count == 1):
            kinds.append(kind)
        if len(kinds) == count:
            break
    return kinds


def _word(draw: random.Random, constraints: tuple[Constraint, ...]) -> str:
    """Put the constraints in one of three wordings, in any order."""
    wording, order = draw.randrange(len(vocabulary()["openings"])), list(constraints)
    draw.shuffle(order)
    return put_in_words(order, wording)


def put_in_words(constraints: Sequence[Constraint], wording: int) -> str:
    """Phrase the constraints as a question, using that wording of the vocabulary."""
    words = vocabulary()
    parts = [
        words["wordings"][each.kind][wording].format(value=each.value, article=_article(each.value))
        for each in constraints
    ]
    joined = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return str(words["openings"][wording].format(constraints=joined))


def _article(value: str) -> str:
    """Return ``a`` or ``an`` by sound: an MSc, a BA, a UI Engineer."""
    starts_with_vowel = value[0] in "AEIO" or (value.startswith(("M", "S")) and value[1:2].isupper())
    return "an" if starts_with_vowel else "a"


def read_people(connection: sqlite3.Connection) -> list[dict[str, list[str]]]:
    """Read what is true of every profile, by kind of constraint."""
    people: dict[str, dict[str, list[str]]] = {}
    for identity, name, skills in connection.execute("SELECT id, name, skills FROM profiles ORDER BY rid"):
        people[identity] = {kind: [] for kind in KINDS} | {"name": [name], "skill": skills.split(", ")}
    jobs = "SELECT profile_id, title, company, location, is_current FROM experiences ORDER BY id"
    for identity, title, company, location, is_current in connection.execute(jobs):
        of = people[identity]
        for kind, value in (("title", title), ("company", company), ("location", location)):
            of[kind].append(value)
            if is_current and kind != "location":
                of[f"current_{kind}"].append(value)
    schools = "SELECT profile_id, school, degree, field_of_study FROM educations ORDER BY id"
    for identity, school, degree, subject in connection.execute(schools):
        for kind, value in (("school", school), ("degree", degree), ("field_of_study", subject)):
            people[identity][kind].append(value)
    return list(people.values())
