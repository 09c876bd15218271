"""What a run on this machine needs: ``python -m trellis_train.agents.linksearch.setup``.

``lay`` writes an environment's folder (database, both splits as rows); ``check`` tells of the
database, the data and the model what is wrong and what to do about it.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis_train.agents.episode.tool_template import HERMES, OWN, require_shown
from trellis_train.agents.linksearch.database import normalise_handle
from trellis_train.agents.linksearch.generate import DATABASE_FILE
from trellis_train.agents.linksearch.guard import SqlGuard
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.own_database import BadDatabase, copy_database, is_indexed
from trellis_train.agents.linksearch.prompts import system_prompt
from trellis_train.agents.linksearch.query_rows import BadQuery
from trellis_train.agents.linksearch.shape import open_unchanged
from trellis_train.agents.linksearch.sources import EVAL, TRAIN, gold_of, read_rows
from trellis_train.agents.linksearch.tools import SCHEMAS
from trellis_train.agents.unusable import AgentUnusable

EXIT_BAD_REQUEST = 65  # EX_DATAERR
_MAKE_ONE = "Create one with `trellis linksearch generate FOLDER` and set PROFILE_DB_PATH to its profiles.db."
_BRING_ONE = (
    "Your own database needs a table profiles (id, linkedin_handle, name, ...); see docs/agents.md. "
    + _MAKE_ONE
)


class Unusable(ValueError):
    """What is wrong, and what to do."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


@dataclass(frozen=True)
class Finding:
    """One part of a set-up."""

    part: str
    is_ok: bool
    message: str
    advice: str = ""


def lay(database: Path, source: str, folder: Path, *, train: int, evaluation: int) -> dict[str, int]:
    """Write the folder; rows of each split. Raises ``Unusable``."""
    check_database(database)
    folder.mkdir(parents=True, exist_ok=True)
    _lay_database(database, folder / DATABASE_FILE)
    counts = {}
    for split, limit in ((TRAIN, train), (EVAL, evaluation)):
        rows = _read(source, split, limit)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{split}.rows.jsonl").write_text(text, encoding="utf-8")
        counts[split] = len(rows)
    return counts


def _lay_database(database: Path, target: Path) -> None:
    """Link the database if it has a search index, else make a copy with an index."""
    target.unlink(missing_ok=True)
    if is_indexed(database):
        target.symlink_to(database.resolve())
    else:
        copy_database(database, target)


def check_database(path: Path) -> str:
    """Check that the database is usable and describe its content. Raises ``Unusable``."""
    if not path.is_file():
        raise Unusable(f"database not found: {path}", _MAKE_ONE)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            readable = path
            if not is_indexed(path):
                readable = Path(scratch) / DATABASE_FILE
                copy_database(path, readable)
            return f"{_count_profiles(readable):,} profiles in {path}"
    except BadDatabase as error:
        raise Unusable(str(error), _BRING_ONE) from error
    except sqlite3.DatabaseError as error:
        raise Unusable(f"{path} is not a profile database: {error}", _BRING_ONE) from error


def _count_profiles(path: Path) -> int:
    with closing(open_unchanged(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM profiles").fetchone()
    if not count:
        raise BadDatabase(f"{path} contains no profiles")
    reply = SqlGuard(path).run("SELECT rowid FROM profiles_fts WHERE profiles_fts MATCH ?", ["a*"])
    if reply.error is not None:
        raise BadDatabase(f"the full-text index of {path} cannot be queried: {reply.message}")
    return int(count)


def check_data(source: str, database: Path, *, train: int, evaluation: int) -> str:
    """Check that all handles of the queries are in the database; count the queries. Raises ``Unusable``."""
    known = read_handles(database)
    told = []
    for split, limit in ((TRAIN, train), (EVAL, evaluation)):
        rows = _read(source, split, limit)
        strangers = {handle for row in rows for handle in gold_of(row) if handle not in known}
        if strangers:
            raise Unusable(
                f"{len(strangers)} handles in the {split} split are not in the database, such as"
                f" {min(strangers)}",
                "Use queries and a database that belong together.",
            )
        fewer = f" (of {limit} asked for)" if len(rows) < limit else ""
        told.append(f"{len(rows)} {split} queries{fewer}")
    return ", ".join(told)


def read_handles(database: Path) -> set[str]:
    """Read the handles of the database in normalized form."""
    with closing(open_unchanged(database)) as connection:
        found = connection.execute("SELECT linkedin_handle FROM profiles")
        return {normalise_handle(handle) for (handle,) in found if isinstance(handle, str)}


def check_model(model: str, *, max_prompt: int, options: Options) -> str:
    """Report how long the prompt is in the model's tokens. Raises ``Unusable``."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(model)
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        advice = "Set MODEL_NAME to a folder in Hugging Face format or a model on the Hugging Face Hub."
        raise Unusable(f"the model {model} cannot be read: {reason}", advice) from error
    try:
        require_shown(tokenizer, model, options.tool_template)
    except AgentUnusable as error:
        raise Unusable(str(error), "Its prompt would not list the tools.") from error
    messages = [{"role": "system", "content": system_prompt(options)}, {"role": "user", "content": "Who?"}]
    text = tokenizer.apply_chat_template(messages, tools=SCHEMAS, add_generation_prompt=True, tokenize=False)
    length = len(tokenizer.encode(text, add_special_tokens=False))
    if length > max_prompt:
        raise Unusable(
            f"the prompt has {length} tokens with {model}, more than {max_prompt}", "Raise the limit."
        )
    return f"{config.model_type}, prompt of {length} tokens without the query"


def _read(source: str, split: str, limit: int) -> list[dict[str, Any]]:
    try:
        return read_rows(source, split, limit)
    except BadQuery as error:
        advice = (
            "Queries have a question (query) and handles (gold_handles, handles or answer); docs/agents.md."
        )
        raise Unusable(str(error), advice) from error


def _look(part: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(part, True, check())
    except Unusable as problem:
        return Finding(part, False, str(problem), problem.advice)


def main(arguments: list[str]) -> int:
    """Print JSON; a set-up that cannot be laid is told on standard error."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.linksearch.setup")
    parser.add_argument("task", choices=["lay", "check"])
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--train", type=int, required=True)
    parser.add_argument("--eval", type=int, required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--max-prompt", type=int, default=2048)
    parser.add_argument("--max-turns", type=int, default=Options.max_turns)
    parser.add_argument("--tool-template", choices=[OWN, HERMES], default=OWN)
    given = parser.parse_args(arguments)
    sizes = {"train": given.train, "evaluation": given.eval}
    if given.task == "lay":
        try:
            print(json.dumps(lay(given.database, given.queries, given.folder, **sizes)))
        except Unusable as problem:
            print(f"{problem}. {problem.advice}", file=sys.stderr)
            return EXIT_BAD_REQUEST
        return 0
    findings = [_look("database", lambda: check_database(given.database))]
    if findings[0].is_ok:
        findings.append(_look("data", lambda: check_data(given.queries, given.database, **sizes)))
    if given.model:
        options = Options(max_turns=given.max_turns, tool_template=given.tool_template)
        findings.append(
            _look("model", lambda: check_model(given.model, max_prompt=given.max_prompt, options=options))
        )
    print(json.dumps([asdict(each) for each in findings]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
