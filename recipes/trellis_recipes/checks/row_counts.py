"""Whether there are enough rows for one step, and whether a step splits evenly."""

from trellis_contracts.recipe import DataFormat

from trellis_recipes.catalogue import get_recipe
from trellis_recipes.findings import Findings, largest_divisor
from trellis_recipes.request import ComposeRequest


def check_rows(findings: Findings, request: ComposeRequest, *, batch: int, held_out: int) -> None:
    """Check that enough rows are left for training to fill a step."""
    if request.row_count is None or get_recipe(request.recipe).row_format is DataFormat.TEXT:
        return  # one document may fill many blocks: only the tokenizer can tell
    rows = request.row_count - held_out
    if rows < batch:
        rest = f" after {held_out} are held out for validation" if held_out else ""
        findings.error(
            "too_few_rows",
            "params.batch_size",
            f"The dataset has {max(rows, 0)} training rows{rest}, fewer than the batch size of {batch}.",
        )


def check_split(findings: Findings, *, batch: int, micro: int | None, gpus: int, unit: str) -> None:
    """Check that a batch divides evenly over GPUs and micro-batches; ``micro`` is None for token packing."""
    if batch % gpus:
        findings.error(
            "batch_not_divisible",
            "params.batch_size",
            f"{batch} {unit} can't be divided evenly across {gpus} GPUs.",
        )
        return
    per_gpu = batch // gpus
    if micro is not None and (micro < 1 or per_gpu % micro):
        findings.error(
            "micro_batch_not_divisor",
            "params.micro_batch_size",
            f"{per_gpu} {unit} per GPU can't be divided into micro-batches of {micro}.",
            str(largest_divisor(per_gpu, micro)),
        )
