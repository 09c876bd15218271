"""Preference runs for the proofs, each made once, and what is measured on their checkpoints."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trellis_contracts.recipe import DataFormat
from trellis_data.samples.preferences import Pair, make_pairs, write_preferences
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_testing.starter import Starter

SEED = 5
STEPS = 40
PARAMS = {"total_steps": STEPS, "validate_every": 0, "validation_rows": 0, "learning_rate": 5e-4}


class PreferenceRuns:
    """Runs on the taught starter model, with pairs whose prompts are new to none of the two sides."""

    def __init__(self, folder: Path, starter: Starter) -> None:
        self.folder = folder
        self.starter = starter
        self._files = write_preferences(folder / "data", SEED)
        self._done: dict[str, EngineRun] = {}

    def compose(self, name: str, recipe: str, *, attempt: int = 1, **choices: Any) -> EngineRun:
        """An attempt that is ready to run; ``resume_from`` and parameters are among the choices."""
        resume_from = choices.pop("resume_from", None)
        kind, form = ("preference", DataFormat.PREFERENCE)
        if recipe == "kto":
            kind, form = ("unpaired", DataFormat.UNPAIRED_PREFERENCE)
        train, validation = (
            Rows.from_json_lines(self._files[f"{kind}_{part}"], form) for part in ("train", "validation")
        )
        return compose_job(
            self.folder / name,
            recipe=recipe,
            model=self.starter.taught,
            rows=train,
            validation=validation,
            params={**PARAMS, **choices},
            seed=SEED,
            attempt=attempt,
            resume_from=resume_from,
        )

    def get(self, name: str, recipe: str, **choices: Any) -> EngineRun:
        """The run of that name, made at the first call."""
        if name not in self._done:
            self._done[name] = run_engine(self.compose(name, recipe, **choices))
        return self._done[name]


def first_and_last(run: EngineRun, key: str) -> tuple[float, float]:
    """A metric before training and at its end."""
    curve = run.curve(key)
    assert min(curve) == 0, curve
    assert max(curve) == run.spec.params["total_steps"], curve
    return curve[0], curve[max(curve)]


@contextmanager
def on_one_thread() -> Iterator[None]:
    """For answers one by one: more threads than that only wait for each other, long on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def log_probability(model: Any, tokenizer: Any, prompt: str, answer: str) -> float:
    """Of an answer, summed over its tokens; independent of the code that trained."""
    import torch

    asked = [{"role": "user", "content": prompt}]
    told = [*asked, {"role": "assistant", "content": answer}]
    start = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_dict=True)["input_ids"]
    ids = tokenizer.apply_chat_template(told, return_dict=True)["input_ids"]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(logits[at - 1, ids[at]]) for at in range(len(start), len(ids)))


def share_of_pairs_learned(trained: Path, base: Path) -> float:
    """Held-out pairs whose chosen answer gained on the rejected one, against the model before training."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(trained)
    after, before = (AutoModelForCausalLM.from_pretrained(path, dtype="float32") for path in (trained, base))
    _, pairs = make_pairs(SEED)

    def gain(pair: Pair, answer: str) -> float:
        return log_probability(after, tokenizer, pair.prompt, answer) - log_probability(
            before, tokenizer, pair.prompt, answer
        )

    with on_one_thread():
        return sum(gain(pair, pair.chosen) > gain(pair, pair.rejected) for pair in pairs) / len(pairs)


def share_of_pairs_ranked(trained: Path) -> float:
    """Held-out pairs whose chosen answer a reward model scores higher, read as any program would."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(trained, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(trained)
    _, pairs = make_pairs(SEED)

    def score(pair: Pair, answer: str) -> float:
        said = [{"role": "user", "content": pair.prompt}, {"role": "assistant", "content": answer}]
        tokens = tokenizer.apply_chat_template(said, return_tensors="pt", return_dict=True)
        with torch.no_grad():
            return float(model(**tokens).logits)

    with on_one_thread():
        return sum(score(pair, pair.chosen) > score(pair, pair.rejected) for pair in pairs) / len(pairs)


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text())
