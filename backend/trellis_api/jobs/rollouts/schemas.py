"""Sampled responses as clients read them: one by one, by prompt, over all steps, token by token."""

from typing import Literal

from pydantic import BaseModel, Field
from trellis_contracts.agents import Trajectory

from trellis_api.core.pagination import Page

#: ``probe``: tricks made of the policy's best responses, as the rewards scored them; ``group`` is the trick.
Split = Literal["train", "validation", "probe"]


class RolloutRead(BaseModel):
    """One sampled response."""

    id: int = Field(description="Of the response, among all of the job.")
    step: int
    split: Split
    number: int = Field(description="Index in sampling order within its step, from 1.")
    group: str = Field(description="Responses to one prompt share it.")
    prompt: str
    response: str
    ground_truth: str | None
    score: float | None
    reward_parts: dict[str, float | None]
    response_tokens: int
    advantage: float | None
    is_truncated: bool
    turn_count: int | None = Field(description="Messages of the episode; null where it is none of an agent.")
    stop_reason: str | None = Field(
        description="Why the episode ended: answered, turns, context, workflow_error:KeyError ..."
    )
    trajectory: Trajectory | None = Field(
        description="Turn by turn; null where it is no agent's, and in lists that did not ask for it."
    )


class TokenTraceRead(BaseModel):
    """Some tokens of a response, and what was measured of each before the update.

    Lists have one entry a token: null where the policy did not write it, or the value is no finite number. A
    list is null where the run does not measure it.
    """

    first: int = Field(description="Place of the first token in the response, from 0.")
    texts: list[str] = Field(description="Empty if the character continues in the next token.")
    log_prob: list[float | None] | None = Field(description="Under the policy, in nats.")
    entropy: list[float | None] | None = Field(description="In nats.")
    advantage: list[float | None] | None
    kl: list[float | None] | None = Field(description="From the reference policy, in nats.")
    difference: list[float | None] | None = Field(
        description="Log-probability of the trainer minus that of the rollout engine."
    )
    not_finite: list[int] = Field(description="Places of tokens with a value that is NaN or infinite.")


class RolloutTokensRead(BaseModel):
    """What was measured of one response's tokens."""

    trace: TokenTraceRead | None = Field(description="Null if nothing was kept for this response.")


class TracedRollout(BaseModel):
    """A response with its tokens."""

    rollout: RolloutRead
    trace: TokenTraceRead


class TracedStep(BaseModel):
    """The responses of one step whose tokens were kept."""

    step: int | None = Field(description="Nearest to the requested one; null if there is none.")
    split: Split
    items: list[TracedRollout]


class PromptMessageRead(BaseModel):
    """One message of a prompt."""

    role: str
    content: str


class RolloutGroupRead(BaseModel):
    """All sampled responses to one prompt at one step in numbers, whatever the filter."""

    step: int
    group: str
    prompt_key: str = Field(description="Same for the same prompt at every step.")
    messages: list[PromptMessageRead] | None = Field(
        description="The prompt as a conversation; null if the run did not report it."
    )
    count: int
    mean: float | None
    lowest: float | None
    highest: float | None
    correct: int | None = Field(description="Correct responses; null if the rewards do not report it.")
    is_uniform: bool = Field(description="Several responses, all with the same score.")
    tokens: int


class RolloutPage(Page[RolloutRead]):
    """Responses of one step, those of one prompt together: split only where they alone fill a page."""

    step: int
    split: Split
    total: int = Field(description="Of the step that fit the filter, on all pages.")
    groups: list[RolloutGroupRead] = Field(description="Of the prompts on this page.")


class PromptRolloutPage(Page[RolloutRead]):
    """Responses to one prompt, the newest step first; a page ends with a whole step."""

    split: Split
    prompt_key: str
    total: int = Field(description="Responses to the prompt at all steps.")
    groups: list[RolloutGroupRead] = Field(description="Of the steps on this page.")


class RolloutGroupTotals(BaseModel):
    """Prompts with several sampled responses, and those of which all scored the same."""

    groups: int
    uniform: int = Field(description="Group-relative advantages are zero for these.")
    all_correct: int | None = Field(description="Of the uniform ones; null if the rewards do not report it.")
    all_wrong: int | None = Field(description="Of the uniform ones; null if the rewards do not report it.")
    tokens: int = Field(description="Of all responses.")
    uniform_tokens: int = Field(description="Of the responses of uniform groups.")


class MapColumn(BaseModel):
    """One column of the map of prompts: a step, or several next to each other in a long run."""

    from_step: int
    to_step: int


class MapCell(BaseModel):
    """The responses to a prompt in one column."""

    column: int = Field(description="Place among the columns, from 0.")
    step: int = Field(description="The newest step of the column at which the prompt was answered.")
    count: int
    mean: float | None
    tokens: int
    is_uniform: bool = Field(description="At each of its steps, all responses scored the same.")


class MapRow(BaseModel):
    """One prompt over all steps."""

    prompt_key: str
    excerpt: str = Field(description="Beginning of the prompt.")
    steps: int = Field(description="Number of steps at which it was sampled.")
    mean: float | None
    cells: list[MapCell]


class PromptMap(BaseModel):
    """Mean scores by prompt and step: the prompts that were sampled most often, hardest first."""

    split: Split
    columns: list[MapColumn]
    rows: list[MapRow]
    prompt_count: int = Field(description="Prompts of all sampled responses; the map may leave some out.")
    totals: RolloutGroupTotals = Field(description="Of all steps.")


class ProbesRead(BaseModel):
    """How tricks are scored by the rewards of a run while it trains."""

    scored: list[str] = Field(description="Rewards that score them.")
    left_out: list[str] = Field(
        description="Rewards that take time or money, or run code: counted at their lowest value."
    )
    reason: Literal["own_reward", "nothing_to_earn", "unbounded"] | None = Field(
        description="Why none are scored: the agent computes its own reward; the rewards that would score "
        "them can only be 0 or below; or one that is left out has no lowest value."
    )


class RolloutSummary(BaseModel):
    """All sampled responses of one step in numbers."""

    step: int
    split: Split
    total: int
    scores: list[float] = Field(description="Of those that have one.")
    stop_reasons: dict[str, int] = Field(description="Episode counts by stop reason, most frequent first.")
    reward_parts: list[str] = Field(description="Names of the parts of the reward.")
    probes: ProbesRead | None = Field(description="Null for runs without rewards of their own.")
    groups: RolloutGroupTotals


class RolloutStep(BaseModel):
    """A step of which responses were kept."""

    step: int
    split: Split
    count: int
    mean_score: float | None
