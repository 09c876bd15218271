"""`trellis agent export`: what a stage trained, as a folder of its own that `from_pretrained` loads."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from trellis_cli.agent_sources import find_model
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, out, print_json


def register(app: typer.Typer) -> None:
    """Add the command to `trellis agent`."""
    app.command("export")(export)


def export(
    run: Annotated[str, typer.Argument(help="Folder of a run; its newest checkpoint is exported.")],
    output: Annotated[Path, typer.Option("--output", "-o", file_okay=False, help="Output folder.")],
    as_json: Json = False,
) -> None:
    """Export a run's model as full weights; an adapter is merged into its base."""
    if output.is_dir() and any(output.iterdir()):
        raise Problem(f"{output} is not empty", exit_code=ExitCode.USAGE)
    found = Path(find_model(run, scratch=output))
    if found != output.resolve():
        shutil.copytree(found, output, dirs_exist_ok=True)
    if as_json:
        print_json({"folder": str(output)})
        return
    out.print(f"in {output}", markup=False, highlight=False)
