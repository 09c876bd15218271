"""Derives the batch parameters that a person left empty from batch, group, lengths and memory.

A change of one parameter then never makes another one invalid. Values that were given stay, and are
checked like any other.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from trellis_contracts.recipe import Engine, Parameter, Recipe

from trellis_recipes.memory.settings import positive
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import ComposeRequest

#: Bytes of memory that a run needs with these values, on one GPU or on the CPU platform's machine; None
#: where that cannot be told.
Measure = Callable[[dict[str, Value]], int | None]

#: The parameter that says how many rows are taken off the training to validate on.
HELD_OUT = "validation_rows"
#: Of the memory that there is, what a pass may fill by the estimate: other programs need some, too.
_SHARE = 0.75
#: Passes larger than this gain no speed.
_MOST_TOKENS = {"cuda": 32_768, "cpu": 65_536}
#: On a CPU a pass gains nothing once its matrices are a thousand rows high, and the scores of the
#: vocabulary, a few copies of which dominate its memory, stay within this size.
_CPU_LOGITS_BYTES = 1024**3
_FLOAT_BYTES = 4
#: On a CPU the critic's passes stay this small: the policy's share prompts between responses and gain from
#: being large, the critic's do not.
_CPU_CRITIC_TOKENS = 1024
_CRITIC_ROWS, _CRITIC_TOKENS = "critic_micro_batch_size", "critic_max_tokens_per_gpu"
#: Updates of a step at the most, by a size that nobody chose.
_MOST_UPDATES = 4
#: Without knowledge of model or memory: what most models on most GPUs bear.
_CAUTIOUS_ROWS, _CAUTIOUS_TOKENS = 8, 16_384


def fill_automatic(
    recipe: Recipe, request: ComposeRequest, parameters: dict[str, Value], measure: Measure
) -> tuple[dict[str, Value], list[str]]:
    """Return all parameter values, and the names of those that were derived."""
    empty = {
        parameter.name: parameter
        for parameter in recipe.parameters
        if parameter.auto and parameters.get(parameter.name) is None
    }
    filled = dict(parameters)
    for parameter in empty.values():
        if parameter.auto != "passes":
            filled[parameter.name] = _updates(parameter, request, filled)
    passes = [parameter.name for parameter in empty.values() if parameter.auto == "passes"]
    if passes:
        filled |= _passes(recipe, request, filled, passes, measure)
    return filled, sorted(empty)


def hold_out_fewer(request: ComposeRequest, parameters: dict[str, Value]) -> bool:
    """Let the rows that are held out unasked be a tenth of a small dataset; whether it is one."""
    wanted, rows = parameters.get(HELD_OUT), request.row_count
    if HELD_OUT in request.params or request.validation_path is not None or not isinstance(wanted, int):
        return False
    most = wanted if rows is None else max(1 if rows > 1 else 0, rows // 10)
    if wanted <= most:
        return False
    parameters[HELD_OUT] = most
    return True


def divisors(number: int) -> list[int]:
    """Return all divisors of ``number``, smallest first."""
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]


def _updates(parameter: Parameter, request: ComposeRequest, parameters: dict[str, Value]) -> int:
    """Return how many prompts an update takes: all of a step, or half, split evenly over the GPUs.

    A batch that has no such part, a prime number, say, is not cut into updates of a prompt or two.
    """
    batch = positive(parameters.get("batch_size"), 1)
    group = positive(parameters.get("group_size"), 1)
    most = max(1, batch // 2) if parameter.auto == "half_batch" else batch
    even = [size for size in divisors(batch) if size <= most and (size * group) % request.gpus == 0]
    return even[-1] if even and even[-1] * _MOST_UPDATES >= batch else batch


def _passes(
    recipe: Recipe,
    request: ComposeRequest,
    parameters: dict[str, Value],
    names: list[str],
    measure: Measure,
) -> dict[str, Value]:
    """Choose the largest micro-batches that fit; of two equivalent parameters, search the one in use."""
    longest = _longest(parameters)
    most = _most_tokens(request)
    rows = _rows_of_an_update(recipe, request, parameters)
    searches = request.architecture is not None and request.device_memory_bytes is not None
    # On a CPU the bound by the vocabulary is cautious enough.
    known = searches or (request.platform == "cpu" and request.architecture is not None)
    choices: dict[str, list[int]] = {}
    if "micro_batch_size" in names:
        parameter = recipe.parameter("micro_batch_size")
        least = int(parameter.minimum or 1) if parameter else 1
        sizes = [size for size in divisors(rows) if size >= least] or [least]
        whole = _rows_of_a_prompt(recipe, request, parameters, most)
        bounded = [
            size for size in sizes if size <= whole or size * longest * _texts(recipe) <= most
        ] or sizes[:1]
        choices["micro_batch_size"] = (
            bounded if known else [size for size in bounded if size <= _CAUTIOUS_ROWS] or bounded[:1]
        )
    if "max_tokens_per_gpu" in names:
        most = most if known else min(most, _CAUTIOUS_TOKENS)
        choices["max_tokens_per_gpu"] = _doubled(longest, max(most, longest))
    filled: dict[str, Value] = {name: sizes[-1] for name, sizes in choices.items()}

    def with_critic(sizes: dict[str, Value]) -> dict[str, Value]:
        return sizes | _passes_of_critic(request, parameters, sizes, names)

    searched = _name_in_use(recipe, parameters)
    if searches and searched in choices:
        limit = int(_SHARE * (request.device_memory_bytes or 0))

        def fits(size: int) -> bool:
            needed = measure({**parameters, **with_critic({**filled, searched: size})})
            return needed is None or needed <= limit

        filled[searched] = _largest_that_fits(choices[searched], fits)
    return with_critic(filled)


def _rows_of_a_prompt(
    recipe: Recipe, request: ComposeRequest, parameters: dict[str, Value], most: int
) -> int:
    """Return the rows that a pass on a CPU takes at least, if memory allows: the responses of a group.

    Such a pass computes their prompt once and scores the vocabulary for their own tokens alone
    (docs/adr/0021-prompts-once-a-pass.md); smaller ones would each compute the prompt again. The turns of an
    agent's episodes may be rows with prompts of their own.
    """
    group = positive(parameters.get("group_size"), 1)
    scored = group * positive(parameters.get("max_response_length"), 512)
    is_single_turn = recipe.engine is Engine.VERL_PPO and recipe.agent is None
    shares = request.platform == "cpu" and is_single_turn and not parameters.get("gradient_checkpointing")
    return group if shares and scored <= most else 1


def _passes_of_critic(
    request: ComposeRequest, parameters: dict[str, Value], filled: dict[str, Value], names: list[str]
) -> dict[str, Value]:
    """Choose the critic's batch sizes: the policy's, or smaller on a CPU unless the policy's were given."""
    found: dict[str, Value] = {}
    longest, policy = _longest(parameters), {**parameters, **filled}
    is_small = request.platform == "cpu"
    if _CRITIC_TOKENS in names:
        tokens = positive(policy.get("max_tokens_per_gpu"), longest)
        if is_small and "max_tokens_per_gpu" in filled:
            tokens = min(tokens, _doubled(longest, max(longest, _CPU_CRITIC_TOKENS))[-1])
        found[_CRITIC_TOKENS] = tokens
    if _CRITIC_ROWS in names:
        rows = positive(policy.get("micro_batch_size"), 1)
        if is_small and "micro_batch_size" in filled:
            most = max(1, _CPU_CRITIC_TOKENS // longest)
            rows = next(size for size in reversed(divisors(rows)) if size <= most)
        found[_CRITIC_ROWS] = rows
    return found


def _largest_that_fits(sizes: Sequence[int], fits: Callable[[int], bool]) -> int:
    """Return the largest size that fits, or the smallest if none does (the estimate then reports it)."""
    index = bisect_right(sizes, 0, key=lambda size: 0 if fits(size) else 1)
    return sizes[max(0, index - 1)]


def _doubled(smallest: int, largest: int) -> list[int]:
    sizes = [smallest]
    while 2 * sizes[-1] <= largest:
        sizes.append(2 * sizes[-1])
    return sizes


def _most_tokens(request: ComposeRequest) -> int:
    most = _MOST_TOKENS[request.platform]
    if request.platform != "cpu" or request.architecture is None:
        return most
    return min(most, _CPU_LOGITS_BYTES // (_FLOAT_BYTES * request.architecture.vocabulary))


def _rows_of_an_update(recipe: Recipe, request: ComposeRequest, parameters: dict[str, Value]) -> int:
    """Return the number of rows per update on one GPU."""
    batch = positive(parameters.get("batch_size"), 1)
    if recipe.engine is Engine.VERL_PPO:
        batch = positive(parameters.get("mini_batch_size"), batch) * positive(parameters.get("group_size"), 1)
    return max(1, batch // request.gpus)


def _longest(parameters: dict[str, Value]) -> int:
    """Return the token limit of the longest row."""
    if "max_length" in parameters:
        return positive(parameters["max_length"], 1024)
    return positive(parameters.get("max_prompt_length"), 512) + positive(
        parameters.get("max_response_length"), 512
    )


def _texts(recipe: Recipe) -> int:
    """Return how many texts of one row go through the model together: a preference has two."""
    return 2 if recipe.engine is Engine.TRL and recipe.row_format == "preference" else 1


def _name_in_use(recipe: Recipe, parameters: dict[str, Value]) -> str:
    """Return the name of the parameter that sets the micro-batch size: in rows, or in tokens if packed."""
    if recipe.engine is Engine.TRL:
        return "micro_batch_size"
    is_packed = parameters.get("dynamic_batch", parameters.get("packing", True))
    return "max_tokens_per_gpu" if is_packed else "micro_batch_size"
