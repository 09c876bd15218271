"""What is asked of the composition, and what comes out of it."""

from typing import Any

from pydantic import Field
from trellis_contracts.recipe import Engine, Strict

from trellis_recipes.issues import Issue
from trellis_recipes.memory.architecture import Architecture


class LaunchPart(Strict):
    """What is known only when an attempt is launched: where its files lie, its start, and the nodes.

    ``validation_path`` is given only where the job has a validation dataset. Without
    one, the rows held out (parameter ``validation_rows``) are expected in
    ``validation.parquet`` beside ``train_path``.
    """

    #: GPUs of each node of the cluster; None where it cannot be asked: the job's are then taken to be on one.
    node_gpus: list[int] | None = None
    model_path: str
    train_path: str
    validation_path: str | None = None
    checkpoint_dir: str
    resume_from: str | None = None


class ComposeRequest(LaunchPart):
    """A job's choices, before any of them is checked; preview and submission guess the launch part."""

    recipe: str
    preset: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    overrides: dict[str, Any] = Field(default_factory=dict)
    platform: str = Field(pattern="^(cpu|cuda)$")
    gpus: int = Field(ge=1)
    #: The model's shape, for the weight-sync bucket and the size of passes; None where it is unknown.
    architecture: Architecture | None = None
    #: What the model's files hold; None takes what follows from its shape.
    parameter_count: int | None = None
    #: Memory of the smallest GPU that it may run on, or of the machine on a CPU platform; None where unknown.
    #: The preset is chosen by it, and the size of passes.
    device_memory_bytes: int | None = Field(default=None, ge=1)
    #: Whether flash-attn is installed where the job runs; verl cannot pack sequences without it.
    has_flash_attention: bool = True
    seed: int = Field(ge=0)
    #: Rows of the training dataset, for checks against batch sizes.
    row_count: int | None = None
    #: Whether the reference answers are whole turns of conversations, which hardly any response repeats.
    has_uncheckable_answers: bool = False

    @property
    def parameters(self) -> int | None:
        """Parameters of the model, where they are known."""
        # Quantised files hold two weights in a byte, or one: their number says nothing of the parameters.
        if self.parameter_count and not self.base_bits:
            return self.parameter_count
        return self.architecture.parameters if self.architecture else None

    @property
    def base_bits(self) -> int:
        """Bits in which the model's files hold its weights (bitsandbytes); 0 where they are not quantised."""
        return self.architecture.base_bits if self.architecture else 0


class Composition(Strict):
    """A complete engine configuration, or the errors that stand in its way.

    ``config``, ``engine_overrides`` and ``command`` are filled in with errors too, as
    far as they can be (for the preview); only a composition without errors may be run.
    """

    engine: Engine
    preset: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    #: Names of the parameters that were left empty and derived.
    derived: list[str] = Field(default_factory=list)
    #: Engine settings by dotted key, in the order in which they apply, without those of the launch part.
    settings: dict[str, Any] = Field(default_factory=dict)
    engine_overrides: list[str] = Field(default_factory=list)
    config: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    command: str = ""
    warnings: list[Issue] = Field(default_factory=list)
    errors: list[Issue] = Field(default_factory=list)
