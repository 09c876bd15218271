"""Scripted episodes to learn the form of the task from: search, perhaps read, return.

``python -m trellis_train.agents.linksearch.demonstrations ENVIRONMENT... --rows FILE`` writes them as rows
with ``messages`` and ``tools``. Only some are flawless; the others give up, return the first they see, search
loosely, repeat themselves or stumble over the form. Supervised training learns them all, and reinforcement
learning finds out which of them pay.
"""

import argparse
import json
import random
import re
import sqlite3
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.linksearch.generate import DATABASE_FILE
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.profiles import vocabulary
from trellis_train.agents.linksearch.prompts import LAST_TURN, system_prompt
from trellis_train.agents.linksearch.queries import (
    CONDITIONS,
    KINDS,
    Constraint,
    gold_sql,
    put_in_words,
    read_people,
)
from trellis_train.agents.linksearch.query_rows import read_queries
from trellis_train.agents.linksearch.tools import SCHEMAS, ProfileTools

Manner = Literal["careful", "reads", "hasty", "resigned", "loose", "repeats", "stumbles"]
#: How often an episode goes which way.
SHARES: dict[Manner, float] = {
    "careful": 0.28, "reads": 0.05, "hasty": 0.25, "resigned": 0.20, "loose": 0.12, "repeats": 0.05,
    "stumbles": 0.05,
}  # fmt: skip
_LOOSE = (
    "SELECT p.linkedin_handle FROM profiles_fts f JOIN profiles p ON p.rid = f.rowid"
    " WHERE profiles_fts MATCH '\"{}\"' ORDER BY p.linkedin_handle LIMIT 10"
)
_BROKEN = '<tool_call>\n{"name": "search_profile", "arguments": {"sql": \n</tool_call>'
#: What the loop answers to that; an episode's own words come from there.
_TOLD = "The tool call is not valid JSON."


def demonstrate(
    query: Mapping[str, Any], tools: ProfileTools, options: Options, manner: Manner
) -> list[dict[str, str]]:
    """Return the messages of a demonstration for ``query`` in that manner; the tools really run."""
    messages = [
        {"role": "system", "content": system_prompt(options)},
        {"role": "user", "content": str(query["query"])},
    ]
    if manner == "stumbles":
        messages += [
            _say(_BROKEN),
            _show({"success": False, "error": {"code": "BAD_CALL", "message": _TOLD}}),
        ]
    value = query["constraints"][0]["value"]
    sql = _LOOSE.format(value.replace("'", "''")) if manner == "loose" else str(query["gold_sql"])
    found = tools.search_profile(sql)
    for _ in range(2 if manner == "repeats" else 1):
        messages += [_call("search_profile", {"sql": sql}), _show(found)]
    handles = [row["linkedin_handle"] for row in found.get("rows", [])][: options.max_profiles]
    if manner == "reads" and handles:
        messages += [
            _call("read_profile", {"linkedin_handle": handles[0]}),
            _show(tools.read_profile(handles[0])),
        ]
    answer = {"hasty": handles[:1], "resigned": []}.get(manner, handles)
    return [*messages, _call("return_results", {"results": answer})]


def demonstrate_all(
    folder: Path,
    *,
    options: Options,
    seed: int,
    shares: Mapping[Manner, float] = SHARES,
    excluded: Collection[str] = (),
    repeats: int = 1,
) -> Iterator[dict[str, Any]]:
    """Yield rows for the questions of ``practise``, each ``repeats`` times in manners drawn by seed."""
    tools = ProfileTools(folder / DATABASE_FILE)
    draw = random.Random(f"{seed}:demonstrations")  # noqa: S311 - no secret
    for query in practise(folder / DATABASE_FILE, excluded=excluded):
        for _ in range(repeats):
            (manner,) = draw.choices(list(shares), weights=list(shares.values()))
            yield {"messages": demonstrate(query, tools, options, manner), "tools": json.dumps(SCHEMAS)}


def rehearse(
    folder: Path, *, options: Options, seed: int, count: int, with_prompt: bool = True
) -> Iterator[dict[str, Any]]:
    """Generate perfect episodes for an imaginary database: any value is requested, anybody is found.

    Nothing in them can be learned by heart, so that what is learned is to copy: from the question into the
    statement, and from its rows into the answer. Without the prompt, which is the same in all of them, they
    are half as long.
    """
    values, handles = _known(folder / DATABASE_FILE)
    draw = random.Random(f"{seed}:rehearsals")  # noqa: S311 - no secret
    for _ in range(count):
        constraint = Constraint(draw.choice(KINDS), draw.choice(values))
        found = sorted(draw.sample(handles, draw.randint(1, min(_MOST_FOUND, len(handles)))))
        rows = [{"linkedin_handle": handle} for handle in found]
        messages = [
            {"role": "user", "content": put_in_words([constraint], draw.randrange(_wordings()))},
            _call("search_profile", {"sql": gold_sql((constraint,))}),
            _show({"success": True, "rows": rows, "row_count": len(rows), "truncated": False}),
            _call("return_results", {"results": found}),
        ]
        if with_prompt:
            prompt = {"role": "system", "content": system_prompt(options)}
            yield {"messages": [prompt, *messages], "tools": json.dumps(SCHEMAS)}
        else:
            yield {"messages": messages}


#: Rows of an invented search.
_MOST_FOUND = 8


def practise(database: Path, *, excluded: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield every single-constraint question that someone in the database meets, in all wordings.

    However many do, unlike the queries to train on. Questions are left out whose ``signature`` is in
    ``excluded``: what an evaluation asks is not to be shown.
    """
    address = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        people = read_people(connection)
    pairs = dict.fromkeys((kind, value) for person in people for kind in KINDS for value in person[kind])
    for kind, value in pairs:
        constraint = Constraint(kind, value)
        query = {"constraints": [asdict(constraint)], "gold_sql": gold_sql((constraint,))}
        if signature(query) not in excluded:
            for wording in range(_wordings()):
                yield {**query, "query": put_in_words([constraint], wording)}


def signature(query: Mapping[str, Any]) -> str:
    """Return a key that is the same for all wordings of the same query."""
    return json.dumps(sorted((each["kind"], each["value"]) for each in query["constraints"]))


def phrases(options: Options, database: Path) -> list[str]:
    """Return the phrases that episodes repeat verbatim.

    These are the prompt, tools, calls, statements and wordings, and the values in the database, from names
    to employers.
    """
    words = vocabulary()
    wordings = [*words["openings"], *(each for three in words["wordings"].values() for each in three)]
    calls = [
        re.split("@+", render_tool_call("search_profile", {"sql": "@"})),
        re.split("@+", render_tool_call("read_profile", {"linkedin_handle": "@"})),
        re.split("@+", render_tool_call("return_results", {"results": ["@", "@"]})),
    ]
    selected = "SELECT p.linkedin_handle FROM profiles p WHERE "
    texts = [
        *re.split(r"\d+", system_prompt(options)),
        *(json.dumps(tool) for tool in SCHEMAS),
        LAST_TURN,
        *(part for call in calls for part in call),
        render_tool_call("return_results", {"results": []}),
        *(selected + each.split("{}")[0] for each in CONDITIONS.values()),
        *(part for each in CONDITIONS.values() for part in each.split("{}")),
        " ORDER BY p.linkedin_handle",
        *json.dumps(_LOOSE)[1:-1].split("{}"),
        *re.split(
            "@+", json.dumps({"success": True, "rows": [{"linkedin_handle": "@"}], "row_count": 0})[:-2]
        ),
        '"}, {"linkedin_handle": "',
        '"}], "row_count": ',
        ', "truncated": false}',
        *(part for each in wordings for part in re.split(r"\{\w+\}", each)),
    ]
    lines = {line for text in texts for line in text.split("\n")}
    return sorted({*(line for line in lines if len(line) >= _SHORTEST), *_JOINTS, *_names(database)})


#: Shorter ones are left to the trained part of the vocabulary ...
_SHORTEST = 5
#: ... but for what stands between handles and at a call's end.
_JOINTS = ('", "', '"}}', '"]}}', "')", "%'")


def _names(database: Path) -> list[str]:
    values, handles = _known(database)
    return [*handles, *(value for value in values if len(value) > 1)]


def _known(database: Path) -> tuple[list[str], list[str]]:
    """Return the values that queries may ask for, and the handles of all profiles."""
    address = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        handles = [row[0] for row in connection.execute("SELECT linkedin_handle FROM profiles ORDER BY rid")]
        people = read_people(connection)
    return sorted({value for person in people for values in person.values() for value in values}), handles


def _wordings() -> int:
    return len(vocabulary()["openings"])


def _say(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    return _say(render_tool_call(name, arguments))


def _show(result: Mapping[str, Any]) -> dict[str, str]:
    return {"role": "tool", "content": json.dumps(result, ensure_ascii=False)}


def main(arguments: list[str]) -> int:
    """Write the rows, and the phrases beside them if asked to."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.linksearch.demonstrations")
    parser.add_argument("environments", type=Path, nargs="+", help="folders that `generate` made")
    parser.add_argument("--rows", type=Path, required=True, help="JSON lines to write")
    parser.add_argument("--phrases", type=Path, help="JSON list to write, for the starter's tokenizer")
    parser.add_argument("--exclude", type=Path, action="append", default=[], help="queries not to be shown")
    parser.add_argument("--repeats", type=int, default=1, help="episodes of each query")
    parser.add_argument("--rehearsals", type=int, default=0, help="invented episodes to learn copying from")
    parser.add_argument("--max-turns", type=int, default=Options.max_turns)
    parser.add_argument("--max-profiles", type=int, default=Options.max_profiles)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    options = Options(max_turns=given.max_turns, max_profiles=given.max_profiles)
    rows = write_demonstrations(
        given.rows, given.environments, options, given.exclude, seed=given.seed, repeats=given.repeats,
        rehearsals=given.rehearsals,
    )  # fmt: skip
    if given.phrases:
        texts = {text for each in given.environments for text in phrases(options, each / DATABASE_FILE)}
        given.phrases.write_text(json.dumps(sorted(texts), ensure_ascii=False))
    print(json.dumps({"rows": rows}))
    return 0


def write_demonstrations(
    path: Path,
    environments: Sequence[Path],
    options: Options,
    exclude: Sequence[Path] = (),
    *,
    seed: int,
    repeats: int = 1,
    rehearsals: int = 0,
) -> int:
    """Write the demonstrations of several environments in an order by seed; how many there are.

    With ``rehearsals`` of each between them.
    """
    excluded = {signature(query) for each in exclude for query in read_queries(each)}
    rows = [
        row
        for number, folder in enumerate(environments)
        for row in demonstrate_all(
            folder, options=options, seed=seed + number, excluded=excluded, repeats=repeats
        )
    ]
    rows += [
        row
        for number, folder in enumerate(environments)
        for row in rehearse(folder, options=options, seed=seed + number, count=rehearsals)
    ]
    random.Random(f"{seed}:order").shuffle(rows)  # noqa: S311 - no secret
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return len(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
