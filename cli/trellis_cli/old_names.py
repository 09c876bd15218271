"""Keeps the old names of renamed commands: hidden from the help, with a warning that gives the new name."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from trellis_cli.output import err

Command = Callable[..., Any]


def also_known_as(app: typer.Typer, old: str, *, now: str) -> Callable[[Command], Command]:
    """Register a command of ``app`` under its old name too; it warns and then does the same."""

    class OldName(TyperCommand):
        """Warns before it runs."""

        def invoke(self, ctx: Any) -> Any:
            group = f"{ctx.parent.command_path} " if ctx.parent else ""
            warning = f"warning: '{group}{old}' is deprecated; use '{group}{now}'"
            err.print(warning, style="yellow", markup=False, highlight=False, soft_wrap=True)
            return super().invoke(ctx)

    return app.command(old, hidden=True, cls=OldName)
