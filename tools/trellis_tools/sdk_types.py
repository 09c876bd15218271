"""Write the SDK's types from the API's schema: ``python -m trellis_tools.documents sdk-types --write``.

Typed dictionaries and nothing else: what the API answers is handed on as it is, so that a field that a newer
platform adds is there too, and type checkers know the others.
"""

import keyword
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
#: What methods of the SDK return; what these are made of comes with them.
ROOTS = (
    "BenchmarkRead", "CheckpointRead", "Clusters", "ComparedCurves", "ComparedEvaluations", "ComparedSeeds",
    "ComparisonRead", "DataTaskRead", "DatasetRead", "DatasetRows", "DiffRead", "DryRunRead", "EndpointRead",
    "EnvironmentRead",
    "EvaluationEstimate", "EvaluationRead", "FoundRows", "JobComparison", "JobPipelineRead", "JobPreview",
    "JobRead", "LineageRead", "LogLineRead", "ManifestRead", "PromptMap", "ReplayPlan",
    "MetricKey", "MetricsRead", "ModelRead", "NamedModelRead", "PipelineChecked", "PipelineRead",
    "PromotionRead", "QuarantineRead", "Recipe", "RecipeRead",
    "RefRead", "RefsRead", "ReportRead", "RewardFileRead", "RewardKindRead", "RolloutRead", "RolloutStep",
    "RolloutSummary", "RunRead", "SampleRead", "StatisticsRead", "StreamEvents", "SweepPreview", "SweepRead",
    "SweepSummary", "TimingRead", "TracedStep", "TransferRead", "UserRead", "VersionRead", "VoteRead",
    "WinRate", "WorkflowDetail", "WorkflowListed", "WorkflowRead",
)  # fmt: skip
HEADER = '''"""What the API answers, as typed dictionaries.

Made from `frontend/openapi.json` by `python -m trellis_tools.documents sdk-types --write`.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict'''
_REFERENCE = "#/components/schemas/"
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DOCUMENTATION_CHARACTERS = 100


def render_types(openapi: Schema) -> str:
    """Render the text of sdk/trellis/types.py."""
    schemas: Schema = openapi["components"]["schemas"]
    names = sorted(_reach(schemas))
    # Aliases first: they are values, and those are made in the order of the file.
    aliases = [name for name in names if not _is_record(schemas[name])]
    records = [name for name in names if _is_record(schemas[name])]
    parts = [HEADER]
    parts += [f"{_name(name)} = {_type(schemas[name])}" for name in aliases]
    parts += [_record(name, schemas[name]) for name in records]
    return _format("\n\n".join(parts) + "\n")


def _reach(schemas: Schema) -> set[str]:
    found: set[str] = set()
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(schemas[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_REFERENCE)
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _is_record(schema: Schema) -> bool:
    return bool(schema.get("type") == "object" and schema.get("properties"))


def _record(name: str, schema: Schema) -> str:
    required = set(schema.get("required", ()))
    # An answer holds what has a default, too.
    fields = {
        field: _type(value) if field in required or "default" in value else f"NotRequired[{_type(value)}]"
        for field, value in schema["properties"].items()
    }
    if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
        lines = [f"class {_name(name)}(TypedDict):", *_documentation(schema)]
        return "\n".join([*lines, *(f"    {field}: {kind}" for field, kind in fields.items())])
    entries = ", ".join(f"{field!r}: {kind!r}" for field, kind in fields.items())
    return f"{_name(name)} = TypedDict({_name(name)!r}, {{{entries}}})"


def _documentation(schema: Schema) -> list[str]:
    text = " ".join(str(schema.get("description", "")).split())
    if not text:
        return []
    if len(text) > _DOCUMENTATION_CHARACTERS:
        text = f"{text[: _DOCUMENTATION_CHARACTERS - 1].rstrip()}…"
    return ['    """' + text.replace("\\", "").replace('"', "'") + '"""', ""]


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return _name(str(schema["$ref"]).removeprefix(_REFERENCE))
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if len(schema.get("allOf", ())) == 1:
        return _type(schema["allOf"][0])
    kind = schema.get("type")
    if kind == "array":
        return f"list[{_type(schema.get('items') or {})}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type(values) if isinstance(values, Mapping) else 'Any'}]"
    return _PLAIN.get(str(kind), "Any")


def _name(name: str) -> str:
    return name.replace("-", "_")


def _format(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", "sdk/trellis/types.py", "-"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout
