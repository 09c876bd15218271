"""Schemas of OpenAI's graders."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from trellis_api.code_files.schemas import Code
from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints.openai.messages import Strict

GraderName = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=NO_NUL)]
Template = Annotated[str, StringConstraints(max_length=16_384, pattern=NO_NUL)]
MAX_GRADERS = 16


class StringCheck(Strict):
    """Compare two strings: 1 or 0."""

    type: Literal["string_check"]
    name: GraderName
    input: Template
    reference: Template
    operation: Literal["eq", "ne", "like", "ilike"]


class TextSimilarity(Strict):
    """Similarity of two texts, 0 to 1. Metrics that need a model or a dictionary are rejected."""

    type: Literal["text_similarity"]
    name: GraderName
    input: Template
    reference: Template
    evaluation_metric: str = Field(max_length=64)


class PythonGrader(Strict):
    """Your own ``grade(sample, item)``, run in the sandbox."""

    type: Literal["python"]
    name: GraderName
    source: Code
    image_tag: str | None = Field(default=None, max_length=200)


class InputText(Strict):
    """A part of a message."""

    type: Literal["input_text", "output_text", "text"]
    text: Template


class JudgeMessage(Strict):
    """A message to the judge."""

    role: Literal["user", "assistant", "system", "developer"]
    content: Template | InputText | list[InputText]
    type: Literal["message"] = "message"


class JudgeSampling(Strict):
    """Sampling parameters of the judge. Not supported; each is rejected by name."""

    max_completions_tokens: int | None = None
    reasoning_effort: str | None = Field(default=None, max_length=32)
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None


class ScoreModel(Strict):
    """A judge's score; ``model`` is a judge configured on the platform."""

    type: Literal["score_model"]
    name: GraderName
    model: str = Field(max_length=200)
    input: list[JudgeMessage] = Field(min_length=1, max_length=32)
    range: list[float] | None = Field(default=None, min_length=2, max_length=2)
    sampling_params: JudgeSampling | None = None


Single = Annotated[StringCheck | TextSimilarity | PythonGrader | ScoreModel, Field(discriminator="type")]


def _by_name(graders: Any) -> Any:
    """Accept an object by name, a list or a single grader."""
    if isinstance(graders, dict) and isinstance(graders.get("type"), str):
        graders = [graders]
    if isinstance(graders, list) and all(isinstance(each, dict) and "name" in each for each in graders):
        return {each["name"]: each for each in graders}
    return graders


class Multi(Strict):
    """Several graders, combined by a formula."""

    type: Literal["multi"]
    name: GraderName
    graders: Annotated[dict[GraderName, Single], BeforeValidator(_by_name)] = Field(
        min_length=1, max_length=MAX_GRADERS
    )
    calculate_output: str = Field(min_length=1, max_length=2000)


Grader = Annotated[
    StringCheck | TextSimilarity | PythonGrader | ScoreModel | Multi, Field(discriminator="type")
]
