"""The step of a pipeline that brings rows into another format."""

from collections import Counter
from typing import Literal

import numpy as np
import pyarrow as pa
from trellis_contracts.recipe import DataFormat, Text

from trellis_data.formats.convert import Converter
from trellis_data.formats.detection import reading_of, shape_columns
from trellis_data.formats.shapes import Reading, Shape, layout_of
from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem, Params, RowOperator, parameter
from trellis_data.outcome import Outcome


class ConvertParams(Params):
    """Into which format, and how rows are read."""

    target: Shape = parameter(
        Shape.MESSAGES,
        title=Text(en="Target format", zh="目标格式"),
        help=Text(
            en="Output format. Other fields are kept as additional columns.",
            zh="转换后的数据格式；目标格式放不下的内容保留在其他列中。",
        ),
    )
    source: Shape | None = parameter(
        None,
        title=Text(en="Source format", zh="源格式"),
        help=Text(
            en="Input format. Defaults to the dataset's format or the detected one.",
            zh="按何种格式读取；默认为数据集的格式，未知时自动识别。",
        ),
    )
    columns: dict[str, str] = parameter(
        {},
        title=Text(en="Columns", zh="列"),
        help=Text(
            en="Column mapping by role, e.g. prompt or answer, if it can't be detected from the names.",
            zh="当列名无法说明时，指定各角色（如 prompt、answer）对应的列。",
        ),
    )
    answer: Literal["auto", "whole", "gsm8k", "boxed"] | None = parameter(
        None,
        title=Text(en="Final answer", zh="最终答案"),
        help=Text(
            en="How to extract the final answer: after #### (gsm8k), in \\boxed{} (boxed), "
            "either one or else the full text (auto), or the full text (whole). Defaults "
            "to auto for verl RL and whole otherwise.",
            zh="从解答中提取答案的方式：#### 之后（gsm8k）、\\boxed{} 之内（boxed）、"
            "依次尝试否则取全文（auto）、全文（whole）。默认：verl RL 为 auto，其他格式为 whole。",
        ),
    )


class Convert(RowOperator):
    """Brings rows into another format; those that have no place in it are dropped with the reason."""

    id = "convert"
    group = "convert"
    title = Text(en="Convert format", zh="转换格式")
    help = Text(
        en="Converts between Alpaca, ShareGPT, messages, prompt–answer, preference pairs, "
        "labeled responses, verl and plain text formats.",
        zh="在 Alpaca、ShareGPT、消息、问答、偏好对、带标签回答、verl 文件与纯文本之间转换。",
    )
    Params = ConvertParams
    params: ConvertParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Say what is missing where the rows cannot be read as the source's format."""
        reading = self._reading(schema, layout)
        missing = [name for name in reading.columns.values() if name not in schema.names]
        if missing:
            raise OperatorProblem("column_missing", f"No column '{missing[0]}' to convert from.")

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the target's columns and those that are kept."""
        reading = self._guess(schema)
        return schema if reading is None else self._converter(schema, reading).schema

    def layout_after(self, layout: Layout) -> Layout:  # noqa: ARG002 - whatever it was before
        """Return the layout with the target's columns in their roles."""
        return layout_of(self.params.target)

    def apply(self, batch: Batch) -> Outcome:
        """Convert the rows to the new format."""
        schema = batch.table.schema
        made = self._converter(schema, self._reading(schema, batch.layout)).convert(batch.table)
        keep = np.zeros(len(batch), dtype=bool)
        keep[made.sources] = True
        reasons = {index: problem.code for index, problem in made.problems.items()}
        further = len(made.sources) - int(keep.sum())
        counts = Counter({"rows_added": further}) if further else Counter[str]()
        return Outcome(made.table, keep, keep.copy(), reasons, counts, sources=made.sources)

    def _converter(self, schema: pa.Schema, reading: Reading) -> Converter:
        return Converter(schema, reading, self.params.target, extraction=self.params.answer)

    def _guess(self, schema: pa.Schema) -> Reading | None:
        return self._named(schema) or reading_of(schema, DataFormat.UNKNOWN, {})

    def _named(self, schema: pa.Schema) -> Reading | None:
        """Return the source that the parameters name, or None."""
        shape = self.params.source
        if shape is None:
            return None
        return Reading(shape, self.params.columns or shape_columns(shape, schema) or {})

    def _reading(self, schema: pa.Schema, layout: Layout) -> Reading:
        if named := self._named(schema):
            return named
        reading = reading_of(schema, layout.format, {**layout.columns, **self.params.columns})
        if reading is None:
            raise OperatorProblem(
                "format_unknown",
                f"The columns {', '.join(schema.names[:8])} are of no known format; say which one and which "
                "columns play its roles.",
            )
        return reading
