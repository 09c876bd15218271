"""Whether a model's chat template takes the rows: some refuse system messages, tools' results or two turns
of one side (Mistral, Gemma), which a run would find out after minutes."""

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat, Recipe
from trellis_recipes.catalogue import UnknownRecipe, get_recipe
from trellis_recipes.data.conversion import NoConversion, Place, choose_conversion
from trellis_recipes.data.row_values import BadRow

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.datasets.view import DatasetView
from trellis_api.jobs.errors import RowRefusedByTemplate
from trellis_api.jobs.fit.schemas import DataFit
from trellis_api.models.inspection import UnusableFolder, find_refusal
from trellis_api.models.models import Model

log = logging.getLogger(__name__)

#: Their rows get tools and calls as text only when they are chosen; the run names one that is refused.
_RENDERED_LATER = frozenset({"agent_sft"})
#: Rows that are tried; the run itself names a later one.
TRIED_ROWS = 200
_Conversation = list[dict[str, Any]]


def find_row_problems(
    settings: Settings, model: Model, dataset: DatasetView, *, recipe: str, data: DataFit | None, field: str
) -> list[tuple[DomainError, str]]:
    """Find why the model's chat template rejects the first rows, with the field."""
    folder = settings.data_root / (model.path or "")
    if data is None or not data.fits or not folder.is_dir() or recipe in _RENDERED_LATER:
        return []
    try:
        rows = list(_read_conversations(get_recipe(recipe), dataset, data))
    except (OSError, pa.ArrowException, NoConversion, UnknownRecipe) as error:
        log.warning("the first rows of %s cannot be rendered: %s", dataset.name, error)
        return []
    try:
        refusal = find_refusal(folder, [conversation for _, conversation in rows]) if rows else None
    except (OSError, UnusableFolder):
        return []  # templates that cannot be read are told of by themselves
    if refusal is None:
        return []
    number = rows[refusal.place][0] + 1
    message = (
        f"The chat template of {model.name} refuses row {number} of {dataset.name}: "
        f"{refusal.reason.rstrip('.')}. "
        "Remove what it refuses from the rows (often system messages and tool results), or use another model."
    )
    details = {
        "code": RowRefusedByTemplate.code, "field": field, "message": message,
        "row": number, "reason": refusal.reason,
    }  # fmt: skip
    return [(RowRefusedByTemplate(message, [details]), field)]


def _read_conversations(
    recipe: Recipe, dataset: DatasetView, data: DataFit
) -> Iterator[tuple[int, _Conversation]]:
    """Yield the conversations that the trainer renders from the first rows, each with its row's index."""
    form = recipe.row_format
    if form not in _CONVERSATIONS or data.read_as is recipe.sampled_from:
        return
    convert = choose_conversion(data.read_as, form, data.columns)
    for place, row in enumerate(islice(_read_rows(dataset), TRIED_ROWS)):
        try:
            converted = convert(row, Place(place, "train"))
        except BadRow:
            return  # the run names it
        for each in converted:
            for conversation in _CONVERSATIONS[form](each):
                yield place, [{"role": turn["role"], "content": turn["content"]} for turn in conversation]


_CONVERSATIONS = {
    DataFormat.MESSAGES: lambda row: [row["messages"]],
    DataFormat.PREFERENCE: lambda row: [row["prompt"] + row["chosen"], row["prompt"] + row["rejected"]],
    DataFormat.UNPAIRED_PREFERENCE: lambda row: [row["prompt"] + row["completion"]],
}


def _read_rows(dataset: DatasetView) -> Iterator[dict[str, Any]]:
    for path in dataset.paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(TRIED_ROWS, use_threads=False):
                yield from batch.to_pylist()
