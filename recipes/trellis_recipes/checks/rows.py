"""Whether there are enough rows for one step."""

from typing import Any

from trellis_contracts.recipe import DataFormat

from trellis_recipes.catalogue import get_recipe
from trellis_recipes.findings import Findings
from trellis_recipes.request import ComposeRequest


def check_rows(findings: Findings, config: dict[str, Any], request: ComposeRequest, held_out: int) -> None:
    """Rows left for training against the rows of a step."""
    if request.row_count is None or get_recipe(request.recipe).trains_on is DataFormat.TEXT:
        return  # one document may fill many blocks: only the tokenizer can tell
    rows, batch = request.row_count - held_out, config["data"]["train_batch_size"]
    if rows < batch:
        rest = f" after {held_out} are held out for validation" if held_out else ""
        findings.error(
            "too_few_rows",
            "params.batch_size",
            f"The dataset has {max(rows, 0)} rows for training{rest}, fewer than the {batch} of one step.",
        )
