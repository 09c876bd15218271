"""What a running job tells the platform.

A batch carries (attempt, sequence number); sending it twice changes nothing.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, IPvAnyAddress

from trellis_contracts.agents import Trajectory
from trellis_contracts.evaluation import AdapterTask
from trellis_contracts.recipe import Strict

#: What a run is doing.
Phase = Literal["preparing", "loading", "training", "validating", "saving", "serving", "finished"]
#: Where a log line comes from; "platform" is what we say ourselves.
Stream = Literal["stdout", "stderr", "platform"]
#: The data that a rollout answers.
Split = Literal["train", "validation"]
#: What responses are a sample of; those of probes are tricks, made of the policy's own responses.
Sampled = Literal["train", "validation", "probe"]
#: How an attempt ends.
Outcome = Literal["succeeded", "stopped", "failed", "crashed"]
#: The chat template shows no tools, or writes calls in a form that the engine has no parser for.
ToolProblem = Literal["not_in_template", "unknown_call_format"]
#: Tokens of one response that are told at most.
MAX_TRACED_TOKENS = 256
#: Of the timeline of one step: processes, spans of each, and responses.
MAX_LANES = 64
MAX_SPANS = 500
MAX_TIMED_RESPONSES = 512
#: Of one response, and of all responses of a step together.
MAX_PARTS = 64
MAX_PARTS_OF_STEP = 2048
#: Of one rollout engine during one step.
MAX_LOAD_SAMPLES = 512


class MetricsEvent(Strict):
    """The metrics of one step, under verl's own names. NaN and infinities travel as strings."""

    kind: Literal["metrics"] = "metrics"
    time: AwareDatetime
    step: int = Field(ge=0)
    values: dict[str, float]


class LogEvent(Strict):
    """Lines as printed by the process, without line endings."""

    kind: Literal["log"] = "log"
    time: AwareDatetime
    stream: Stream
    lines: list[str]


class PromptMessage(Strict):
    """One message of the conversation that a prompt is made of."""

    role: str
    content: str


class TokenTrace(Strict):
    """Some tokens of a response, one after the other, and what was measured of each before the update.

    Lists have one entry a token: null where the policy did not write it, or the value is no finite number. A
    list is null where the run does not measure it.
    """

    #: Place of the first token in the response, from 0.
    first: int = Field(ge=0)
    #: Joined, they are the text; empty where a character goes on in the next token.
    texts: list[str] = Field(max_length=MAX_TRACED_TOKENS)
    #: Log-probability under the policy, and the entropy of its distribution, in nats.
    log_prob: list[float | None] | None = None
    entropy: list[float | None] | None = None
    advantage: list[float | None] | None = None
    #: Estimate of the KL divergence from the reference (k3 of Schulman, 2020), in nats.
    kl: list[float | None] | None = None
    #: Log-probability of the trainer less that of the rollout engine.
    difference: list[float | None] | None = None
    #: Places in the lists at which a value is NaN or infinite.
    not_finite: list[int] = Field(default_factory=list, max_length=MAX_TRACED_TOKENS)


class Rollout(Strict):
    """One sampled response of the policy."""

    group: str
    #: Same for the same prompt at every step; derived from the text of the prompt where it is missing.
    prompt_key: str | None = Field(default=None, max_length=64)
    prompt: str
    #: The prompt as a conversation, said by one response of each group.
    messages: list[PromptMessage] | None = None
    response: str
    ground_truth: str | None = None
    score: float
    reward_parts: dict[str, float] = Field(default_factory=dict)
    response_tokens: int = Field(ge=0)
    #: Mean over the response's tokens; None where it was not collected.
    advantage: float | None = None
    is_truncated: bool = False
    #: What was measured token by token, of a few responses.
    tokens: TokenTrace | None = None
    #: Turn by turn, where the response is an episode of an agent.
    trajectory: Trajectory | None = None


class RolloutsEvent(Strict):
    """A bounded sample of the rollouts of one step; of probes, ``group`` is the name of the trick."""

    kind: Literal["rollouts"] = "rollouts"
    time: AwareDatetime
    step: int = Field(ge=0)
    split: Sampled = "train"
    rollouts: list[Rollout]


class TimelineSpan(Strict):
    """What one process did from one moment to another, in seconds since the step began."""

    phase: str = Field(max_length=64)
    start_s: float = Field(allow_inf_nan=False)
    end_s: float = Field(allow_inf_nan=False)


class TimelinePlace(Strict):
    """Where a process runs."""

    #: Host name of the machine.
    node: str = Field(max_length=255)
    pid: int = Field(ge=0)
    #: GPUs of the node that the process uses, by Ray's or CUDA's index; empty without GPUs.
    gpus: list[Annotated[str, Field(max_length=64)]] = Field(default_factory=list, max_length=64)


class TimelineLane(Strict):
    """One process of a run during a step. Between its spans nothing was measured: it waited, most likely."""

    #: What it does, and its number: ``trainer``, ``rank 0``, ``worker 0``, ``engine 0``, ``agent_loop 1``,
    #: ``reward 0``.
    name: str = Field(max_length=100)
    #: Spans of different phases may overlap.
    spans: list[TimelineSpan] = Field(max_length=MAX_SPANS)
    place: TimelinePlace | None = None


class TimelineResponse(Strict):
    """The life of one sampled response: from its first request to its last token, tools included."""

    group: str = Field(max_length=256)
    start_s: float = Field(allow_inf_nan=False)
    end_s: float = Field(allow_inf_nan=False)
    tokens: int = Field(ge=0)
    #: Its requests to the engine, its tools and its scoring, which comes after ``end_s``; empty where they
    #: were not measured, or are too many to tell.
    parts: list[TimelineSpan] = Field(default_factory=list, max_length=MAX_PARTS)


class EngineLoad(Strict):
    """How busy one rollout engine was during a step, in columns: a sample holds until the next one."""

    #: As the lane of its process, where that is told: ``engine 0``.
    name: str = Field(max_length=100)
    #: Seconds since the step began.
    at_s: list[Annotated[float, Field(allow_inf_nan=False)]] = Field(max_length=MAX_LOAD_SAMPLES)
    #: Requests that it computes, and those in its queue.
    running: list[Annotated[int, Field(ge=0)]] = Field(max_length=MAX_LOAD_SAMPLES)
    waiting: list[Annotated[int, Field(ge=0)]] = Field(max_length=MAX_LOAD_SAMPLES)
    #: The part of the KV cache that is in use.
    kv_use: list[Annotated[float, Field(ge=0, le=1)]] = Field(max_length=MAX_LOAD_SAMPLES)


class TimelineEvent(Strict):
    """What the processes of a run did during one step. Told of a bounded number of steps."""

    kind: Literal["timeline"] = "timeline"
    time: AwareDatetime
    step: int = Field(ge=0)
    started_at: AwareDatetime
    duration_s: float = Field(ge=0, allow_inf_nan=False)
    lanes: list[TimelineLane] = Field(max_length=MAX_LANES)
    #: Processes that were measured.
    lane_count: int = Field(default=0, ge=0)
    #: Some of the responses, longest ones among them, in the order of their start.
    responses: list[TimelineResponse] = Field(default_factory=list, max_length=MAX_TIMED_RESPONSES)
    #: All that were measured.
    response_count: int = Field(default=0, ge=0)
    #: Of rollout engines that tell of it.
    engines: list[EngineLoad] = Field(default_factory=list, max_length=MAX_LANES)


class CheckpointEvent(Strict):
    """A checkpoint that is complete on disk."""

    kind: Literal["checkpoint"] = "checkpoint"
    time: AwareDatetime
    step: int = Field(ge=0)
    path: str
    #: Folder in Hugging Face format, where the checkpoint has one.
    hf_path: str | None = None
    size_bytes: int = Field(ge=0)
    metrics: dict[str, float] = Field(default_factory=dict)


class ProgressEvent(Strict):
    """Progress of the run; ``phase`` is shown until the first step."""

    kind: Literal["progress"] = "progress"
    time: AwareDatetime
    phase: Phase
    step: int = Field(ge=0)
    total_steps: int | None = None


class ManifestEvent(Strict):
    """Everything needed to reproduce the run: resolved configuration, versions, hashes, command."""

    kind: Literal["manifest"] = "manifest"
    time: AwareDatetime
    manifest: dict[str, Any]


class ServingEvent(Strict):
    """The engine of an endpoint answers, at an address that the API reaches."""

    kind: Literal["serving"] = "serving"
    time: AwareDatetime
    #: An IP address: no name is looked up.
    host: IPvAnyAddress
    port: int = Field(ge=1, le=65_535)
    #: Tokens of prompt and answer together.
    max_model_len: int | None = Field(default=None, ge=1)
    #: Adapters up to this rank can be loaded; None: none can.
    max_lora_rank: int | None = Field(default=None, ge=1)
    #: Why requests with tools can't be answered; None where they can.
    tool_problem: ToolProblem | None = None
    #: Whether a newer checkpoint can take the place of the weights.
    is_replaceable: bool = False


class AdapterEvent(Strict):
    """The engine of an endpoint has loaded an adapter or replaced its weights as asked, or can't."""

    kind: Literal["adapter"] = "adapter"
    time: AwareDatetime
    endpoint_id: str
    #: Identity of the request that this answers.
    load_id: str = ""
    #: Why it can't; None where it has.
    reason: str | None = None


class ServingLoadEvent(Strict):
    """What the engine of an endpoint is at; figures over a time are over the last ``window_s`` seconds."""

    kind: Literal["serving_load"] = "serving_load"
    time: AwareDatetime
    running: int = Field(ge=0)
    waiting: int = Field(ge=0)
    #: The part of the KV cache that is in use.
    kv_use: float = Field(ge=0, le=1)
    window_s: float = Field(ge=0)
    #: Answered in this time.
    requests: int = Field(ge=0)
    prompt_tokens_per_s: float = Field(ge=0)
    generated_tokens_per_s: float = Field(ge=0)
    #: None where no first token came in this time.
    first_token_mean_s: float | None = Field(default=None, ge=0)
    #: Estimated within the buckets of the engine's histogram.
    first_token_p95_s: float | None = Field(default=None, ge=0)


class OutcomeEvent(Strict):
    """The last event of an attempt."""

    kind: Literal["outcome"] = "outcome"
    time: AwareDatetime
    outcome: Outcome
    exit_code: int
    #: One sentence: the cause, for a failure.
    reason: str | None = None
    #: Code of a known cause (``out_of_memory``, ``killed``, ``bad_data`` ...), for the hint.
    cause: str | None = None


Event = Annotated[
    MetricsEvent
    | LogEvent
    | RolloutsEvent
    | TimelineEvent
    | CheckpointEvent
    | ProgressEvent
    | ManifestEvent
    | ServingEvent
    | ServingLoadEvent
    | AdapterEvent
    | OutcomeEvent,
    Field(discriminator="kind"),
]


class IngestBatch(Strict):
    """``POST /api/v1/ingest/jobs/{job_id}/batches`` (gzip welcome)."""

    attempt: int = Field(ge=1)
    #: 1, 2, 3 ... within the attempt. A repeated number is acknowledged and ignored.
    sequence: int = Field(ge=1)
    events: list[Event]


class IngestReceipt(Strict):
    """The answer to a batch; ``expected`` is the next sequence number."""

    accepted: bool
    expected: int


class Heartbeat(Strict):
    """``POST /api/v1/ingest/jobs/{job_id}/heartbeat``, every few seconds."""

    attempt: int = Field(ge=1)
    step: int = Field(ge=0)


class HeartbeatReply(Strict):
    """Requests of the platform to the run."""

    stop_requested: bool
    #: Of an endpoint: what its engine shall serve beside its model.
    adapters: list[AdapterTask] = Field(default_factory=list)
