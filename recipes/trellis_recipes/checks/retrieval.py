"""Checks of the training of an encoder that finds tools."""

from trellis_recipes.findings import Findings
from trellis_recipes.request import ComposeRequest


def check_retrieval(findings: Findings, request: ComposeRequest) -> None:
    """Check that one GPU is requested: negatives of a batch are not gathered over several processes."""
    if request.gpus > 1:
        findings.error("one_slot_only", "resources.gpus", "This recipe runs on a single GPU; request 1.")
