"""Samples of evaluations."""

from trellis_contracts.evaluation import Sample, Verdict


def make_sample(position: int, **more: object) -> Sample:
    """Make a sample, correct unless told otherwise; prompts share their beginning."""
    score = float(more.setdefault("score", 1.0))  # type: ignore[arg-type]
    defaults = {
        "key": f"p{position}", "prompt": f"Q: example\nA: 1\n\nQ: number {position}?\nA:",
        "output": "it is 1", "gold": "1",
        "verdict": Verdict.CORRECT if score else Verdict.WRONG, "parts": {"strict": score},
    }  # fmt: skip
    return Sample.model_validate({"position": position} | defaults | more)
