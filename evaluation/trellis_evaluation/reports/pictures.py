"""The charts of a report, from its content."""

from collections.abc import Sequence
from dataclasses import dataclass

from trellis_contracts.evaluation import Score

from trellis_evaluation.reports.charts import (
    COLOURS,
    Bar,
    BarGroup,
    Line,
    Shape,
    draw_bars,
    draw_history,
    draw_radar,
)
from trellis_evaluation.reports.content import (
    BenchmarkSection,
    Breakdown,
    Content,
    Entry,
    find_score,
    is_share,
)
from trellis_evaluation.reports.document import HistoryPoint

#: With more groups a chart is longer than a page; a table shows them instead.
MOST_BARS = 40
#: A radar of fewer axes is a line.
_LEAST_AXES = 3


@dataclass(frozen=True)
class HistoryPicture:
    """The development of one benchmark's metric."""

    label: str
    metric: str
    svg: str


def draw_scores(content: Content) -> str | None:
    """Draw every benchmark's headline score with a bar per evaluation; None if none is a fraction."""
    title = content.texts("chart_scores")
    if len(content.entries) == 1:
        bars = [
            _bar(section.label, find_score(section.results[0], section.headline), content.entries[0])
            for section in content.sections
        ]
        return _draw([BarGroup("", [bar for bar in bars if bar])], title)
    groups = [
        BarGroup(section.label, _entry_bars(content.entries, _headlines(section)))
        for section in content.sections
    ]
    return _draw(groups, title)


def draw_overview(content: Content) -> str | None:
    """Draw all benchmarks whose headline score is a fraction as a radar, if there are enough."""
    sections = [
        section for section in content.sections if all(map(is_share, filter(None, _headlines(section))))
    ]
    if len(sections) < _LEAST_AXES:
        return None
    shapes = [
        Shape(
            entry.label,
            [score.value if score else None for score in _column(sections, index)],
            entry.colour,
        )
        for index, entry in enumerate(content.entries)
    ]
    return draw_radar([section.label for section in sections], shapes, content.texts("radar"))


def draw_breakdown(content: Content, section: BenchmarkSection, breakdown: Breakdown) -> str | None:
    """Draw one kind of group as bars; None if there are too many."""
    bars = sum(1 for _, scores in breakdown.rows for score in scores if score)
    if bars > MOST_BARS:
        return None
    kind = content.texts.name("kind_names", breakdown.kind)
    title = f"{section.label}: {content.texts('breakdown', kind=kind)}"
    if len(content.entries) == 1:
        found = [_bar(name, scores[0], content.entries[0]) for name, scores in breakdown.rows]
        return _draw([BarGroup("", [bar for bar in found if bar])], title)
    groups = [BarGroup(name, _entry_bars(content.entries, scores)) for name, scores in breakdown.rows]
    return _draw(groups, title)


def draw_histories(content: Content) -> list[HistoryPicture]:
    """Draw one picture per benchmark and metric."""
    by_metric: dict[tuple[str, str], list[HistoryPoint]] = {}
    for point in filter(lambda point: is_share(point.score), content.report.history):
        by_metric.setdefault((point.label, point.metric), []).append(point)
    return [
        HistoryPicture(label, metric, _draw_history(content, label, points))
        for (label, metric), points in by_metric.items()
    ]


def _draw_history(content: Content, label: str, points: list[HistoryPoint]) -> str:
    has_steps = all(point.step is not None for point in points)
    names = list(dict.fromkeys(point.name for point in points))
    series: dict[str, list[HistoryPoint]] = {}
    for point in points:
        series.setdefault(point.series, []).append(point)
    lines = []
    for index, (name, its) in enumerate(series.items()):
        if has_steps:
            its = sorted(its, key=lambda point: point.step or 0)
        x = [float(point.step or 0) if has_steps else float(names.index(point.name)) for point in its]
        scores = [point.score for point in its]
        values, colour = [score.value for score in scores], COLOURS[index % len(COLOURS)]
        bounds = [score.low for score in scores], [score.high for score in scores]
        lines.append(Line(name, x, values, *bounds, colour))
    ticks = None if has_steps else [(float(at), name) for at, name in enumerate(names)]
    texts = content.texts
    title = f"{label}: {texts('history')}"
    return draw_history(lines, ticks, texts("step") if has_steps else texts("version"), title)


def _headlines(section: BenchmarkSection) -> list[Score | None]:
    return [find_score(result, section.headline) for result in section.results]


def _column(sections: Sequence[BenchmarkSection], index: int) -> list[Score | None]:
    return [find_score(section.results[index], section.headline) for section in sections]


def _entry_bars(entries: Sequence[Entry], scores: Sequence[Score | None]) -> list[Bar]:
    bars = [_bar(entry.letter, score, entry) for entry, score in zip(entries, scores, strict=True)]
    return [bar for bar in bars if bar]


def _bar(label: str, score: Score | None, entry: Entry) -> Bar | None:
    return Bar(label, score.value, score.low, score.high, entry.colour) if score and is_share(score) else None


def _draw(groups: Sequence[BarGroup], title: str) -> str | None:
    shown = [group for group in groups if group.bars]
    return draw_bars(shown, title) if shown else None
