"""Our engine as a model of lm-evaluation-harness."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import handle_stop_sequences, normalize_gen_kwargs, postprocess_generated_text
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from trellis_contracts.evaluation import Decoding

from trellis_train.evaluate.drawing import choose_seed
from trellis_train.evaluate.harness.answers import AnswerLog
from trellis_train.evaluate.inference import Answer, Generation, Inference, RequestRefused
from trellis_train.evaluate.likelihoods import Likelihood, LogLikelihood
from trellis_train.evaluate.rendering import encode, render_chat

#: lm-evaluation-harness's own, where neither task nor order says how many.
DEFAULT_MAX_TOKENS = 256
_NONE = (LogLikelihood(float("-inf"), False),)

Pair = tuple[tuple[str, str] | None, list[int], list[int]]


class HarnessModel(TemplateLM):
    """Answers requests of the harness; those that an earlier attempt has answered come from its log."""

    def __init__(
        self,
        engine: Inference,
        tokenizer: Any,
        *,
        decoding: Decoding,
        has_chat: bool,
        seed: int,
        log: AnswerLog,
        on_step: Callable[[float], None],
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self._engine = engine
        self._decoding = decoding
        self._has_chat = has_chat
        self._seed = seed
        self._log = log
        self._on_step = on_step
        #: What became of a prompt's generation, or why it could not be answered.
        self.facts: dict[str, Answer] = {}
        #: Contexts that were longer than the model's and have lost their beginnings, as the harness does it.
        self.cut: set[str] = set()

    @property
    def eot_token_id(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        start = self.tokenizer.bos_token_id
        return self.eot_token_id if start is None else int(start)

    @property
    def max_length(self) -> int:
        """Tokens of the longest sequence."""
        return self._engine.max_model_len

    @property
    def tokenizer_name(self) -> str:
        return str(self.tokenizer.name_or_path).replace("/", "__")

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        if add_generation_prompt:
            return render_chat(self.tokenizer, chat_history)
        text: str = self.tokenizer.apply_chat_template(
            chat_history, tokenize=False, add_generation_prompt=False, continue_final_message=True
        )
        return text

    def tok_encode(
        self,
        string: str,
        add_special_tokens: bool | None = None,
        **_: Any,
    ) -> list[int]:
        adds_special = not self._has_chat if add_special_tokens is None else add_special_tokens
        return encode(self.tokenizer, string, adds_special=adds_special)

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:  # noqa: ARG002
        asked = [
            self._generation(*request.args, number=number) for request, number in _count_repeats(requests)
        ]
        answers = self._answer(asked)
        texts = []
        for request, (_, generation), answer in zip(requests, asked, answers, strict=True):
            self.facts[request.args[0]] = answer
            texts.append(postprocess_generated_text(answer.text, list(generation.stop), None))
        return texts

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:  # noqa: ARG002
        windows: list[Pair] = []
        counts = []
        for request in requests:
            found = [
                make_disjoint_window(window)
                for window in get_rolling_token_windows(
                    token_list=self.tok_encode(request.args[0]),
                    prefix_token=self.prefix_token_id,
                    # Beside the context's one token there must be room for a generated one.
                    max_seq_len=self.max_length - 2,
                    context_len=1,
                )
            ]
            windows += [(None, context, continuation) for context, continuation in found]
            counts.append(len(found))
        values = iter(value for value, _ in self._loglikelihood_tokens(windows))
        return [sum(itertools.islice(values, count)) for count in counts]

    def _loglikelihood_tokens(self, requests: list[Pair], **_: Any) -> list[tuple[float, bool]]:
        fitted = [self._fit(request) for request in requests]
        # The choices of one question follow one another: one request to the engine.
        groups = [list(group) for _, group in itertools.groupby(fitted, key=lambda pair: pair[0])]
        asked = [(_name("likelihood", group), Likelihood(group)) for group in groups]
        found: list[tuple[float, bool]] = []
        for group, answer in zip(groups, self._answer(asked), strict=True):
            if answer.error is not None:
                raise RequestRefused(answer.error)
            found += [(each.value, each.is_greedy) for each in answer.likelihoods]
            assert len(answer.likelihoods) == len(group)  # noqa: S101 - one a pair
        return found

    def _fit(self, request: Pair) -> tuple[list[int], list[int]]:
        """Fit context and continuation, dropping the start of the context where both are too long."""
        texts, context, continuation = request
        room = self.max_length - 1
        excess = len(context) + len(continuation) - room
        if excess <= 0:
            return context, continuation
        if texts is not None:
            self.cut.add(texts[0])
        return context[excess:], continuation[-room:]

    def _generation(self, context: str, kwargs: dict[str, Any], *, number: int) -> tuple[str, Generation]:
        """Build the generation request as the harness's own vLLM model does, with the order's changes."""
        more = dict(normalize_gen_kwargs(kwargs, default_max_gen_toks=DEFAULT_MAX_TOKENS))
        end = self.tokenizer.decode(self.eot_token_id) or self.tokenizer.eos_token
        stop = handle_stop_sequences(more.pop("until", None), eos=end)
        more.pop("do_sample", None)
        max_tokens = int(more.pop("max_gen_toks"))
        temperature = float(more.pop("temperature", 0.0) or 0.0)
        top_p = float(more.pop("top_p", 1.0))
        decoding = self._decoding
        if decoding.temperature > 0:
            temperature, top_p = decoding.temperature, decoding.top_p
        generation = Generation(
            self.tok_encode(context),
            max_tokens=decoding.max_tokens or max_tokens,
            temperature=temperature,
            top_p=top_p,
            stop=tuple(stop),
            seed=choose_seed(self._seed, context, number),
            keeps_special=True,
            more=more,
        )
        return _name("generation", [context, sorted(kwargs.items(), key=str), number]), generation

    def _answer(self, asked: Sequence[tuple[str, Generation | Likelihood]]) -> list[Answer]:
        """Return answers in the order of the requests; each is logged as soon as it is there."""
        wanted = dict(asked)
        waiting = iter([(name, request) for name, request in wanted.items() if name not in self._log])
        is_more = True
        while True:
            while is_more and self._engine.is_hungry:
                name, request = next(waiting, (None, None))
                if name is None or request is None:
                    is_more = False
                else:
                    self._submit(name, request)
            if self._engine.pending == 0 and not is_more:
                break
            for answer in self._engine.step() if self._engine.pending else []:
                self._log.append(answer)
            self._on_step(sum(name in self._log for name in wanted) / len(wanted))
        return [self._log[name] for name, _ in asked]

    def _submit(self, name: str, request: Generation | Likelihood) -> None:
        try:
            self._engine.submit(name, request)
        except RequestRefused as refusal:
            self._log.append(Answer(name, error=str(refusal)))


def _count_repeats(requests: Iterable[Any]) -> Iterable[tuple[Any, int]]:
    """Yield each request, and how many times it has come before."""
    seen: dict[int, int] = {}
    for request in requests:
        number = seen.get(id(request), 0)
        seen[id(request)] = number + 1
        yield request, number


def _name(kind: str, parts: Sequence[Any]) -> str:
    """Return a name that is the same for the same request in every attempt."""
    return AnswerLog.name(kind, parts)
