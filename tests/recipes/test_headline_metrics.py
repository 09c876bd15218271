"""Headline metrics of recipes are found under the names that runs report."""

import pytest
from trellis_recipes.headline_metrics import match_reported

UNNAMED = "val-core/dataset/acc/mean@1"


@pytest.mark.parametrize(
    ("key", "reported", "expected"),
    [
        (UNNAMED, [UNNAMED, "val-core/gsm8k/acc/mean@1"], UNNAMED),
        (UNNAMED, ["val-core/a/reward/mean@1", "val-core/b/acc/mean@1"], "val-core/b/acc/mean@1"),
        (UNNAMED, ["val-core/a/reward/mean@4", "loss"], "val-core/a/reward/mean@4"),
        (UNNAMED, ["loss"], UNNAMED),
        ("val-core/gsm8k/acc/mean@1", ["val-core/math/acc/mean@1"], "val-core/gsm8k/acc/mean@1"),
        ("val-loss", ["val-core/math/acc/mean@1"], "val-loss"),
    ],
)
def test_a_metric_without_a_data_source_matches_the_one_that_is_reported(
    key: str, reported: list[str], expected: str
) -> None:
    assert match_reported(key, reported) == expected
