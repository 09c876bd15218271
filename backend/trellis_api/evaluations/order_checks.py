"""What can be wrong with one order: each check yields (code, field, message), and runs nothing."""

import json
import re
from collections.abc import Iterator

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from trellis_contracts.evaluation import (
    AnyOrder,
    ChoiceScorer,
    CodeScorer,
    CustomOrder,
    CustomScorer,
    JsonScorer,
    JudgeScorer,
    MathOrder,
    MmluOrder,
    RegexScorer,
)
from trellis_contracts.row_formats import PROMPT_COLUMNS
from trellis_recipes.rewards import find_pattern_problem

from trellis_api.datasets.view import DatasetView

#: Code, field within the order, and an English sentence.
Problem = tuple[str, str, str]
_SHOWN_NAMES = 30
#: As the benchmark itself fills templates in: ``{{`` and ``}}`` stand for braces.
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")
_NAME = re.compile(r"\w+")


def check_form(order: AnyOrder, groups: dict[str, list[str]]) -> Iterator[Problem]:
    """Yield the settings that contradict each other, and the names that the benchmark's problems lack."""
    if order.system is not None and order.chat == "never":
        yield (
            "system_without_chat",
            "system",
            "A system message requires the chat template, but 'chat' is never.",
        )
    if isinstance(order, MathOrder):
        yield from _check_names("type", "types", order.types, groups)
    if isinstance(order, MmluOrder):
        yield from _check_names("subject", "subjects", order.subjects, groups)
    if isinstance(order, CustomOrder):
        yield from _check_scorer_form(order.scorer)


def check_columns(order: CustomOrder, dataset: DatasetView) -> Iterator[Problem]:
    """Yield a problem for each column that the order names or needs and the rows don't have."""
    names = {column["name"] for column in dataset.columns}
    wanted = {f"columns.{role}": name for role, name in order.columns.items()}
    if order.group_column is not None:
        wanted["group_column"] = order.group_column
    if isinstance(order.scorer, ChoiceScorer):
        wanted["scorer.choices_column"] = order.scorer.choices_column
    if isinstance(order.scorer, JudgeScorer) and order.scorer.human_column is not None:
        wanted["scorer.human_column"] = order.scorer.human_column
    for field, name in wanted.items():
        if name not in names:
            yield "unknown_column", field, f"No column '{name}' in the data; available: {_list(names)}."
    if order.template is not None:
        yield from _check_template(order.template, names)
    elif "prompt" not in order.columns and not _finds_prompt(dataset, names):
        message = f"Couldn't detect the prompt column. Choose one of {_list(names)}, or provide a template."
        yield "prompt_unknown", "columns.prompt", message


def _finds_prompt(dataset: DatasetView, names: set[str]) -> bool:
    """Tell whether the rows hold the prompt, as the import found or under one of the usual names."""
    return "prompt" in dataset.format_columns or bool(names & {"messages", *PROMPT_COLUMNS})


def _check_names(
    kind: str, field: str, asked: list[str] | None, groups: dict[str, list[str]]
) -> Iterator[Problem]:
    if asked is None:
        return
    if not asked:
        yield "nothing_chosen", field, f"An empty list of {field} selects no problems; omit it to use all."
    known = groups.get(kind, [])
    if unknown := [name for name in asked if name not in known]:
        message = f"Unknown {kind} '{unknown[0]}'; available: {_list(known)}."
        yield f"unknown_{kind}", field, message


def _check_template(template: str, names: set[str]) -> Iterator[Problem]:
    """Check the names in braces against the columns; other braces, as in formulas, stay as they are."""
    fields = [name for name in _FIELD.findall(template) if name]
    named = [name for name in dict.fromkeys(fields) if name in names]
    if not named:
        yield (
            "bad_template",
            "template",
            "The template contains no column, so all prompts would be identical.",
        )
    for name in dict.fromkeys(fields):
        if name not in names and _NAME.fullmatch(name) and not name.isdecimal():
            message = f"The template uses '{name}', but the data has {_list(names)}."
            yield "unknown_column", "template", message


def _check_scorer_form(scorer: CustomScorer) -> Iterator[Problem]:
    if isinstance(scorer, RegexScorer):
        problem = find_pattern_problem(scorer.pattern)
        if problem:
            yield "bad_pattern", "scorer.pattern", f"Invalid regular expression: {problem}."
    if isinstance(scorer, JsonScorer):
        yield from _check_schema(scorer)
    if isinstance(scorer, JudgeScorer) and scorer.form == "rubric" and not scorer.rubric.strip():
        yield "rubric_missing", "scorer.rubric", "A rubric judge requires a rubric."
    if isinstance(scorer, CodeScorer) and scorer.version not in (None, 1):
        message = "The code of a reward file never changes: its only version is 1."
        yield "unknown_version", "scorer.version", message


def _check_schema(scorer: JsonScorer) -> Iterator[Problem]:
    if scorer.schema_text is None:
        if not scorer.equals_answer:
            message = "Nothing to check: provide a schema, or require the answer to equal the reference."
            yield "nothing_checked", "scorer", message
        return
    try:
        schema = json.loads(scorer.schema_text)
    except (ValueError, RecursionError) as error:
        yield "bad_schema", "scorer.schema_text", f"The schema is not valid JSON: {error}."
        return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield "bad_schema", "scorer.schema_text", f"Not a valid JSON Schema: {error.message[:300]}."
    except (RecursionError, OverflowError) as error:  # of its patterns, too
        yield "bad_schema", "scorer.schema_text", f"Not a valid JSON Schema: {error}."


def _list(names: set[str] | list[str]) -> str:
    shown = sorted(names)[:_SHOWN_NAMES]
    return ", ".join(shown) + (" …" if len(names) > len(shown) else "") if shown else "none"
