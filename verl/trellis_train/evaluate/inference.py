"""One vLLM engine in this process, driven step by step.

In this process because the scheduler then sees the requests of every run at the same steps: batches are the
same, so that the same configuration gives the same tokens (vLLM's page on reproducibility), and one process
instead of three has to import torch.
"""

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from trellis_contracts.evaluation import EngineSettings

from trellis_train.evaluate.likelihoods import Likelihood, LogLikelihood, Question, add_up, lay_out

#: Requests that wait in the engine for each that it can run: enough to fill a batch at the next step.
_QUEUE_FACTOR = 2
#: On a CPU: bytes for keys and values, as a part of the memory that is free when the engine starts.
_CACHE_SHARE, _LEAST_CACHE, _MOST_CACHE = 0.25, 512 * 1024**2, 4 * 1024**3
#: How vLLM marks a completion that is none.
_FAILURES = frozenset({"error", "abort"})


class RequestRefused(ValueError):
    """The engine cannot take this request; the message says why."""


@dataclass(frozen=True)
class Generation:
    """Tokens to continue."""

    tokens: list[int]
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    #: Of the sampling; without meaning where it is greedy.
    seed: int = 0
    #: Whether special tokens stand in the answer's text, and can stop it.
    keeps_special: bool = False
    #: What else vLLM is told.
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What became of a request."""

    id: str
    text: str = ""
    #: ``stop``: it ended by itself; ``length``: it was cut; None for likelihoods.
    finish_reason: str | None = None
    output_tokens: int = 0
    seconds: float = 0.0
    #: One a pair.
    likelihoods: tuple[LogLikelihood, ...] = ()
    error: str | None = None


@dataclass
class _Pending:
    """A request that the engine works on, in one prompt or several."""

    request: Generation | Likelihood
    started: float
    parts: list[Any]
    missing: int


class Inference:
    """The engine: takes requests, and answers those that a step has ended."""

    def __init__(self, folder: Path, settings: EngineSettings, *, platform: str, seed: int) -> None:
        from vllm import EngineArgs, LLMEngine
        from vllm.inputs.engine import tokens_input
        from vllm.usage.usage_lib import UsageContext

        self._as_input = tokens_input
        arguments = EngineArgs(**choose_arguments(folder, settings, platform=platform, seed=seed))
        self._engine = LLMEngine.from_engine_args(arguments, usage_context=UsageContext.LLM_CLASS)
        self._tokenizer = self._engine.get_tokenizer()
        self._pending: dict[str, _Pending] = {}

    @property
    def tokenizer(self) -> Any:
        """Of the model, from its folder."""
        return self._tokenizer

    @property
    def max_model_len(self) -> int:
        """Tokens of the longest sequence, prompt and answer."""
        return int(self._engine.model_config.max_model_len)

    @property
    def is_hungry(self) -> bool:
        """Whether more requests should be given to it before the next step."""
        return len(self._pending) < _QUEUE_FACTOR * self._engine.vllm_config.scheduler_config.max_num_seqs

    @property
    def pending(self) -> int:
        """Requests without an answer."""
        return len(self._pending)

    def describe(self) -> dict[str, Any]:
        """Describe the engine's settings for the manifest."""
        config = self._engine.vllm_config
        return {
            "name": "vllm",
            "dtype": str(config.model_config.dtype).removeprefix("torch."),
            "max_model_len": self.max_model_len,
            "max_num_seqs": config.scheduler_config.max_num_seqs,
            "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
            "tensor_parallel": config.parallel_config.tensor_parallel_size,
            "prefix_caching": bool(config.cache_config.enable_prefix_caching),
            "is_eager": bool(config.model_config.enforce_eager),
        }

    def submit(self, id: str, request: Generation | Likelihood) -> None:
        """Queue a request; ``RequestRefused`` where it cannot be served."""
        try:
            prompts = self._lay_out(request)
        except (TypeError, ValueError) as error:  # what vLLM's parameters raise
            raise RequestRefused(str(error)) from error
        longest = max(len(tokens) for tokens, _ in prompts)
        if longest >= self.max_model_len:
            raise RequestRefused(
                f"The prompt has {longest} tokens, which leaves no room for an answer in the context of "
                f"{self.max_model_len}."
            )
        names = [id] if len(prompts) == 1 else [f"{id}#{number}" for number in range(len(prompts))]
        added: list[str] = []
        try:
            for name, (tokens, parameters) in zip(names, prompts, strict=True):
                self._engine.add_request(name, self._as_input(tokens), parameters)
                added.append(name)
        except ValueError as error:  # what vLLM raises where it refuses a request
            self._engine.abort_request(added)
            raise RequestRefused(str(error)) from error
        self._pending[id] = _Pending(
            request, time.monotonic(), parts=[None] * len(prompts), missing=len(prompts)
        )

    def step(self) -> list[Answer]:
        """Run one batch; the requests that it has ended, in the order in which they did."""
        answers = []
        for output in self._engine.step():
            if not output.finished:
                continue
            id_, _, number = output.request_id.partition("#")
            pending = self._pending.get(id_)
            if pending is None:  # the other part of a request that failed
                continue
            pending.parts[int(number or 0)] = output
            pending.missing -= 1
            if pending.missing == 0:
                del self._pending[id_]
                answers.append(_answer(id_, pending))
        return answers

    def abort(self) -> None:
        """Forget all that is not answered, and what is kept of prompts."""
        ids = [
            name
            for id_, pending in self._pending.items()
            for name in (
                [id_] if len(pending.parts) == 1 else [f"{id_}#{i}" for i in range(len(pending.parts))]
            )
        ]
        self._engine.abort_request(ids)
        self._pending.clear()
        # A prompt that is read from the cache in part differs in the last digits from one that is not.
        self._engine.reset_prefix_cache()

    def close(self) -> None:
        """End the engine and give its memory back."""
        self._engine.engine_core.shutdown()
        del self._engine
        gc.collect()

    def _lay_out(self, request: Generation | Likelihood) -> list[tuple[list[int], Any]]:
        """Prepare prompts and vLLM's parameters."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        if isinstance(request, Generation):
            room = self.max_model_len - len(request.tokens)
            is_random = request.temperature > 0
            parameters = SamplingParams(
                temperature=request.temperature,
                top_p=request.top_p,
                max_tokens=max(1, min(request.max_tokens, room)),
                stop=list(request.stop),
                seed=request.seed if is_random else None,
                skip_special_tokens=not request.keeps_special,
                spaces_between_special_tokens=not request.keeps_special,
                **request.more,
                output_kind=RequestOutputKind.FINAL_ONLY,
            )
            return [(request.tokens, parameters)]
        return [(question.tokens, _ask(question)) for question in lay_out(request)]


def _ask(question: Question) -> Any:
    """Return vLLM's parameters for one position, whose token nobody reads."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    # vLLM computes a prompt whole whose own probabilities are asked for, past its prefix cache.
    return SamplingParams(
        temperature=0,
        max_tokens=1,
        logprob_token_ids=question.children,
        prompt_logprobs=0 if question.children is None else None,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def choose_arguments(folder: Path, settings: EngineSettings, *, platform: str, seed: int) -> dict[str, Any]:
    """Choose vLLM's engine arguments."""
    arguments: dict[str, Any] = {
        "model": str(folder),
        # -1: the model's own, or what the cache has room for where that is less.
        "max_model_len": settings.max_model_len or -1,
        "dtype": settings.dtype,
        "tensor_parallel_size": settings.tensor_parallel,
        "seed": seed,
        "disable_log_stats": True,
        "enable_prefix_caching": True,
    }
    if platform == "cpu":
        if settings.dtype == "auto":
            arguments["dtype"] = read_dtype(folder)
        # Compiling takes longer than most evaluations do on a CPU.
        return {**arguments, "enforce_eager": True, "kv_cache_memory_bytes": choose_cache_bytes()}
    return {**arguments, "gpu_memory_utilization": settings.gpu_memory}


def choose_cache_bytes() -> int:
    """Return a quarter of the free memory, within 0.5 to 4 GiB: other processes need memory too."""
    free = psutil.virtual_memory().available
    return int(min(max(free * _CACHE_SHARE, _LEAST_CACHE), _MOST_CACHE))


def read_dtype(folder: Path) -> str:
    """Return the dtype to load the weights in; vLLM by default would convert float32 to half precision."""
    from transformers import AutoConfig

    dtype = AutoConfig.from_pretrained(folder).dtype
    return "float32" if str(dtype) in {"None", "torch.float32", "float32"} else "auto"


def _answer(id_: str, pending: _Pending) -> Answer:
    outputs: Sequence[Any] = pending.parts
    completions = [output.outputs[0] for output in outputs]
    first = completions[0]
    common: dict[str, Any] = {
        "id": id_,
        "seconds": time.monotonic() - pending.started,
    }
    failed = next((each.finish_reason for each in completions if each.finish_reason in _FAILURES), None)
    if failed is not None:
        return Answer(**common, error=f"The engine aborted the request ({failed}).")
    if isinstance(pending.request, Generation):
        return Answer(
            **common, text=first.text, finish_reason=first.finish_reason, output_tokens=len(first.token_ids)
        )
    return Answer(**common, likelihoods=add_up(pending.request, outputs))
