"""The child process that holds a reward model: a JSON line with a batch in, a JSON line with scores out.

``python -m trellis_train.rewards.reward_model_worker <folder> <options>``.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO


def main(arguments: list[str]) -> None:
    """Load the model, say so, and answer until the input ends."""
    # Libraries print what they like; the answers go where they cannot.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    options = json.loads(arguments[1])
    try:
        model = RewardModel(Path(arguments[0]), **options)
    except Exception as error:  # noqa: BLE001 - the edge of the process: its parent tells the person
        _answer(answers, {"error": f"{type(error).__name__}: {error}"[:500]})
        return
    _answer(answers, {"device": model.device})
    for line in sys.stdin:
        try:
            reply: dict[str, Any] = {"scores": model.score(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - one batch must not end the process
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        _answer(answers, reply)


def _answer(answers: TextIO, reply: dict[str, Any]) -> None:
    answers.write(json.dumps(reply) + "\n")
    answers.flush()


class RewardModel:
    """A sequence classifier with one output."""

    def __init__(self, folder: Path, *, squash: bool, max_tokens: int, batch_size: int) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self._torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._squash, self._max_tokens, self._batch_size = squash, max_tokens, batch_size
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        # Where a text is too long its beginning goes: the response is at its end.
        self._tokenizer.truncation_side = "left"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
        if model.config.num_labels != 1:
            raise ValueError(
                f"it has {model.config.num_labels} outputs; a reward model must have exactly one"
            )
        model.config.pad_token_id = self._tokenizer.pad_token_id
        self._model = model.to(self.device).eval()

    def score(self, batch: list[dict[str, Any]]) -> list[float]:
        """Return one number for each pair of messages and response."""
        texts = [self._write(each["messages"], each["response"]) for each in batch]
        scores: list[float] = []
        for start in range(0, len(texts), self._batch_size):
            scores += self._score_texts(texts[start : start + self._batch_size])
        return scores

    def _write(self, messages: list[dict[str, str]], response: str) -> str:
        """Render the conversation with the model's template; without one, join prompt and response."""
        if self._tokenizer.chat_template:
            conversation = [*messages, {"role": "assistant", "content": response}]
            return str(self._tokenizer.apply_chat_template(conversation, tokenize=False))
        return "\n\n".join([*(message["content"] for message in messages), response])

    def _score_texts(self, texts: list[str]) -> list[float]:
        # The template has written the special tokens already.
        encoded = self._tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self._max_tokens,
            add_special_tokens=not self._tokenizer.chat_template,
            return_tensors="pt",
        ).to(self.device)
        with self._torch.inference_mode():
            logits = self._model(**encoded).logits[:, 0].float()
        return [float(value) for value in (logits.sigmoid() if self._squash else logits).cpu()]


if __name__ == "__main__":
    main(sys.argv[1:])
