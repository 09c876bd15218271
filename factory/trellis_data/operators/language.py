"""Which language a row is in; rows of others are dropped."""

from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import field_validator
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem, TextParams, parameter
from trellis_data.operators.language_detection import CODES, UNKNOWN, LanguageDetection
from trellis_data.operators.text_operator import CODE, TextOperator, put
from trellis_data.operators.urls import URL
from trellis_data.outcome import Outcome, dropping
from trellis_data.row_texts import row_texts

#: TeX: between dollars or brackets, and single commands.
_FORMULA = r"(?s)\$\$.*?\$\$|\$[^$\n]*\$|\\\[.*?\\\]|\\\(.*?\\\)|\\[a-zA-Z]+"


class LanguageParams(TextParams):
    """Which languages go on."""

    old_names: ClassVar = {"least_confidence": "min_confidence"}

    keep: list[str] = parameter(
        [],
        title=Text(en="Keep", zh="保留"),
        help=Text(
            en="Language codes to keep (ISO 639-1, e.g. zh and en). Leave empty to keep all.",
            zh="语言代码（ISO 639-1，如 zh、en）；其他语言的行将被删除。留空则全部保留。",
        ),
    )
    drop: list[str] = parameter(
        [],
        title=Text(en="Drop", zh="删除"),
        help=Text(en="Language codes to drop.", zh="要删除的语言代码。"),
    )
    min_confidence: float = parameter(
        0.0,
        ge=0,
        le=1,
        title=Text(en="Min confidence", zh="最低置信度"),
        help=Text(
            en="Drops rows with a lower language confidence.", zh="语言判定置信度低于该值的行将被删除。"
        ),
    )
    keep_unknown: bool = parameter(
        True,
        title=Text(en="Keep rows without a language", zh="保留无语言的行"),
        help=Text(
            en="Formulas, numbers and code have no language. If off, such rows are dropped.",
            zh="公式、数字和代码不属于任何语言；关闭则删除这类行。",
        ),
    )
    candidates: list[str] = parameter(
        sorted(CODES),
        min_length=2,
        title=Text(en="Candidates", zh="候选语言"),
        help=Text(
            en="Languages to choose from. Fewer are faster and more accurate.",
            zh="参与判定的语言；越少越快、越准。",
        ),
    )
    characters: int = parameter(
        300,
        ge=50,
        le=5000,
        title=Text(en="Sample length", zh="检查的字符数"),
        help=Text(
            en="Number of characters at the start of a row used for detection.",
            zh="依据每行开头的这些字符判断语言。",
        ),
    )
    column: str | None = parameter(
        None,
        title=Text(en="Output column", zh="写入列"),
        help=Text(
            en="Column for the detected language code. Leave empty for none.",
            zh="写入语言代码的列名。留空则不写。",
        ),
    )

    @field_validator("keep", "drop", "candidates")
    @classmethod
    def _check_codes(cls, codes: list[str]) -> list[str]:
        unknown = [code for code in codes if code not in CODES]
        if unknown:
            raise ValueError(f"unknown: {', '.join(unknown)}; known are {', '.join(sorted(CODES))}")
        return codes


class Language(TextOperator):
    """Tells the language of each row; scripts and common words decide most rows, lingua the others."""

    id = "language"
    group = "clean"
    title = Text(en="Language", zh="语言")
    help = Text(
        en="Detects each row's language, filters by it, and optionally writes it to a column.",
        zh="识别每行的语言，据此保留或删除，并可写入列。",
    )
    Params = LanguageParams
    params: LanguageParams

    def __init__(self, params: LanguageParams, context: Context) -> None:
        super().__init__(params, context)
        self._detection = LanguageDetection(sorted({*params.candidates, *params.keep, *params.drop}))

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that the column for the language does not exist yet."""
        super().check(schema, layout)
        if self.params.column in schema.names:
            raise OperatorProblem(
                "column_taken", f"Column '{self.params.column}' already exists; choose another name."
            )

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with a column for the language, if one is requested."""
        return schema.append(pa.field(self.params.column, pa.string())) if self.params.column else schema

    def apply(self, batch: Batch) -> Outcome:
        """Decide on a sample of each row without code and addresses."""
        texts = row_texts(batch, self.params.where, self.params.columns)
        # Code and addresses are cut from somewhat more than the sample, so that enough is left of it.
        sample = texts.str.slice(0, self.params.characters * 3)
        sample = sample.str.replace_all(CODE, " ").str.replace_all(URL, " ")
        formulas = np.flatnonzero(sample.str.contains_any(["$", "\\"]).to_numpy())
        sample = put(sample, formulas, sample.gather(formulas).str.replace_all(_FORMULA, " "))
        codes, confidences = self._detection.detect(sample.str.slice(0, self.params.characters))
        drop: dict[str, np.ndarray] = {}
        for code in np.unique(codes):
            if code != UNKNOWN and not self._is_wanted(str(code)):
                drop[f"language:{code}"] = codes == code
        if self.params.min_confidence > 0:
            drop["language_unsure"] = (confidences < self.params.min_confidence) & (codes != UNKNOWN)
        if not self.params.keep_unknown:
            drop["language_unknown"] = codes == UNKNOWN
        table = batch.table
        if self.params.column is not None:
            table = table.append_column(self.params.column, pa.array(codes.tolist(), pa.string()))
        outcome = dropping(table, drop)
        changed = outcome.keep.copy() if self.params.column is not None else outcome.changed
        return replace(outcome, changed=changed, counts=Counter(codes.tolist()))

    def _is_wanted(self, code: str) -> bool:
        return (not self.params.keep or code in self.params.keep) and code not in self.params.drop
