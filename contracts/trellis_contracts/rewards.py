"""Rewards: what a response earns, as a weighted sum of terms."""

from typing import Any, Literal

from pydantic import Field

from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.recipe import Parameter, Strict, Text
from trellis_contracts.spec import ModelSource

#: Names under which an agent, or a person's reward file, reports whether a response is right, 0 to 1.
CORRECTNESS = ("answer_score", "correct", "correctness", "accuracy", "acc")


class RewardTerm(Strict):
    """One reward of a mixture. The first term of a mixture decides whether a response is correct."""

    name: str
    weight: float = 1.0
    options: dict[str, Any] = Field(default_factory=dict)


class RewardOption(Parameter):
    """One option of a reward."""

    #: What the value is the id (or name) of; None where it is the value itself.
    source: Literal["reward-files", "models", "judges"] | None = None
    #: Whether it is a longer text, written over several lines.
    is_multiline: bool = False
    is_required: bool = False


class RewardKind(Strict):
    """One reward for mixtures: texts for the form and its options."""

    name: str
    title: Text
    help: Text
    #: Lowest and highest value it returns, before weighting; None where it is not bounded.
    lowest: float | None
    highest: float | None
    options: list[RewardOption] = Field(default_factory=list)
    #: Of the parts that it is made of, the one that says whether a response is right; None where its value
    #: does.
    answer_part: str | None = None
    #: Whether it compares with a reference answer.
    needs_answer: bool = True
    #: Whether it executes code that a person or the model wrote, which takes a sandbox.
    runs_code: bool = False
    #: Whether it mostly waits for another process, so that several responses are scored at a time.
    waits: bool = False
    #: Why it cannot be used on this platform; None where it can.
    unavailable: Text | None = None


class RewardFileSource(Strict):
    """A person's own reward function: a copy of the uploaded file."""

    name: str
    path: str
    sha256: str


class RewardResources(Strict):
    """What the names in a mixture's options stand for, where the scoring takes place."""

    files: dict[str, RewardFileSource] = Field(default_factory=dict)
    models: dict[str, ModelSource] = Field(default_factory=dict)
    judges: dict[str, JudgeEndpoint] = Field(default_factory=dict)
