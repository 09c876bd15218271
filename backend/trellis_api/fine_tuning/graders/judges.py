"""A ``score_model`` grader as the reward of a judge that is set up on the platform."""

import re
from typing import Any

from trellis_api.core.settings import Settings
from trellis_api.fine_tuning.errors import GraderUnsupported
from trellis_api.fine_tuning.graders.schemas import InputText, JudgeMessage, ScoreModel

_HOLE = re.compile(r"\{\{\s*([\w.\[\]]+)\s*\}\}")
#: What a judge's template may show of a response, by the names that clients know.
_SHOWN = {
    "sample.output_text": "{response}",
    "item.reference_answer": "{answer}",
    "item.messages": "{prompt}",
    "item.prompt": "{prompt}",
}


def build_judge(grader: ScoreModel, settings: Settings, *, weight: float, place: str) -> dict[str, Any]:
    """Build a judge's term of the mixture; judges grade from 0 to 1, so the range goes into the weight."""
    if grader.model not in settings.judges:
        known = ", ".join(sorted(settings.judges)) or "none configured (TRELLIS_JUDGES)"
        raise _refuse(f"{place}.model", f"there is no judge '{grader.model}'; judges: {known}")
    chosen = grader.sampling_params.model_dump(exclude_none=True) if grader.sampling_params else {}
    for name in chosen:
        raise _refuse(
            f"{place}.sampling_params.{name}", f"'{name}' cannot be chosen: judges answer at temperature 0"
        )
    lowest, highest = grader.range or (0.0, 1.0)
    if lowest >= highest or not (float(lowest).is_integer() and float(highest).is_integer()):
        raise _refuse(f"{place}.range", "the range must be two whole numbers, the lower one first")
    template = "\n\n".join(_write(message, f"{place}.input.{at}") for at, message in enumerate(grader.input))
    options = {
        "endpoint": grader.model,
        "template": template,
        "lowest": int(lowest),
        "highest": int(highest),
    }
    return {"name": "judge", "weight": weight * (highest - lowest), "options": options}


def _write(message: JudgeMessage, place: str) -> str:
    content = message.content
    parts = [content] if isinstance(content, str | InputText) else content
    text = "".join(part if isinstance(part, str) else part.text for part in parts)
    return f"{message.role}:\n{_fit(text, place)}"


def _fit(text: str, place: str) -> str:
    """Convert the text to a template of ours: braces doubled, placeholders under our names."""
    written, end = [], 0
    for hole in _HOLE.finditer(text):
        shown = _SHOWN.get(hole.group(1))
        if shown is None:
            raise _refuse(
                place, f"'{hole.group()}' is not supported in a judge's input; there are {', '.join(_SHOWN)}"
            )
        written += [_escape(text[end : hole.start()]), shown]
        end = hole.end()
    return "".join([*written, _escape(text[end:])])


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _refuse(param: str, problem: str) -> GraderUnsupported:
    return GraderUnsupported(f"{param}: {problem}.", {"param": param})
