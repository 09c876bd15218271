"""The environment ``linksearch_database``: profiles and queries that somebody brings."""

import json
from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema
from trellis_data.atomic_files import write_atomically

from trellis_train.agents.environments import Answer, BadRequest, Made
from trellis_train.agents.linksearch import environment
from trellis_train.agents.linksearch.environment import ROWS_FOLDER, SPLITS, describe_tools
from trellis_train.agents.linksearch.generate import DATABASE_FILE
from trellis_train.agents.linksearch.own_database import BadDatabase, copy_database
from trellis_train.agents.linksearch.query_rows import BadQuery
from trellis_train.agents.linksearch.setup import read_handles
from trellis_train.agents.linksearch.shape import read_shape
from trellis_train.agents.linksearch.sources import gold_of, read_rows
from trellis_train.agents.linksearch.tools import tool_schemas

DROP = "drop"


def make(folder: Path, parameters: dict[str, Any]) -> Made:
    """Copy the database with an index, and write its queries as rows.

    ``database`` and ``queries`` are places on this machine, or ``hub:owner/name`` of the latter.
    """
    database = folder / DATABASE_FILE
    try:
        copied = copy_database(Path(parameters["database"]), database)
        rows = {split: read_rows(parameters["queries"], split, parameters[split]) for split in SPLITS}
    except (BadDatabase, BadQuery) as error:
        raise BadRequest(f"{error}.") from error
    known, counts = read_handles(database), {"profiles": copied.profiles}
    if copied.without_handle:
        counts["profiles_without_handle"] = copied.without_handle
    (folder / ROWS_FOLDER).mkdir(exist_ok=True)
    for split, found in rows.items():
        kept = _keep_answerable(found, known, split, drops=parameters["missing_handles"] == DROP)
        counts[f"{split}_queries"] = len(kept)
        if len(kept) < len(found):
            counts[f"{split}_queries_dropped"] = len(found) - len(kept)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
        write_atomically(folder / ROWS_FOLDER / f"{split}.jsonl", text)
    return Made(
        counts=counts,
        tools=describe_tools(tool_schemas(read_shape(database))),
        datasets={split: f"{ROWS_FOLDER}/{split}.jsonl" for split in SPLITS},
    )


def call(folder: Path, tool: ToolSchema, arguments: dict[str, Any]) -> Answer:
    """Call a tool as an episode would."""
    return environment.call(folder, tool, arguments)


def _keep_answerable(
    rows: list[dict[str, Any]], known: set[str], split: str, *, drops: bool
) -> list[dict[str, Any]]:
    """Keep the rows whose gold handles are in the database. Raises ``BadRequest``."""
    strangers = {handle for row in rows for handle in gold_of(row)} - known
    if strangers and not drops:
        raise BadRequest(
            f"{len(strangers)} handles in the {split} split are not in the database, for example"
            f" {min(strangers)}. Use queries made for this database, or set missing_handles to drop."
        )
    kept = []
    for row in rows:
        gold = [handle for handle in gold_of(row) if handle in known]
        if gold:
            kept.append({**row, "reward_model": {**row["reward_model"], "ground_truth": json.dumps(gold)}})
    if not kept:
        raise BadRequest(f"No query in the {split} split has an answer in the database.")
    return kept
