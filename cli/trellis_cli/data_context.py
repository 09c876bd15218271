"""What operators of `trellis data` may know beside rows and parameters: a tokenizer, files, judges."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import yaml
from pydantic import ValidationError

from trellis_cli.errors import ExitCode, Problem

if TYPE_CHECKING:
    from trellis_data.operator import Context
    from trellis_data.scoring.endpoint_judge import EndpointJudge

Tokenizer = Annotated[
    Path | None, typer.Option(help="Model folder whose tokenizer counts tokens; default: the pipeline's.")
]
Resources = Annotated[
    list[str] | None, typer.Option("--resource", help="Additional input file as NAME=PATH; repeatable.")
]
Judges = Annotated[
    list[str] | None,
    typer.Option("--judge", help="LLM judge as NAME=FILE.yaml (docs/data.md); repeatable."),
]


def make_context(
    stated: str | None,
    tokenizer: Path | None,
    resources: Sequence[str] | None,
    judges: Sequence[str] | None,
    *,
    grades: Path,
) -> "Context":
    """Build the context that the options describe; judges keep their cost and their grades in ``grades``."""
    from trellis_data.operator import Context

    folder = tokenizer or (Path(stated) if stated else None)
    if folder and not folder.is_dir():
        raise Problem(f"tokenizer folder {folder} not found", hint="set --tokenizer")
    return Context(
        tokenizer=folder,
        resources=dict(_named(each, "--resource") for each in resources or ()),
        scorers={
            name: _read_judge(name, path, grades)
            for name, path in (_named(each, "--judge") for each in judges or ())
        },
    )


def _named(option: str, flag: str) -> tuple[str, Path]:
    name, equals, path = option.partition("=")
    if not equals or not name or not Path(path).is_file():
        raise Problem(f"{flag} takes NAME=PATH of a file, not '{option}'", exit_code=ExitCode.USAGE)
    return name, Path(path)


def _read_judge(name: str, path: Path, grades: Path) -> "EndpointJudge":
    from trellis_data.scoring.endpoint_judge import JudgeSettings

    try:
        settings = JudgeSettings.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Problem(f"{path} is not valid YAML: {error}", exit_code=ExitCode.USAGE) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise Problem(f"{path}: {where}: {first['msg']}", exit_code=ExitCode.USAGE) from None
    return settings.build(name, grades)
