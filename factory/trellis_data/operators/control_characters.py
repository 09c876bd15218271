"""Characters that nobody sees: control, zero-width, direction marks, private use; and broken ones."""

import re
from collections import Counter
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch
from trellis_data.operator import TextParams, parameter
from trellis_data.operators.text_operator import TextOperator, over_rows, replace_lines, rewritten
from trellis_data.outcome import Outcome

Kind = Literal["control", "zero_width", "direction", "private_use"]
#: Escape sequences of terminals go as a whole; tabs and line ends stay.
_CLASSES: dict[Kind, str] = {
    "control": r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    "zero_width": r"[\u{200b}\u{2060}-\u{2064}\u{feff}\u{180e}\u{00ad}]",
    "direction": r"[\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]",
    "private_use": r"[\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}]",
}
_JOINERS = ["\u200c", "\u200d"]
#: Joiners mean something after letters of Arabic, Indic and neighbouring scripts, and within emoji.
_IDLE_JOINER = re.compile(
    "(?<![\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\u2190-\u2bff\ufb50-\ufdff\ufe0f\ufe70-\ufefc"
    "\U0001f000-\U0001faff])[\u200c\u200d]+"
)


class ControlCharactersParams(TextParams):
    """Which characters go."""

    old_names: ClassVar = {"largest_share": "max_ratio"}

    remove: list[Kind] = parameter(
        ["control", "zero_width", "direction", "private_use"],
        title=Text(en="Remove", zh="移除"),
        help=Text(
            en="Control characters and terminal sequences (except tabs and newlines), "
            "zero-width characters (except joiners needed by scripts or emoji), direction "
            "marks, private-use characters.",
            zh="控制字符与终端转义序列（保留制表符和换行）、零宽字符（保留文字或表情所需的连接符）、"
            "方向标记、私有区字符。",
        ),
    )
    max_ratio: float | None = parameter(
        0.05,
        ge=0,
        le=1,
        title=Text(en="Max share of garbled characters", zh="损坏字符的最大占比"),
        help=Text(
            en="Drops rows with a larger share of control, private-use or replacement "
            "characters (�), a sign of wrong decoding. Leave empty to disable.",
            zh="若控制字符、私有区字符和替换字符（�）占比超过该值则删除该行：文本解码有误。留空则不删除。",
        ),
    )


class ControlCharacters(TextOperator):
    """Removes what nobody sees; drops what is broken."""

    id = "control_characters"
    group = "clean"
    title = Text(en="Invisible characters", zh="不可见字符")
    help = Text(
        en="Removes control, zero-width and private-use characters and drops garbled rows.",
        zh="移除控制字符、零宽字符和私有区字符；删除损坏字符过多的行。",
    )
    Params = ControlCharactersParams
    params: ControlCharactersParams

    def apply(self, batch: Batch) -> Outcome:
        """Count control characters, drop rows by their share, then remove them."""
        frame = self.texts(batch)
        texts = frame["text"]
        counts: Counter[str] = Counter()
        new = texts
        for kind in self.params.remove:
            hit = texts.str.contains(_CLASSES[kind])
            if hit.any():
                counts[kind] = int(texts.filter(hit).str.count_matches(_CLASSES[kind]).sum())
                new = new.str.replace_all(_CLASSES[kind], "")
        if "zero_width" in self.params.remove:
            joined = new.str.contains_any(_JOINERS)
            before = int(new.str.len_chars().sum())
            new = replace_lines(new, joined, lambda text: _IDLE_JOINER.sub("", text))
            counts["zero_width"] += before - int(new.str.len_chars().sum())
        return rewritten(batch, frame, new, drop=self._broken(batch, frame), counts=+counts)

    def _broken(self, batch: Batch, frame: pl.DataFrame) -> dict[str, np.ndarray]:
        if self.params.max_ratio is None:
            return {}
        broken = "|".join((_CLASSES["control"], _CLASSES["private_use"], r"\u{fffd}"))
        sizes = over_rows(batch, frame, frame["text"].str.len_chars())
        hits = over_rows(batch, frame, frame["text"].str.count_matches(broken))
        return {"broken_characters": hits > self.params.max_ratio * sizes}
