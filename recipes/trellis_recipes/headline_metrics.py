"""The headline metrics of a recipe under the names that a run reports them by."""

import re
from collections.abc import Iterable, Sequence

#: verl names a validation metric after the rows' data source, which a recipe cannot know.
VALIDATION_PREFIX = "val-core/"
_UNNAMED = re.compile(r"val-core/dataset/(?:acc|reward)/mean@\d+")
_MEASURED = re.compile(r"val-core/.+/(?:acc|reward|score)/mean@\d+")


def is_unnamed(key: str) -> bool:
    """Tell whether a headline metric stands for that of whatever data source the rows name."""
    return _UNNAMED.fullmatch(key) is not None


def is_validation_score(key: str) -> bool:
    """Tell whether a metric is the mean score of a data source in validation, by verl's naming."""
    return _MEASURED.fullmatch(key) is not None


def name_headlines(headline: Sequence[str], reported: Iterable[str]) -> list[str]:
    """Replace a validation metric that a run doesn't report by those of the data sources that it measures."""
    known = set(reported)
    measured = sorted(filter(is_validation_score, known))
    named = [
        name
        for key in headline
        for name in (measured if measured and is_unnamed(key) and key not in known else [key])
    ]
    return list(dict.fromkeys(named))


def match_reported(key: str, reported: Iterable[str]) -> str:
    """Return the metric that a run reports for ``key``: its own data source's where ``key`` names none.

    Of several data sources it is the first by name; a metric that names its data source stays as it is.
    """
    known = set(reported)
    if key in known or not is_unnamed(key):
        return key
    statistic = key.removeprefix(f"{VALIDATION_PREFIX}dataset/")
    measured = sorted(filter(is_validation_score, known))
    return next((each for each in measured if each.endswith(f"/{statistic}")), (*measured, key)[0])
