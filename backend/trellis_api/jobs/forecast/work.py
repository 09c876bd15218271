"""How much work a step is, by the parameters of its job."""

from collections.abc import Mapping

#: Parameters that bound the tokens of a sampled row.
LENGTHS = ("max_prompt_length", "max_response_length")


def rows_of_a_step(params: Mapping[str, object]) -> int:
    """Return the rows, or responses, per step; 1 if the parameters don't say."""
    batch, group = params.get("batch_size"), params.get("group_size")
    return (batch if isinstance(batch, int) else 1) * (group if isinstance(group, int) else 1)


def work_of_a_step(params: Mapping[str, object]) -> int:
    """Return the most tokens a step samples and trains on: its rows at full prompt and response length.

    Rows alone where the recipe has no such lengths: how long the rows of a dataset are is the same for all.
    """
    lengths = [params.get(name) for name in LENGTHS]
    return rows_of_a_step(params) * (sum(each for each in lengths if isinstance(each, int)) or 1)
