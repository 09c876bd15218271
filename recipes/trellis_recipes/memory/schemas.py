"""An estimate of a run's memory: phases, their parts, and how each was computed."""

from pydantic import Field
from trellis_contracts.recipe import Strict, Text


class MemoryPart(Strict):
    """One thing that lies in memory during a phase."""

    name: str = Field(description="weights, gradients, optimizer, activations, logits, kv_cache ...")
    title: Text
    bytes: int = Field(description="On one GPU; on a CPU platform, of one slot.")
    how: Text = Field(description="How it was computed, with the numbers.")


class MemoryPhase(Strict):
    """What is in memory at the same time."""

    name: str = Field(description="rollout, log_probs, update ...; or train and evaluation.")
    title: Text
    parts: list[MemoryPart]
    total_bytes: int


class MemoryEstimate(Strict):
    """What a run is expected to need. It refuses nothing."""

    parameters: int = Field(description="Parameters of the model that is trained.")
    phases: list[MemoryPhase]
    peak_phase: str = Field(description="The phase that needs the most.")
    per_gpu_bytes: int = Field(description="The peak on one GPU; on a CPU platform, of one slot.")
    peak_bytes: int = Field(description="The peak of all GPUs or slots of the job together.")
    available_bytes: int | None = Field(
        description="One GPU's memory, or that of the machine on a CPU platform; null where unknown."
    )
    assumptions: list[Text]
    warnings: list[Text]
