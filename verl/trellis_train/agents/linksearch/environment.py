"""The environment ``linksearch``: a database of profiles, its queries as training rows, and its tools."""

import asyncio
import json
from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema

from trellis_train.agents.environments import Answer, BadRequest, Made
from trellis_train.agents.episode.tool_calls import ParsedCall
from trellis_train.agents.linksearch.calls import RETURN_RESULTS, open_desk
from trellis_train.agents.linksearch.generate import generate
from trellis_train.agents.linksearch.queries import NotEnoughQueries
from trellis_train.agents.linksearch.query_rows import query_row, read_queries
from trellis_train.agents.linksearch.tools import SCHEMAS

SPLITS = ("train", "eval")
ROWS_FOLDER = "rows"


def make(folder: Path, parameters: dict[str, Any]) -> Made:
    """Write the database, the queries, and the queries as rows."""
    try:
        generate(
            folder,
            profiles=parameters["profiles"],
            train=parameters["train"],
            evaluation=parameters["eval"],
            seed=parameters["seed"],
            most_constraints=parameters["most_constraints"],
        )
    except NotEnoughQueries as error:
        raise BadRequest(str(error)) from error
    (folder / ROWS_FOLDER).mkdir(exist_ok=True)
    for split in SPLITS:
        _write_rows(folder / f"{split}.jsonl", folder / ROWS_FOLDER / f"{split}.jsonl")
    return Made(
        counts={
            "profiles": parameters["profiles"],
            "train_queries": parameters["train"],
            "eval_queries": parameters["eval"],
        },
        tools=describe_tools(SCHEMAS),
        datasets={split: f"{ROWS_FOLDER}/{split}.jsonl" for split in SPLITS},
    )


def describe_tools(schemas: list[dict[str, Any]]) -> list[ToolSchema]:
    """Return the tool schemas for the manifest."""
    return [
        ToolSchema(**each["function"], ends_episode=each["function"]["name"] == RETURN_RESULTS)
        for each in schemas
    ]


def call(folder: Path, tool: ToolSchema, arguments: dict[str, Any]) -> Answer:
    """Call a tool as an episode would."""
    try:
        desk = open_desk(folder)
    except FileNotFoundError as error:
        raise BadRequest(str(error)) from error
    outcome = asyncio.run(desk.call(ParsedCall(tool.name, arguments, raw="")))
    result = json.loads(outcome.observation) if outcome.observation else outcome.result
    return Answer(result, outcome.told.result_count, outcome.told.error)


def _write_rows(queries: Path, rows: Path) -> None:
    with rows.open("w", encoding="utf-8") as file:
        for index, query in enumerate(read_queries(queries)):
            file.write(json.dumps(query_row(query, index), ensure_ascii=False) + "\n")
