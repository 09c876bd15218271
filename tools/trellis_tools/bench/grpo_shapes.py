"""What GRPO is compared on: models, batches and lengths of responses."""

from dataclasses import dataclass

from trellis_cli.errors import ExitCode, Problem

ALL = "all"


@dataclass(frozen=True)
class Shape:
    """One comparison. Responses have a fixed length, so that both sides sample the same number of tokens."""

    name: str
    #: A model of the starter package, by its size there; None: a pretrained one that the caller brings.
    model: str | None
    prompts: int
    group_size: int
    response_tokens: int
    steps: int
    #: Steps that warm caches up on both sides.
    warm_up: int
    #: The ratio of ours to TRL's tokens per second that is promised, if any.
    bound: float | None
    updates: int = 2
    prompt_tokens: int = 64
    most_in_a_pass: int = 64
    preset: str = "cpu-tiny"
    learning_rate: float = 2e-4
    #: Of an adapter that both sides train; 0: all weights.
    lora_rank: int = 0

    @property
    def responses(self) -> int:
        """Of a step."""
        return self.prompts * self.group_size

    @property
    def mini_batch(self) -> int:
        """Responses of an update."""
        return self.responses // self.updates

    def micro_batch(self, ranks: int) -> int:
        """Return the responses per pass through the model of each rank."""
        return min(self.most_in_a_pass, self.mini_batch // ranks)

    @property
    def tokens(self) -> int:
        """Sampled in a step."""
        return self.responses * self.response_tokens


def _starter(response_tokens: int, *, steps: int, bound: float | None) -> Shape:
    name = f"starter-{response_tokens}"
    return Shape(name, "starter", 32, 8, response_tokens, steps=steps, warm_up=2, bound=bound)


SHAPES = {
    shape.name: shape
    for shape in (
        _starter(16, steps=10, bound=None),
        _starter(64, steps=8, bound=1.0),
        _starter(256, steps=6, bound=1.0),
        Shape("20m-512", "20m", 4, 8, 512, steps=4, warm_up=1, bound=1.0),
    )
}
#: What is measured unless more is asked for: minutes, not a quarter of an hour.
QUICK = ("starter-16", "starter-64")


def choose_shapes(asked: str | None) -> list[Shape]:
    """Parse ``--shapes``: names separated by commas, or ``all``."""
    if asked == ALL:
        return list(SHAPES.values())
    names = asked.split(",") if asked else QUICK
    unknown = [name for name in names if name not in SHAPES]
    if unknown:
        raise Problem(
            f"unknown shape: {', '.join(unknown)}",
            hint=f"known: {', '.join(SHAPES)}, {ALL}",
            exit_code=ExitCode.USAGE,
        )
    return [SHAPES[name] for name in names]
