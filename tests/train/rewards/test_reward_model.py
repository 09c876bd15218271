"""A reward model in its child process: the same numbers as transformers alone, in few batches."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.dry_run import DryRunTask
from trellis_contracts.recipe import DataFormat
from trellis_contracts.rewards import RewardResources, RewardTerm
from trellis_contracts.spec import DataSource, ModelSource
from trellis_testing.reward_models import save_reward_model
from trellis_train.rewards.dry_run import carry_out
from trellis_train.rewards.probes import BadDryRun
from trellis_train.rewards.reward_model import RewardModelScorer
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

# Each scorer is a process that imports torch and transformers.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny seeded sequence classifier with one output."""
    return save_reward_model(tmp_path_factory.mktemp("reward-model"), outputs=1)


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
    save_reward_model(tmp_path, outputs=3)

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


@pytest.fixture
def environments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Those of children that were to be started; none is."""
    found: list[dict[str, str]] = []

    async def refuse(*_: Any, env: dict[str, str], **__: Any) -> None:
        found.append(env)
        raise RewardUnusable("no child is started here")

    monkeypatch.setattr("asyncio.create_subprocess_exec", refuse)
    return found


TERM = RewardTerm(
    name="reward_model",
    options={"model": "mdl_x", "squash": False, "max_tokens": 256, "batch_size": 4},
)
RESOURCES = RewardResources(models={"mdl_x": ModelSource(model_id="mdl_x", path="/models/x")})


def test_a_dry_run_scores_on_the_cpu(
    environments: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([{"prompt": "2+2?", "answer": "4"}]), path)
    task = DryRunTask(
        rewards=[TERM],
        resources=RESOURCES,
        data=DataSource(
            dataset_id="dst_x",
            paths=[str(path)],
            format=DataFormat.PROMPT_ANSWER,
            sha256="0" * 64,
            row_count=1,
        ),
        row_count=1,
        seed=0,
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    with pytest.raises(BadDryRun, match="no child is started here"):
        asyncio.run(carry_out(task, tmp_path))

    assert [each["CUDA_VISIBLE_DEVICES"] for each in environments] == [""]
