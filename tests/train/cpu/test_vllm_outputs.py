"""Tokens that wait in the engine for others of their response: none lost, none late, none of others."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_testing.engine_code import needs_cpu_build, run_engine_code
from trellis_train.cpu.vllm_outputs import MOST_HELD, holding
from trellis_train.starter.__main__ import main as make_starter

FINAL, STREAMED = 2, 0


class Logprobs(NamedTuple):
    """As vLLM's ``LogprobsLists``."""

    logprob_token_ids: np.ndarray
    logprobs: np.ndarray
    sampled_token_ranks: np.ndarray
    cu_num_generated_tokens: list[int] | None = None


@dataclass
class Output:
    """As vLLM's ``EngineCoreOutput``, in what is read here."""

    request_id: str
    new_token_ids: list[int]
    new_logprobs: Logprobs | None = None
    finish_reason: str | None = None
    prefill_stats: str | None = None
    new_prompt_logprobs_tensors: Any = None
    events: list[str] | None = None
    routed_experts: Any = None


class GivenSteps(SimpleNamespace):
    """A scheduler of which each step's outputs are given."""

    def step(self, *outputs: Output) -> list[Output]:
        for output in outputs:
            if output.finish_reason is not None:
                self.requests.pop(output.request_id, None)
        update = holding(lambda _, given: {0: SimpleNamespace(outputs=list(given))})
        sent: list[Output] = update(self, outputs)[0].outputs
        return sent


def make_engine(**kinds: int) -> GivenSteps:
    from vllm.sampling_params import RequestOutputKind

    params = {
        name: SimpleNamespace(output_kind=RequestOutputKind(kind), stop=[]) for name, kind in kinds.items()
    }
    return GivenSteps(requests={name: SimpleNamespace(sampling_params=each) for name, each in params.items()})


def token(name: str, place: int, *, end: bool = False) -> Output:
    logprobs = Logprobs(np.array([[place]]), np.array([[-place / 8]]), np.array([place + 1]))
    return Output(
        name,
        [place],
        logprobs,
        finish_reason="length" if end else None,
        prefill_stats="prefilled" if place == 0 else None,
        events=[f"{name} {place}"],
    )


def read(outputs: list[Output]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for output in outputs:
        assert output.new_logprobs is not None
        tokens = output.new_token_ids
        assert output.new_logprobs.logprob_token_ids.tolist() == [[each] for each in tokens]
        assert output.new_logprobs.logprobs.tolist() == [[-each / 8] for each in tokens]
        assert output.new_logprobs.sampled_token_ranks.tolist() == [each + 1 for each in tokens]
        assert output.events == [f"{output.request_id} {each}" for each in tokens]
        found.setdefault(output.request_id, []).extend(tokens)
    return found


@given(lengths=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3 * MOST_HELD), min_size=1))
@settings(deadline=None, max_examples=60)
def test_every_token_arrives_once_in_its_order_and_with_what_belongs_to_it(lengths: dict[str, int]) -> None:
    engine, sent = make_engine(**dict.fromkeys(lengths, FINAL)), []

    for step in range(max(lengths.values())):
        outputs = [
            token(name, step, end=step == length - 1) for name, length in lengths.items() if step < length
        ]
        passed = engine.step(*outputs)
        ended = {output.request_id for output in passed if output.finish_reason}
        assert ended == {name for name, length in lengths.items() if step == length - 1}
        sent += passed

    assert read(sent) == {name: list(range(length)) for name, length in lengths.items()}
    assert len(sent) == sum(-(-length // MOST_HELD) for length in lengths.values())
    assert [output.prefill_stats for output in sent if 0 in output.new_token_ids] == ["prefilled"] * len(
        lengths
    )
    assert engine.trellis_held == {}


def test_what_is_streamed_leaves_at_once() -> None:
    engine = make_engine(streamed=STREAMED, final=FINAL)

    assert read(engine.step(token("streamed", 0), token("final", 0))) == {"streamed": [0]}


def test_what_may_end_by_its_text_leaves_at_once() -> None:
    engine = make_engine(stopping=FINAL)
    engine.requests["stopping"].sampling_params.stop = ["</answer>"]

    assert read(engine.step(token("stopping", 0))) == {"stopping": [0]}


def test_nothing_is_kept_of_a_request_that_was_called_off() -> None:
    engine = make_engine(gone=FINAL, stays=FINAL)
    engine.step(token("gone", 0), token("stays", 0))

    del engine.requests["gone"]
    engine.step(token("stays", 1))

    assert set(engine.trellis_held) == {"stays"}


def test_a_response_without_log_probabilities_has_none() -> None:
    engine = make_engine(bare=FINAL)
    engine.step(Output("bare", [5]))

    (output,) = engine.step(Output("bare", [6], finish_reason="stop"))

    assert (output.new_token_ids, output.new_logprobs, output.events) == ([5, 6], None, None)


#: The same requests, asked for their ends and token by token.
ANSWER_TWICE = """
    import json, os, sys
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1")
    from trellis_train.compat import vllm_name
    vllm_name.install()
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import RequestOutputKind

    llm = LLM(
        sys.argv[1], enforce_eager=True, max_model_len=256, max_num_seqs=4, seed=0, dtype="float32",
        kv_cache_memory_bytes=2**26, enable_prefix_caching=False,
    )
    engine, found = llm.llm_engine, []
    for kind in (RequestOutputKind.FINAL_ONLY, RequestOutputKind.CUMULATIVE):
        for row in range(3):
            params = SamplingParams(
                temperature=1.0, seed=row, max_tokens=10 + 20 * row, ignore_eos=True, logprobs=0,
                output_kind=kind,
            )
            engine.add_request(f"{kind} {row}", {"prompt_token_ids": [65, 66, 67 + row]}, params)
        answers, counts = {}, {}
        while engine.has_unfinished_requests():
            for output in engine.step():
                (answer,) = output.outputs
                place = output.request_id.split()[-1]
                counts[place] = counts.get(place, 0) + 1
                answers[place] = [list(answer.token_ids), answer.cumulative_logprob, answer.finish_reason]
        found.append([answers, counts])
    print(json.dumps(found))
"""


@pytest.mark.training
@pytest.mark.timeout(450)
@needs_cpu_build
def test_an_engine_answers_the_same_whether_its_tokens_wait_or_not(tmp_path: Path) -> None:
    make_starter(["--model", str(tmp_path / "model")])

    (waited, waited_counts), (streamed, streamed_counts) = run_engine_code(
        ANSWER_TWICE, str(tmp_path / "model")
    )

    assert waited == streamed
    assert [len(tokens) for tokens, _, _ in waited.values()] == [10, 30, 50]
    assert set(waited_counts.values()) == {1}
    assert streamed_counts == {"0": 10, "1": 30, "2": 50}
