"""Charts of reports as SVG that stands inside a page: text stays text, nothing is loaded.

matplotlib draws them: it has intervals and polar axes, and writes SVG without a browser. Its letters are only
measured here, the page's own fonts show them, so margins are computed from the texts.
"""

import io
import re
import threading
import unicodedata
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

#: Told apart by people who are colour-blind (Okabe & Ito 2008), dark enough for print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a6000", "#56b4e9", "#8c2d04", "#4d4d4d")
WIDTH = 680.0
_INCH = 72.0
_GREY, _INK = "#d9dde3", "#1c2733"
_ROW, _TITLE_ROW = 19.0, 25.0
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "trellis",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # A dollar in a benchmark's or group's name is a dollar.
    "text.parse_math": False,
    # Our pages have this character in every font, and a screen reader says it.
    "axes.unicode_minus": False,
}
#: What matplotlib would write into the file about itself and the day.
_METADATA = ("Creator", "Date", "Format", "Type")
#: Settings of matplotlib are the process's.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Bar:
    """A value of 0 to 1 with its interval."""

    label: str
    value: float
    low: float | None
    high: float | None
    colour: str = COLOURS[0]


@dataclass(frozen=True)
class BarGroup:
    """Bars under a heading of their own, or under none."""

    heading: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Shape:
    """One evaluation in a radar: a value of 0 to 1 for each axis, None where it was not measured."""

    label: str
    values: Sequence[float | None]
    colour: str


@dataclass(frozen=True)
class Line:
    """A series over time: where each point stands, its value and interval."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    colour: str


def draw_bars(groups: Sequence[BarGroup], title: str) -> str:
    """Draw horizontal bars on an axis of 0 to 100 %, with whiskers and the numbers at the right."""
    rows = sum(len(group.bars) for group in groups)
    headings = sum(1 for group in groups if group.heading)
    height = rows * _ROW + headings * _TITLE_ROW + 34
    labels = [bar.label for group in groups for bar in group.bars]
    left = min(230.0, max(map(text_width, labels), default=0) + 12)
    with _drawing(height) as figure:
        axes = figure.add_axes(_box(left, 24, WIDTH - left - 150, height - 30, height))
        y, ticks = 0.0, []
        for group in groups:
            if group.heading:
                y += _TITLE_ROW / _ROW
                # Above the bars, from the picture's edge.
                axes.annotate(
                    _cut(group.heading, WIDTH - 20), (0, y - 0.74), xytext=(-left + 2, 0),
                    xycoords=("axes fraction", "data"), textcoords="offset points",
                    fontweight="bold", va="center", annotation_clip=False,
                )  # fmt: skip
            for bar in group.bars:
                _draw_bar(axes, bar, y)
                ticks.append((y, _cut(bar.label, left - 10)))
                y += 1
        axes.set_ylim(y - 0.4, -0.6)
        axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
        _percent_axis(axes.xaxis, axes.set_xlim)
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
        return _to_svg(figure, title)


def _draw_bar(axes: "mpl.axes.Axes", bar: Bar, y: float) -> None:
    axes.barh(y, bar.value, height=0.62, color=bar.colour, alpha=0.82, zorder=2)
    numbers = f"{bar.value:.1%}"
    if bar.low is not None and bar.high is not None:
        spread = [[max(0.0, bar.value - bar.low)], [max(0.0, bar.high - bar.value)]]
        axes.errorbar(bar.value, y, xerr=spread, color=_INK, capsize=2.5, linewidth=1, zorder=3)
        numbers += f"  [{bar.low * 100:.1f}, {bar.high * 100:.1f}]"
    axes.annotate(
        numbers, (1, y), xytext=(12, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", va="center", annotation_clip=False,
    )  # fmt: skip


def draw_radar(axes_labels: Sequence[str], shapes: Sequence[Shape], title: str) -> str:
    """Draw one axis per benchmark and one shape per evaluation; unmeasured axes leave a gap."""
    size = 330.0
    angles = np.linspace(0, 2 * np.pi, len(axes_labels), endpoint=False)
    legend = 18 * len(shapes) + 8 if len(shapes) > 1 else 0
    with _drawing(size + legend) as figure:
        room = size - 100
        box = _box((WIDTH - room) / 2, legend + 50, room, room, size + legend)
        axes = figure.add_axes(box, projection="polar")
        axes.set_theta_offset(np.pi / 2)  # type: ignore[attr-defined]
        axes.set_theta_direction(-1)  # type: ignore[attr-defined]
        closed = np.append(angles, angles[0])
        for shape in shapes:
            values = [np.nan if value is None else value for value in shape.values]
            values.append(values[0])
            axes.plot(closed, values, color=shape.colour, linewidth=1.8, marker="o", markersize=3.5)
            if not np.isnan(values).any():
                axes.fill(closed, values, color=shape.colour, alpha=0.1)
        axes.set_ylim(0, 1)
        axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["25", "50", "75", "100 %"], fontsize=8, color="#5b6773")
        axes.set_rlabel_position(180 / len(axes_labels))  # type: ignore[attr-defined]
        axes.set_xticks(angles, [""] * len(angles))
        for angle, label in zip(angles, axes_labels, strict=True):
            across = np.sin(angle)
            side = "center" if abs(across) < 0.2 else "left" if across > 0 else "right"
            axes.text(angle, 1.12, _cut(label, 160), ha=side, va="center")
        axes.grid(color=_GREY)
        axes.spines["polar"].set_color(_GREY)
        _legend(figure, [(shape.label, shape.colour) for shape in shapes], size + legend)
        return _to_svg(figure, title)


def draw_history(
    lines: Sequence[Line], ticks: Sequence[tuple[float, str]] | None, x_title: str, title: str
) -> str:
    """Draw scores over steps or versions, with intervals as bands; ``ticks`` name places without numbers."""
    height = 250.0
    legend = 18 * len(lines) + 8 if len(lines) > 1 else 0
    with _drawing(height + legend) as figure:
        axes = figure.add_axes(_box(48, legend + 44, WIDTH - 70, height - 60, height + legend))
        for line in lines:
            axes.plot(line.x, line.y, color=line.colour, linewidth=1.6, marker="o", markersize=4, zorder=3)
            known = [
                (x, low, high)
                for x, low, high in zip(line.x, line.low, line.high, strict=True)
                if low is not None and high is not None
            ]
            if known:
                at, low, high = zip(*known, strict=True)
                axes.fill_between(at, low, high, color=line.colour, alpha=0.15, linewidth=0)
        _percent_axis(axes.yaxis, axes.set_ylim)
        if ticks is not None:
            room = (WIDTH - 70) / max(1, len(ticks)) - 6
            axes.set_xticks([at for at, _ in ticks], [_cut(label, room) for _, label in ticks])
            # The outermost names end with the picture.
            labels = axes.get_xticklabels()
            if len(labels) > 1:
                labels[0].set_horizontalalignment("left")
                labels[-1].set_horizontalalignment("right")
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(x_title)
        axes.margins(x=0.03)
        _legend(figure, [(line.label, line.colour) for line in lines], height + legend)
        return _to_svg(figure, title)


def text_width(text: str) -> float:
    """Estimate a text's width at the charts' font size, in points; Chinese characters are twice as wide."""
    return sum(10.4 if unicodedata.east_asian_width(each) in "WF" else 6.0 for each in text)


def _cut(text: str, room: float) -> str:
    """Cut a label to the room there is."""
    text = " ".join(text.split())
    if text_width(text) <= room:
        return text
    while text and text_width(text) > room - 10:
        text = text[:-1]
    return text.rstrip() + "…"


def _percent_axis(axis: "mpl.axis.Axis", set_limits: object) -> None:
    set_limits(0, 1)  # type: ignore[operator]
    axis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
    axis.grid(color=_GREY, linewidth=0.7, zorder=0)


def _legend(figure: Figure, entries: Sequence[tuple[str, str]], height: float) -> None:
    """Draw the legend below the chart, one line per entry; a single entry needs none."""
    if len(entries) < 2:
        return
    for row, (label, colour) in enumerate(reversed(entries)):
        y = (8 + 18 * row) / height
        figure.text(60 / WIDTH, y, "●", color=colour, va="baseline")
        figure.text(76 / WIDTH, y, _cut(label, WIDTH - 100), va="baseline")


def _box(
    left: float, bottom: float, width: float, height: float, total: float
) -> tuple[float, float, float, float]:
    return left / WIDTH, bottom / total, width / WIDTH, height / total


class _drawing:
    """A figure of the charts' width under their settings."""

    def __init__(self, height: float) -> None:
        self._height = height

    def __enter__(self) -> Figure:
        _ONE_AT_A_TIME.acquire()
        self._context = mpl.rc_context(_STYLE)  # type: ignore[arg-type]
        self._context.__enter__()
        return Figure(figsize=(WIDTH / _INCH, self._height / _INCH), dpi=_INCH)

    def __exit__(self, *error: object) -> None:
        try:
            self._context.__exit__(*error)  # type: ignore[arg-type]
        finally:
            _ONE_AT_A_TIME.release()


def _to_svg(figure: Figure, title: str) -> str:
    """Render the figure as an SVG element with a label for screen readers and unique ids."""
    file = io.StringIO()
    with warnings.catch_warnings():
        # The page's fonts have the characters that the measuring font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format="svg", transparent=True, metadata=dict.fromkeys(_METADATA))
    drawn = file.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<(metadata|style)\b.*?</\1>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<!--.*?-->", "", drawn, flags=re.DOTALL)
    prefix = f"c{zlib.crc32((drawn + title).encode()):x}-"
    drawn = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{prefix}", drawn)
    head = f'<svg role="img" aria-label="{escape(title, quote=True)}" '
    return drawn.replace("<svg ", head, 1).strip()
