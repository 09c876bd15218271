"""DPO without a reference (``reference_free``), which TRL had until its first version.

The reference finds every answer equally likely: its log-probabilities are 0 everywhere, so the margin is
that of the policy alone (https://arxiv.org/abs/2305.18290, equation 7 with a uniform reference).
"""

from typing import Any, cast

#: The trainer's method that adds what the reference says of each row.
_ASK = "_precompute_ref_logps"


def without_reference(trainer_class: type[Any]) -> type[Any]:
    """Create a DPO trainer with zero reference log-probs; its settings must precompute the reference."""

    def say_nothing(_trainer: Any, dataset: Any, _name: str, _batch_size: int) -> Any:
        zeros = [0.0] * len(dataset)
        return dataset.add_column("ref_chosen_logps", zeros).add_column("ref_rejected_logps", zeros)

    name = f"ReferenceFree{trainer_class.__name__}"
    return cast("type[Any]", type(name, (trainer_class,), {_ASK: say_nothing}))
