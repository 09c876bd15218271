"""``--set NAME=VALUE``: settings on the command line, read the same way by every command."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import yaml

from trellis_cli.errors import ExitCode, Problem


def read_parameters(settings: Sequence[str]) -> dict[str, Any]:
    """Parse ``NAME=VALUE`` with JSON or YAML values: numbers (also ``1e-4``), true, null, lists, texts."""
    parameters = {}
    for each in settings:
        name, sign, value = each.partition("=")
        if not sign or not name.strip():
            raise Problem(f"--set takes NAME=VALUE, not '{each}'", exit_code=ExitCode.USAGE)
        parameters[name.strip()] = read_value(value, f"--set {each}")
    return parameters


def read_value(text: str, what: str) -> Any:
    """Parse a value as people write it; raise ``Problem`` that names ``what`` if it cannot be read."""
    with suppress(ValueError):
        return json.loads(text)
    # YAML reads lists without quotes, and takes what is left for a text; of 1e-4 it would make one, too.
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Problem(f"{what}: {error}", exit_code=ExitCode.USAGE) from error
