"""The ``vllm.general_plugins`` entry point: what vLLM does otherwise on a CPU that a trainer shares.

vLLM drops the weights that a trainer would write into (``vllm_weights``). And it compiles one
comparison and sum at the first step of every engine, which takes seconds. And where a
prompt is read in pieces it winds the generator of a seeded request back by an offset,
which generators of a CPU do not have. And it computes with all threads, however small the
model (``vllm_threads``), draws a random number for each token of the vocabulary (``vllm_sampling``)
and sends each token by itself (``vllm_answers``).
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from trellis_train.platform.activation import is_cpu_platform

if TYPE_CHECKING:
    from torch import Tensor

SAMPLER = "vllm.v1.sample.sampler"
RANKS = "batched_count_greater_than"
RUNNER = "vllm.v1.worker.cpu_model_runner"
CHOICE = "vllm.v1.sample.ops.topk_topp_sampler"
SCHEDULER = "vllm.v1.core.sched.scheduler"
SAMPLE, BOOK = "_sample", "_bookkeeping_sync"


def register() -> None:
    """Install the patches, once per process, on a CPU only."""
    if not is_cpu_platform():
        return
    import vllm.model_executor.layers.utils as layers

    from trellis_train.platform import gloo_devices
    from trellis_train.platform.imports import patch_after_import
    from trellis_train.platform.vllm_answers import hold_tokens
    from trellis_train.platform.vllm_sampling import sample_by_inversion
    from trellis_train.platform.vllm_weights import keep_weights_live

    keep_weights_live(layers)
    gloo_devices.install()
    patch_after_import(SAMPLER, count_ranks_eagerly)
    patch_after_import(RUNNER, change_runner)
    patch_after_import(CHOICE, sample_by_inversion)
    patch_after_import(SCHEDULER, hold_tokens)


def count_ranks_eagerly(module: ModuleType) -> None:
    """Replace the compiled count: it takes microseconds, compiling it for each shape seconds."""
    from trellis_train.platform.imports import require

    require(module, RANKS)
    setattr(module, RANKS, count_at_least)


def count_at_least(x: "Tensor", values: "Tensor") -> "Tensor":
    """How many elements of each row of ``x`` (rows, elements) are at least that of ``values`` (rows, 1)."""
    return (x >= values).sum(-1)


def change_runner(module: ModuleType) -> None:
    """What its runner does otherwise."""
    from trellis_train.platform.vllm_threads import fit_threads
    from trellis_train.platform.vllm_weights import notice_new_weights

    keep_generators(module)
    fit_threads(module)
    notice_new_weights(module)


def keep_generators(module: ModuleType) -> None:
    """Let a piece of a prompt draw nothing from its request's generator.

    vLLM samples a token behind every piece and throws it away unless the piece is the last. On a GPU it then
    subtracts the draw from the generator's offset; here the generator gets its state back.
    """
    from trellis_train.platform.imports import require

    runner = module.CPUModelRunner
    require(runner, SAMPLE, BOOK)
    setattr(runner, SAMPLE, restoring_generators(getattr(runner, SAMPLE)))
    setattr(runner, BOOK, hiding_generators(getattr(runner, BOOK)))


def restoring_generators(sample: Callable[..., Any]) -> Callable[..., Any]:
    """``_sample``, after which the generators of unfinished prompts stand where they stood."""

    @wraps(sample)
    def sample_and_restore(self: Any, *args: Any, **kwargs: Any) -> Any:
        states = [
            (generator, generator.get_state()) for generator in _take_unfinished(self, keeps=True).values()
        ]
        output = sample(self, *args, **kwargs)
        for generator, state in states:
            generator.set_state(state)
        return output

    return sample_and_restore


def hiding_generators(book: Callable[..., Any]) -> Callable[..., Any]:
    """``_bookkeeping_sync``, which does not see the generators that it would wind back."""

    @wraps(book)
    def book_without(self: Any, *args: Any, **kwargs: Any) -> Any:
        hidden = _take_unfinished(self, keeps=False)
        try:
            return book(self, *args, **kwargs)
        finally:
            self.input_batch.generators.update(hidden)

    return book_without


def _take_unfinished(runner: Any, *, keeps: bool) -> dict[int, Any]:
    """Generators by row of the requests whose prompt this step has not read to its end."""
    generators = runner.input_batch.generators
    unfinished = runner.discard_request_mask.np[: runner.input_batch.num_reqs].nonzero()[0]
    rows = [int(row) for row in unfinished if int(row) in generators]
    return {row: generators[row] if keeps else generators.pop(row) for row in rows}
