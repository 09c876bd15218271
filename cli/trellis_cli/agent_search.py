"""`trellis agent search`: the tools that a trained retriever finds for a request."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from trellis_cli.agent_evaluate import run_module
from trellis_cli.agent_sources import find_model
from trellis_cli.output import Json, print_json, print_table

SEARCHER = "trellis_train.agents.tooluse.retrieval.search"


def register(app: typer.Typer) -> None:
    """Add the command to `trellis agent`."""
    app.command("search")(search)


def search(
    model: Annotated[str, typer.Argument(help="Run folder of a retrieval stage, or an export of its model.")],
    queries: Annotated[list[str], typer.Argument(help="Requests to find tools for.")],
    count: Annotated[int, typer.Option(min=1, help="Number of tools per request.")] = 10,
    as_json: Json = False,
) -> None:
    """Find tools with a trained retriever."""
    with tempfile.TemporaryDirectory() as scratch:
        options = [find_model(model, scratch=Path(scratch) / "model"), "--count", str(count)]
        for query in queries:
            # One word, so that a request that begins with a dash is no option.
            options.append(f"--query={query}")
        found: Any = run_module(SEARCHER, options)
    if as_json:
        print_json([{"query": query, "tools": tools} for query, tools in zip(queries, found, strict=True)])
        return
    for query, tools in zip(queries, found, strict=True):
        print_table((query, "score"), [(each["tool"], f"{each['score']:.4f}") for each in tools])
