"""A reward model in its child process: the same numbers as transformers alone, in few batches."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.spec import ModelSource
from trellis_train.rewards.reward_model import RewardModelScorer
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable
from trellis_train.starter.model import make_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny seeded sequence classifier with one output."""
    return save_model(tmp_path_factory.mktemp("reward-model"), outputs=1)


def save_model(folder: Path, *, outputs: int) -> Path:
    import torch
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, num_labels=outputs,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    Qwen2ForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def score_all(folder: Path, responses: list[str], **options: Any) -> list[float]:
    async def go() -> list[float]:
        source = ModelSource(model_id="mdl_x", path=str(folder))
        scorer = RewardModelScorer(source, **{"squash": False, "max_tokens": 256, "batch_size": 4, **options})
        try:
            samples = [
                Sample(response=text, messages=[{"role": "user", "content": "2+2?"}]) for text in responses
            ]
            return list(await asyncio.gather(*(scorer.score(sample) for sample in samples)))
        finally:
            await scorer.close()

    return asyncio.run(go())


def test_scores_are_those_of_the_model(folder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    responses = ["4", "a much longer answer, which is padded against", "5", "", "22", "four"]

    found = score_all(folder, responses)

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    for response, score in zip(responses, found, strict=True):
        messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": response}]
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        with torch.inference_mode():
            wanted = model(**tokenizer(text, return_tensors="pt", add_special_tokens=False)).logits[0, 0]
        assert score == pytest.approx(float(wanted), abs=1e-5)
    assert len({round(score, 5) for score in found}) > 1


def test_squashed_scores_lie_between_0_and_1(folder: Path) -> None:
    assert all(0 < score < 1 for score in score_all(folder, ["4", "x" * 5_000], squash=True))


def test_a_model_with_several_outputs_is_refused(tmp_path: Path) -> None:
    save_model(tmp_path, outputs=3)

    with pytest.raises(RewardUnusable, match="3 outputs"):
        score_all(tmp_path, ["4"])


def test_a_model_that_cannot_be_used_is_tried_once_for_all_who_wait(tmp_path: Path) -> None:
    starts = 0

    class CountedScorer(RewardModelScorer):
        async def _start(self) -> Any:
            nonlocal starts
            starts += 1
            raise RewardUnusable("it is broken")

    async def go() -> list[Any]:
        source = ModelSource(model_id="mdl_x", path=str(tmp_path))
        scorer = CountedScorer(source, squash=False, max_tokens=8, batch_size=2)
        scores = (scorer.score(Sample(response=str(number))) for number in range(9))
        return await asyncio.gather(*scores, return_exceptions=True)

    assert all(isinstance(each, RewardUnusable) for each in asyncio.run(go()))
    assert starts == 1


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RewardUnusable, match="cannot be used"):
        score_all(tmp_path, ["4"])
