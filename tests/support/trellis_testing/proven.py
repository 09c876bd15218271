"""Which recipes a proof is of."""

import pytest


def proven_by(item: pytest.Item) -> set[str]:
    """Return the recipes that a test proves: by the mark `proves`, or by its parameter `recipe`."""
    proven = {recipe for mark in item.iter_markers("proves") for recipe in mark.args}
    if isinstance(item, pytest.Function) and "callspec" in vars(item):
        proven |= {value for name, value in item.callspec.params.items() if name == "recipe"}
    return proven
