"""Responses of a model to tasks: one vLLM engine in this process, every request with a seed of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts.evaluation import EngineSettings

from trellis_train.agents.tooluse.tasks import BadTask, Task
from trellis_train.evaluate.drawing import choose_seed
from trellis_train.evaluate.inference import Generation, Inference, RequestRefused
from trellis_train.evaluate.rendering import encode, render_chat


@dataclass(frozen=True)
class Sampling:
    """How responses are drawn; at temperature 0 all of a task are the same."""

    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    seed: int = 0


#: For each task its responses; given by a model, or by a test.
Sampler = Callable[[Sequence[Task], Sampling], list[list[str]]]


def sample_with(engine: Inference, tasks: Sequence[Task], sampling: Sampling) -> list[list[str]]:
    """Sample ``samples`` responses to each task, in order.

    The same engine, tasks and seed give the same texts. ``BadTask`` where a prompt does not fit the model.
    """
    responses = [[""] * sampling.samples for _ in tasks]
    waiting = [(place, number) for place in range(len(tasks)) for number in range(sampling.samples)]
    waiting.reverse()
    while waiting or engine.pending:
        while waiting and engine.is_hungry:
            place, number = waiting.pop()
            _submit(engine, tasks[place], place, number, sampling)
        for answer in engine.step():
            place, number = map(int, answer.id.split(":"))
            if answer.error is not None:
                raise BadTask(f"{tasks[place].id}: {answer.error}")
            responses[place][number] = answer.text
    return responses


def _submit(engine: Inference, task: Task, place: int, number: int, sampling: Sampling) -> None:
    prompt = render_chat(engine.tokenizer, task.prompt)
    request = Generation(
        encode(engine.tokenizer, prompt, adds_special=False),
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        seed=choose_seed(sampling.seed, task.id, number),
    )
    try:
        engine.submit(f"{place}:{number}", request)
    except RequestRefused as refusal:
        raise BadTask(f"{task.id}: {refusal}") from refusal


def model_sampler(folder: Path, *, platform: str, max_model_len: int | None = None) -> Sampler:
    """Return a sampler that loads the model in ``folder``, generates the responses and shuts it down."""
    if not (folder / "config.json").is_file():
        raise BadTask(f"{folder} contains no model: config.json is missing")

    def sample(tasks: Sequence[Task], sampling: Sampling) -> list[list[str]]:
        settings = EngineSettings(max_model_len=max_model_len)
        engine: Any = Inference(folder, settings, platform=platform, seed=sampling.seed)
        try:
            if not getattr(engine.tokenizer, "chat_template", None):
                raise BadTask(f"the tokenizer in {folder} has no chat template")
            return sample_with(engine, tasks, sampling)
        finally:
            engine.close()

    return sample
