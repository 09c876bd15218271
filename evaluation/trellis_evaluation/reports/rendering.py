"""Renders a report as Markdown and as one HTML file that opens without a network."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from trellis_contracts.evaluation import Score

from trellis_evaluation.comparison import Comparison
from trellis_evaluation.reports import pictures
from trellis_evaluation.reports.content import (
    Content,
    build_content,
    clean,
    flatten_manifest,
    is_share,
    verdicts,
)
from trellis_evaluation.reports.document import Language, ReportInput
from trellis_evaluation.reports.texts import read_texts

_TEMPLATES = Path(__file__).parent / "templates"
_BAR_CELLS = 20


def render_html(report: ReportInput, language: Language) -> str:
    """Render one page: escaped texts, embedded charts, a policy against loading anything, printable on A4."""
    content = _build(report, language)
    environment = _environment(autoescape=True)
    template = environment.get_template("report.html.jinja")
    return template.render(
        **_values(content),
        css=_safe((_TEMPLATES / "report.css").read_text("utf-8")),
        scores_chart=_safe(pictures.draw_scores(content)),
        radar=_safe(pictures.draw_overview(content)),
        histories=[(each, _safe(each.svg)) for each in pictures.draw_histories(content)],
        draw_breakdown=lambda section, breakdown: _safe(pictures.draw_breakdown(content, section, breakdown)),
    )


def render_markdown(report: ReportInput, language: Language) -> str:
    """Render tables and text bars; the model's output is in fenced blocks."""
    content = _build(report, language)
    text = _environment(autoescape=False).get_template("report.md.jinja").render(**_values(content))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _build(report: ReportInput, language: Language) -> Content:
    content = build_content(report, read_texts(language))
    content.summary = [_summarise(content, each.a, each.b, each.comparison) for each in report.comparisons]
    if not content.summary:
        content.summary = list(_list_scores(content))
    return content


def _summarise(content: Content, a: str, b: str, found: Comparison) -> str:
    """Summarize one comparison in a sentence."""
    texts, names = content.texts, {"a": content.entry(a).label, "b": content.entry(b).label}
    benchmark = f"{found.label} ({texts.name('metric_names', found.metric)})"
    if found.obstacle:
        obstacle = texts.name("obstacles", found.obstacle)
        return texts("summary_unpaired", benchmark=benchmark, obstacle=obstacle, **names)
    p = "" if found.p_value is None else _p_value(found.p_value)
    p = p if p.startswith("<") else f"= {p}"
    difference = _points(found.difference, found)
    shared = {"benchmark": benchmark, "p": p, "pairs": str(found.pairs)}
    if not found.is_significant or found.low is None or found.high is None:
        return texts("summary_equal", difference=difference, **names, **shared)
    is_b_better = found.difference > 0
    sign = 1 if is_b_better else -1
    ends = sorted((sign * found.low, sign * found.high))
    return texts(
        "summary_better",
        better=names["b" if is_b_better else "a"],
        worse=names["a" if is_b_better else "b"],
        difference=_points(abs(found.difference), found),
        low=_points(ends[0], found),
        high=_points(ends[1], found),
        **shared,
    )


def _list_scores(content: Content) -> Iterator[str]:
    """Yield each benchmark's headline score as a line of text."""
    for section in content.sections:
        scores = dict(section.scores).get(section.headline) or []
        for entry, score in zip(content.entries, scores, strict=False):
            if score is not None:
                interval = _interval(score)
                yield content.texts(
                    "summary_score",
                    benchmark=section.label,
                    target=entry.evaluation.target,
                    score=f"{_number(score)} [{interval}]" if interval else _number(score),
                    metric=content.texts.name("metric_names", section.headline),
                )


def _values(content: Content) -> dict[str, object]:
    return {
        "content": content,
        "report": content.report,
        "texts": content.texts,
        "verdicts": verdicts(),
        "flatten": flatten_manifest,
        "whole_manifests": [
            json.dumps(entry.evaluation.manifest, ensure_ascii=False, indent=2, sort_keys=True)
            for entry in content.entries
        ],
    }


def _environment(*, autoescape: bool) -> Environment:
    # Markdown has an escaping of its own, in the filters below.
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=autoescape,  # noqa: S701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=_number,
        percent=_percent, points=_points, interval=_interval, bar=_bar, cell=_cell, fence=_fence,
        duration=_duration, p_value=_p_value, day=_day, clean=clean,
    )  # fmt: skip
    return environment


def _safe(svg: str | None) -> Markup | None:
    """Mark our own style sheet or a chart, whose texts are escaped, as safe HTML."""
    return None if svg is None else Markup(svg)  # noqa: S704


def _number(score: Score) -> str:
    """Format a score, as percent if it is a fraction."""
    return f"{score.value:.1%}" if is_share(score) else f"{score.value:.4g}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _points(value: float, comparison: Comparison) -> str:
    """Format a difference with its sign: of percentages in points, of other scores as it is."""
    shares = is_share(comparison.a) and is_share(comparison.b)
    said = f"{value * 100:+.1f}" if shares else f"{value:+.4g}"
    return said.replace("-", "−")


def _interval(score: Score) -> str:
    if score.low is None or score.high is None:
        return ""
    if not is_share(score):
        return f"{score.low:.4g}–{score.high:.4g}"
    return f"{score.low * 100:.1f}–{score.high * 100:.1f}"


def _bar(score: Score) -> str:
    if not is_share(score):
        return ""
    filled = round(score.value * _BAR_CELLS)
    return "█" * filled + "░" * (_BAR_CELLS - filled)


def _cell(value: object) -> str:
    """Format any text as one Markdown table cell: one line, with Markdown and HTML escaped."""
    text = " ".join(clean(str(value)).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]#|~$!])", r"\\\1", text)


def _fence(text: str) -> str:
    """Wrap a text in a code fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean(text)}\n{fence}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _day(moment: object) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""
