"""Keeps the old names of renamed commands: hidden from the help, with a warning that gives the new name."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from trellis_cli.output import err

Command = Callable[..., Any]


def also_known_as(app: typer.Typer, old: str, *, now: str) -> Callable[[Command], Command]:
    """Register a command of ``app`` under its old name too; it warns and then does the same."""

    class OldName(TyperCommand):
        """Warns before it runs."""

        def invoke(self, ctx: Any) -> Any:
            group = f"{ctx.parent.command_path} " if ctx.parent else ""
            _warn(f"{group}{old}", f"{group}{now}")
            return super().invoke(ctx)

    return app.command(old, hidden=True, cls=OldName)


def keep_old_group(app: typer.Typer, group: typer.Typer, old: str, *, now: str) -> None:
    """Register a group of ``app`` under its old name too; its commands warn and then do the same."""

    class OldGroup(TyperGroup):
        """Warns before one of its commands runs."""

        def invoke(self, ctx: Any) -> Any:
            before = ctx.command_path
            # What a command then tells of itself has the new name, also a warning of a second old name.
            ctx.info_name = now
            _warn(before, ctx.command_path)
            return super().invoke(ctx)

    app.add_typer(
        group, name=old, hidden=True, cls=OldGroup, help=f"Deprecated; use '{app.info.name} {now}'."
    )


def _warn(old: str, now: str) -> None:
    err.print(
        f"warning: '{old}' is deprecated; use '{now}'",
        style="yellow", markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
