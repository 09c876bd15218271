"""Rows checked against a JSON Schema."""

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem, Params, RowOperator, parameter
from trellis_data.outcome import Outcome, dropping
from trellis_data.row_texts import is_text

_NUMBER = re.compile(r"/\d+(?=/|$)")


class JsonSchemaParams(Params):
    """What rows have to be like."""

    rules: dict[str, Any] = parameter(
        ...,
        title=Text(en="JSON Schema", zh="JSON 模式"),
        help=Text(
            en="The schema (draft 4 to 2020-12) every row must match. Remote references are not resolved.",
            zh="每一行都必须满足的模式（draft 4 至 2020-12）。不会访问外部引用地址。",
        ),
    )
    column: str | None = parameter(
        None,
        title=Text(en="Column", zh="列"),
        help=Text(
            en="Column to validate; text is parsed as JSON. Leave empty to validate the whole row.",
            zh="检查该列的值；文本将按 JSON 解析。留空则检查整行。",
        ),
    )
    ignore_nulls: bool = parameter(
        True,
        title=Text(en="Ignore nulls", zh="空值视为缺失"),
        help=Text(
            en="Fields missing in a row are stored as null; this removes them before validation.",
            zh="仅其他行具有的字段在表中为空值：检查前将其去除。",
        ),
    )


class JsonSchema(RowOperator):
    """Drops rows that do not fulfil a schema; the reason names the path."""

    id = "json_schema"
    group = "clean"
    title = Text(en="JSON Schema", zh="JSON Schema 校验")
    help = Text(
        en="Drops rows that don't match a JSON Schema and reports the failing field.",
        zh="删除不满足 JSON Schema 的行；原因中给出字段路径。",
    )
    Params = JsonSchemaParams
    params: JsonSchemaParams

    def __init__(self, params: JsonSchemaParams, context: Context) -> None:
        super().__init__(params, context)
        self._validator = _validator(params.rules)

    def check(self, schema: pa.Schema, layout: Layout) -> None:  # noqa: ARG002 - the interface
        """Check that the schema is valid and the column exists."""
        if self.params.column is not None and self.params.column not in schema.names:
            raise OperatorProblem("column_missing", f"There is no column '{self.params.column}'.")
        _validator(self.params.rules)

    def apply(self, batch: Batch) -> Outcome:
        """Drop the rows whose first error is at some path."""
        outcome = dropping(batch.table, {})
        for index, value in enumerate(self._values(batch.table)):
            if value is _UNREADABLE:
                outcome.reasons[index] = "not_json"
            elif not self._validator.is_valid(value):
                outcome.reasons[index] = self._reason(value)
            else:
                continue
            outcome.keep[index] = False
        return Outcome(
            batch.table.filter(pa.array(outcome.keep)), outcome.keep, outcome.changed, outcome.reasons
        )

    def _values(self, table: pa.Table) -> Iterator[Any]:
        name = self.params.column
        if name is None:
            values = iter(table.to_pylist())
        elif is_text(table.schema.field(name).type):
            return map(_parse, table.column(name).to_pylist())
        else:
            values = iter(table.column(name).to_pylist())
        ready = map(_plain, values) if _has_other_types(table.schema) else values
        return map(_without_nulls, ready) if self.params.ignore_nulls else ready

    def _reason(self, value: Any) -> str:
        """Describe the first violated rule and its place, with all positions in a list as one place."""
        error = next(self._validator.iter_errors(value))
        path = "".join(f"/{part}" for part in error.instance_path)
        rule = error.schema_path[-1] if error.schema_path else "false"
        return f"schema:{_NUMBER.sub('/*', path) or '/'}:{rule}"[:200]


_UNREADABLE = object()


def _validator(rules: dict[str, Any]) -> Any:
    import jsonschema_rs

    try:
        # Patterns come from outside: only those that match in linear time, and nothing is fetched.
        return jsonschema_rs.validator_for(
            rules, offline=True, pattern_options=jsonschema_rs.RegexOptions(size_limit=1_000_000)
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise OperatorProblem("schema_invalid", f"The JSON Schema itself is not valid: {said}") from None


def _parse(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _UNREADABLE


def _has_other_types(schema: pa.Schema) -> bool:
    """Return whether values may be of types that JSON does not have: times, decimals, bytes."""
    return any(re.search(r"binary|time|date|duration|decimal|map", str(field.type)) for field in schema)


def _plain(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
