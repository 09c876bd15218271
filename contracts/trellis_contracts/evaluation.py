"""Evaluations: which benchmarks a model is to be measured on, and what the run of them leaves.

One evaluation measures one model, or one checkpoint, on a list of benchmarks with one engine. It runs as a
job; what it leaves lies in a folder of its own, so that another attempt goes on where the last one stopped.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.recipe import DataFormat, Engine, Strict

#: Of a benchmark within its evaluation: in file names, metric names and addresses.
LABEL = r"^[a-z0-9][a-z0-9_.-]{0,63}$"
#: Names of columns, as a template or an order names them.
_COLUMN = Field(min_length=1, max_length=200)


class Verdict(StrEnum):
    """Verdict on one sample. Only the first two are about the answer itself."""

    CORRECT = "correct"
    WRONG = "wrong"
    #: It ended by itself, and no answer could be found in it.
    UNANSWERED = "unanswered"
    #: It reached its last token before it ended, and was not right.
    TRUNCATED = "truncated"
    #: It could not be generated or scored: ``error`` says why.
    FAILED = "failed"


class Decoding(Strict):
    """How answers are generated; greedy by default."""

    temperature: float = Field(default=0.0, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    #: Of one answer; None: what the benchmark uses.
    max_tokens: int | None = Field(default=None, ge=1, le=131_072)


class BenchmarkOrder(Strict):
    """What every benchmark may be told."""

    #: Tells the benchmarks of an evaluation apart; by default the benchmark's name.
    label: str | None = Field(default=None, pattern=LABEL)
    #: Problems to take; None for all. They are drawn by the evaluation's seed, so that 50 are among the 100.
    limit: int | None = Field(default=None, ge=1)
    #: Solved examples before each problem; None: what the benchmark uses.
    shots: int | None = Field(default=None, ge=0, le=64)
    #: Whether prompts go through the model's chat template; ``auto``: where it has one.
    chat: Literal["auto", "always", "never"] = "auto"
    #: The system message; only with the chat template.
    system: str | None = Field(default=None, max_length=20_000)
    decoding: Decoding = Field(default_factory=Decoding)


class Gsm8kOrder(BenchmarkOrder):
    """Grade-school mathematics with chain of thought (Cobbe et al. 2021)."""

    benchmark: Literal["gsm8k"] = "gsm8k"


class MathOrder(BenchmarkOrder):
    """Competition mathematics (Hendrycks et al. 2021), whole or the 500 of Lightman et al. (2023)."""

    benchmark: Literal["math", "math500"]
    #: Only these levels (1 to 5) and types; None for all.
    levels: list[Annotated[int, Field(ge=1, le=5)]] | None = None
    types: list[str] | None = None


class HumanEvalOrder(BenchmarkOrder):
    """Python functions from their descriptions, run against tests (Chen et al. 2021)."""

    benchmark: Literal["humaneval"] = "humaneval"
    #: Programs for each problem; pass@k is estimated from them for each k up to their number.
    samples: int = Field(default=1, ge=1, le=256)
    k: list[Annotated[int, Field(ge=1, le=256)]] = Field(default_factory=lambda: [1], min_length=1)
    timeout_s: float = Field(default=5.0, gt=0, le=60)
    memory_mb: int = Field(default=512, ge=64, le=8192)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if max(self.k) > self.samples:
            raise ValueError(f"pass@{max(self.k)} needs at least {max(self.k)} samples, not {self.samples}")
        if self.samples > 1 and self.decoding.temperature == 0:
            raise ValueError("several samples are all the same at temperature 0: set decoding.temperature")
        return self


class MmluOrder(BenchmarkOrder):
    """Multiple choice over many subjects (Hendrycks et al. 2020)."""

    benchmark: Literal["mmlu"] = "mmlu"
    #: By the likelihood of the choices' letters, or by the letter that the model writes.
    mode: Literal["loglikelihood", "generate"] = "loglikelihood"
    subjects: list[str] | None = None


class ExactScorer(Strict):
    """The answer equals the reference, ignoring white space."""

    kind: Literal["exact"] = "exact"
    ignore_case: bool = False


class ContainsScorer(Strict):
    """The answer contains the reference as a separate word."""

    kind: Literal["contains"] = "contains"
    ignore_case: bool = False


class RegexScorer(Strict):
    """The last match of the pattern (its first group, if it has one) is the reference."""

    kind: Literal["regex"] = "regex"
    pattern: str = Field(min_length=1, max_length=2000)


class NumericScorer(Strict):
    """The answer's last number is the reference's, within a tolerance."""

    kind: Literal["numeric"] = "numeric"
    #: Part of the reference's size by which it may be off.
    tolerance: float = Field(default=0.0, ge=0, le=1)


class MathScorer(Strict):
    """The answer equals the reference as an expression (math-verify)."""

    kind: Literal["math"] = "math"


class JsonScorer(Strict):
    """The answer is JSON: it matches a schema, equals the reference, or both."""

    kind: Literal["json"] = "json"
    schema_text: str | None = Field(default=None, max_length=100_000)
    equals_answer: bool = True


class ChoiceScorer(Strict):
    """The letter in the answer is that of the correct choice."""

    kind: Literal["choice"] = "choice"
    #: Column with the list of choices.
    choices_column: str = _COLUMN


class OverlapScorer(Strict):
    """BLEU (sacrebleu, sentence level) or ROUGE-1/2/L (rouge-score) with the reference, 0 to 1."""

    kind: Literal["bleu", "rouge1", "rouge2", "rougeL"]
    #: From this score on an answer counts as correct.
    threshold: float = Field(default=0.5, ge=0, le=1)


class JudgeScorer(Strict):
    """A model behind an endpoint of the platform's settings judges the answer."""

    kind: Literal["judge"] = "judge"
    #: As ``TRELLIS_JUDGES`` names it.
    judge: str = Field(min_length=1, max_length=120)
    #: A rubric's points, or which of answer and reference is better (asked in both orders).
    form: Literal["rubric", "pairwise"] = "rubric"
    #: What the rubric asks for.
    rubric: str = Field(default="", max_length=20_000)
    threshold: float = Field(default=0.5, ge=0, le=1)
    #: US dollars that all calls together may cost.
    max_cost: float = Field(default=1.0, gt=0)
    #: Column with a person's verdict (true, false, or 0 to 1): the agreement with it is measured.
    human_column: str | None = Field(default=None, min_length=1, max_length=200)


class ToolUseScorer(Strict):
    """Tool calls against the row's reference, run in the simulator: five metrics and their weighted mean.

    Rows are those of a tool-use environment: the reference names the calls, ``extra_info.tools`` the tools.
    """

    kind: Literal["tool_use"] = "tool_use"


class CodeScorer(Strict):
    """A Python file of the platform with ``score(prompt, response, answer, row)``, run isolated."""

    kind: Literal["file"] = "file"
    #: ID of the reward file, in requests also the name; and its version.
    file: str = Field(min_length=1, max_length=120)
    version: int | None = Field(default=None, ge=1)
    threshold: float = Field(default=0.5)


CustomScorer = Annotated[
    ExactScorer | ContainsScorer | RegexScorer | NumericScorer | MathScorer | JsonScorer | ChoiceScorer
    | OverlapScorer | JudgeScorer | ToolUseScorer | CodeScorer,
    Field(discriminator="kind"),
]  # fmt: skip


class CustomOrder(BenchmarkOrder):
    """Rows of a dataset of the platform."""

    benchmark: Literal["custom"] = "custom"
    #: ID; in requests also the name.
    dataset: str = Field(min_length=1, max_length=120)
    #: Version, branch or tag; None: the tip of the main branch.
    version: str | None = Field(default=None, max_length=100)
    split: str | None = Field(default=None, max_length=100)
    #: Which column plays the roles ``prompt`` and ``answer``; unnamed roles are looked for.
    columns: dict[Literal["prompt", "answer"], str] = Field(default_factory=dict)
    #: The prompt as text with ``{column}`` in it, instead of a prompt column.
    template: str | None = Field(default=None, max_length=20_000)
    #: Column by which scores are broken down.
    group_column: str | None = Field(default=None, min_length=1, max_length=200)
    scorer: CustomScorer


class HarnessOrder(BenchmarkOrder):
    """A task of lm-evaluation-harness, by its name."""

    benchmark: Literal["harness"] = "harness"
    task: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,119}$")


AnyOrder = Annotated[
    Gsm8kOrder | MathOrder | HumanEvalOrder | MmluOrder | CustomOrder | HarnessOrder,
    Field(discriminator="benchmark"),
]
ANY_ORDER: TypeAdapter[AnyOrder] = TypeAdapter(AnyOrder)


class EngineSettings(Strict):
    """The vLLM engine of an evaluation."""

    #: Longest sequence, prompt and answer together; None: the model's own.
    max_model_len: int | None = Field(default=None, ge=16)
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    #: GPUs that one copy of the model is spread over.
    tensor_parallel: int = Field(default=1, ge=1, le=64)
    #: Share of a GPU's memory that vLLM may take; without meaning on a CPU.
    gpu_memory: float = Field(default=0.85, gt=0.05, le=0.98)


class CheckpointSource(Strict):
    """A checkpoint that is measured or served: its weights are gathered before the engine starts."""

    job_id: str
    engine: Engine
    step: int = Field(ge=0)
    path: str


class AdapterTask(Strict):
    """An adapter that an engine serves beside its base model, or weights to take in place of its own."""

    endpoint_id: str
    #: Identity of this request: the answer repeats it, and a later request for the same adapter has another.
    load_id: str
    #: By which requests name it.
    served_name: str
    #: Its folder: a checkpoint with an adapter, or an adapter in PEFT's format. None where the files are
    #: gone: an engine that has loaded them has a copy of its own.
    checkpoint: CheckpointSource | None
    #: A newer checkpoint of the job that the engine serves, in place of the one it has. Written only where
    #: it is true: runs of an earlier version take no fields that they don't know.
    replaces: bool = Field(default=False, exclude_if=lambda replaces: not replaces)


class AdapterList(Strict):
    """All of them, in the order in which they were asked for."""

    adapters: list[AdapterTask]


class BenchmarkFiles(Strict):
    """Where the rows of a benchmark lie, and what they are."""

    #: By part: ``test``, and ``train`` or ``dev`` where examples come from. In the order of the rows.
    paths: dict[str, list[str]]
    #: Commit of the hub's repository or version of the dataset; None for a folder without one.
    revision: str | None = None
    #: Of all files together.
    sha256: str
    #: Of a dataset of the platform: what its rows are read as.
    format: DataFormat | None = None


class BenchmarkTask(Strict):
    """One benchmark of a run."""

    label: str = Field(pattern=LABEL)
    order: AnyOrder
    #: None for tasks of lm-evaluation-harness, which load by themselves.
    files: BenchmarkFiles | None = None
    #: The endpoint that judges, where one does; its key lies in the attempt's folder.
    judge: JudgeEndpoint | None = None
    #: Python source of the scorer, where a person brings one.
    scorer_path: str | None = None


class EvaluationTask(Strict):
    """What a job's process is told that measures a model (``JobSpec.evaluation``)."""

    evaluation_id: str
    #: Folder of the evaluation, shared by its attempts: samples, results, manifest.
    output_dir: str
    #: None: the weights are those of ``JobSpec.model``, a Hugging Face folder.
    checkpoint: CheckpointSource | None = None
    benchmarks: list[BenchmarkTask] = Field(min_length=1)
    engine: EngineSettings = Field(default_factory=EngineSettings)
    seed: int = Field(ge=0)
    #: Folder of what lm-evaluation-harness loads; nothing is fetched where it is offline.
    hub_cache: str | None = None


# -- what a run leaves


class Score(Strict):
    """A measured number with its uncertainty."""

    #: ``strict``, ``flexible``, ``accuracy``, ``pass@1``, ``macro`` ...; in charts ``eval/<label>/<metric>``.
    metric: str
    value: float
    #: Standard error, and the 95 % interval with the way it was found.
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    method: Literal["wilson", "bootstrap", "normal", "none"] = "none"
    #: Problems that it is the mean of.
    n: int = Field(ge=0)


class GroupScore(Strict):
    """The headline metric over some of the problems."""

    #: ``level``, ``type``, ``subject``, ``category``, or the column's name.
    kind: str
    name: str
    score: Score


class VerdictCounts(Strict):
    """Samples by verdict."""

    total: int = 0
    correct: int = 0
    wrong: int = 0
    unanswered: int = 0
    truncated: int = 0
    failed: int = 0


class BenchmarkResult(Strict):
    """What a model scored on one benchmark."""

    label: str
    benchmark: str
    #: The metric that stands for the benchmark, which is the first of the scores.
    headline: str
    scores: list[Score]
    groups: list[GroupScore] = Field(default_factory=list)
    counts: VerdictCounts
    problems: int = Field(ge=0)
    prompt_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    #: What else was measured: agreement with people, cost of a judge.
    remarks: dict[str, float | str] = Field(default_factory=dict)


class EvaluationResult(Strict):
    """``result.json``: all scores, and what they were measured with."""

    evaluation_id: str
    benchmarks: list[BenchmarkResult]
    #: Engine, versions, hash of the prompts, revisions of the data, seed, chat template.
    manifest: dict[str, Any]


#: Files in an evaluation's folder. Samples are one SQLite file a benchmark (``samples/<label>.sqlite``),
#: which appears when the benchmark is done; until then they are lines in ``samples/<label>.jsonl``.
RESULT_FILE = "result.json"
SAMPLES_FOLDER = "samples"


class Sample(Strict):
    """One generation, as it is kept and shown."""

    #: Order in which problems were drawn: 0, 1, 2 ...
    position: int = Field(ge=0)
    #: The problem's own name; the same in every evaluation of the benchmark's revision.
    key: str
    #: Which of the problem's generations: 0, 1, 2 ...
    number: int = Field(default=0, ge=0)
    #: By kind of group: {"subject": "astronomy", "category": "stem"}.
    groups: dict[str, str] = Field(default_factory=dict)
    #: As the model read it, chat template and examples included.
    prompt: str
    output: str
    extracted: str | None = None
    gold: str
    verdict: Verdict
    #: Under the headline metric, 0 to 1.
    score: float
    #: Under each metric; log-likelihoods of choices; parts of a judge's rubric.
    parts: dict[str, float] = Field(default_factory=dict)
    #: What else there is to read: the judge's reasons, what a test printed.
    notes: dict[str, str] = Field(default_factory=dict)
    finish_reason: str | None = None
    prompt_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    #: From the request to its last token.
    seconds: float = Field(default=0.0, ge=0)
    error: str | None = None
