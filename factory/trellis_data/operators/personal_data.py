"""Personal data and secrets in texts: masked, or a reason to drop a row."""

from collections import Counter
from typing import Self

import numpy as np
import polars as pl
from pydantic import model_validator
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch
from trellis_data.operator import TextParams, parameter
from trellis_data.operators.personal_patterns import HINTS, WORDS, Kind, Span, find_personal
from trellis_data.operators.text_operator import TextOperator, rewritten
from trellis_data.outcome import Outcome

#: What stands in their place.
MARKS: dict[Kind, str] = {
    "key": "KEY",
    "email": "EMAIL",
    "resident_id": "ID_NUMBER",
    "bank_card": "BANK_CARD",
    "ip": "IP_ADDRESS",
    "phone": "PHONE",
}
_ALL: list[Kind] = list(MARKS)


class PersonalDataParams(TextParams):
    """What counts as personal and what becomes of it."""

    mask: list[Kind] = parameter(
        _ALL,
        title=Text(en="Mask", zh="打码"),
        help=Text(
            en="Replace these with a placeholder such as [EMAIL]: e-mail addresses, phone "
            "numbers, Chinese resident ID numbers, bank card numbers, IP addresses, keys "
            "and tokens.",
            zh="将以下内容替换为 [EMAIL] 等标记：电子邮箱、电话号码、居民身份证号、银行卡号、IP 地址、"
            "密钥与令牌。",
        ),
    )
    drop: list[Kind] = parameter(
        [],
        title=Text(en="Drop", zh="删除"),
        help=Text(en="Drop rows that contain any of these.", zh="删除含有以下内容的行。"),
    )
    numbered: bool = parameter(
        False,
        title=Text(en="Number placeholders", zh="标记编号"),
        help=Text(
            en="[EMAIL_1], [EMAIL_2]: the same address gets the same number within a row, so "
            "references stay consistent.",
            zh="[EMAIL_1]、[EMAIL_2]：同一行内相同内容编号相同，便于区分不同对象。",
        ),
    )
    regions: list[str] = parameter(
        ["CN", "US"],
        title=Text(en="Phone number countries", zh="电话号码所属国家"),
        help=Text(
            en="Countries (ISO 3166, e.g. CN and US) whose phone numbers are detected without "
            "an international prefix.",
            zh="无需 +44 等国际区号即可识别其号码的国家（ISO 3166 代码，如 CN、US）。",
        ),
    )
    private_addresses: bool = parameter(
        False,
        title=Text(en="Include private IP addresses", zh="包含内网 IP"),
        help=Text(
            en="Also match 127.0.0.1, 192.168.1.1 and so on, which don't identify anyone.",
            zh="也包含 127.0.0.1、192.168.1.1 等不指向任何人的地址。",
        ),
    )

    @model_validator(mode="after")
    def _check_kinds(self) -> Self:
        if not self.mask and not self.drop:
            raise ValueError("name what is to be masked or dropped")
        return self


class PersonalData(TextOperator):
    """Masks or drops personal data."""

    id = "personal_data"
    group = "clean"
    title = Text(en="Personal data", zh="个人信息")
    help = Text(
        en="Masks e-mail addresses, phone numbers, ID numbers, bank card numbers, IP "
        "addresses and keys, or drops rows that contain them.",
        zh="对邮箱、电话、身份证号、银行卡、IP 地址和密钥打码，或删除含有它们的行。",
    )
    Params = PersonalDataParams
    params: PersonalDataParams

    def apply(self, batch: Batch) -> Outcome:
        """Search only lines that may contain personal data, and only for the kinds they may contain."""
        frame = self.texts(batch)
        kinds = [kind for kind in _ALL if kind in {*self.params.mask, *self.params.drop}]
        hints = np.array([_may_hold(frame["text"], kind) for kind in kinds])
        lines = np.flatnonzero(hints.any(axis=0))
        found = frame[lines].sort("row", "turn", maintain_order=True)
        order = (
            frame[lines].with_row_index("place").sort("row", "turn", maintain_order=True)["place"].to_numpy()
        )
        counts: Counter[str] = Counter()
        drop = {f"personal:{kind}": np.zeros(len(batch), dtype=bool) for kind in self.params.drop}
        new: list[str] = []
        numbers: dict[tuple[Kind, str], int] = {}
        row_before = -1
        for row, text, line in zip(found["row"], found["text"], lines[order], strict=True):
            if row != row_before:
                numbers, row_before = {}, row
            asked = [kind for index, kind in enumerate(kinds) if hints[index, line]]
            spans = find_personal(
                text,
                asked,
                regions=self.params.regions,
                private_addresses=self.params.private_addresses,
            )
            counts.update(span.kind for span in spans)
            for span in spans:
                if span.kind in self.params.drop:
                    drop[f"personal:{span.kind}"][row] = True
            new.append(self._masked(text, spans, numbers))
        return rewritten(batch, found, pl.Series(new, dtype=pl.String), drop=drop, counts=counts)

    def _masked(self, text: str, spans: list[Span], numbers: dict[tuple[Kind, str], int]) -> str:
        parts, end = [], 0
        for span in spans:
            if span.kind not in self.params.mask:
                continue
            parts += [text[end : span.start], self._mark(span.kind, text[span.start : span.stop], numbers)]
            end = span.stop
        return "".join([*parts, text[end:]])

    def _mark(self, kind: Kind, value: str, numbers: dict[tuple[Kind, str], int]) -> str:
        if not self.params.numbered:
            return f"[{MARKS[kind]}]"
        key = (kind, value.lower())
        if key not in numbers:
            numbers[key] = 1 + sum(known == kind for known, _ in numbers)
        return f"[{MARKS[kind]}_{numbers[key]}]"


def _may_hold(texts: pl.Series, kind: Kind) -> np.ndarray:
    """Mark the texts that are worth a search for that kind of personal data."""
    if kind not in WORDS:
        return texts.str.contains(HINTS[kind]).to_numpy()
    found = texts.str.contains_any(WORDS[kind], ascii_case_insensitive=True).to_numpy().copy()
    at = np.flatnonzero(found)
    found[at] = texts.gather(at).str.contains(HINTS[kind]).to_numpy()
    return found
