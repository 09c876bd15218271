"""SFT with TRL's own trainer, timed: ``python -m trellis_train.comparison.trl_sft <settings.json>``.

Rows, batch, length limit, precision and optimizer are those of the platform's run. Prints one JSON object:
:class:`TrlSftTimes`.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from trellis_data.json_objects import read_objects

from trellis_train.comparison.trl_grpo import make_adapter


class TrlSftSettings(BaseModel):
    """What is trained, and how much of it."""

    model_path: str
    #: JSON Lines with ``prompt`` and ``answer``.
    data_path: str
    out_dir: str
    #: Conversations of a step, and of a pass through the model.
    batch: int
    micro_batch: int
    max_length: int
    learning_rate: float
    #: Of an adapter on all linear layers; 0 trains all weights.
    lora_rank: int = 0
    steps: int
    seed: int


class TrlSftTimes(BaseModel):
    """Seconds and tokens of every step."""

    #: When each step ended; the first entry is the start of the first step.
    ends_s: list[float]
    #: Tokens of each step without padding.
    tokens: list[int]


def main(arguments: list[str]) -> int:
    """Run the comparison of the settings file; the exit code of the process."""
    if len(arguments) != 1:
        print("usage: python -m trellis_train.comparison.trl_sft <settings.json>", file=sys.stderr)
        return 2
    settings = TrlSftSettings.model_validate_json(Path(arguments[0]).read_text())
    answer = sys.stdout
    sys.stdout = sys.stderr  # the answer stands alone there; libraries print
    print(train(settings).model_dump_json(), file=answer, flush=True)
    return 0


def train(settings: TrlSftSettings) -> TrlSftTimes:
    """Train ``settings.steps`` steps and time each."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer

    ends: list[float] = []
    tokens: list[int] = []

    class Steps(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            ends.append(time.monotonic())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(time.monotonic())
            tokens.append(0)

    class CountingTrainer(SFTTrainer):
        def training_step(self, model: Any, inputs: dict[str, Any], *more: Any, **named: Any) -> Any:
            tokens[-1] += int(inputs["attention_mask"].sum())
            return super().training_step(model, inputs, *more, **named)

    rows = [
        {
            "prompt": [{"role": "user", "content": row["prompt"]}],
            "completion": [{"role": "assistant", "content": row["answer"]}],
        }
        for row in read_objects(Path(settings.data_path))
    ]
    trainer = CountingTrainer(
        model=settings.model_path,
        args=SFTConfig(
            output_dir=settings.out_dir,
            per_device_train_batch_size=settings.micro_batch,
            gradient_accumulation_steps=settings.batch // settings.micro_batch,
            max_length=settings.max_length,
            max_steps=settings.steps,
            learning_rate=settings.learning_rate,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=True,
            seed=settings.seed,
            save_strategy="no",
            report_to="none",
            logging_steps=1,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(rows),
        peft_config=make_adapter(settings.lora_rank),
        callbacks=[Steps()],
    )
    tokens.append(0)
    trainer.train()
    return TrlSftTimes(ends_s=ends, tokens=tokens[: settings.steps])


if __name__ == "__main__":
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    sys.exit(main(sys.argv[1:]))
