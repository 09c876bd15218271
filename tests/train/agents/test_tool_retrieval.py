"""Tool retrieval: loss, negatives, ranking, exact search, BM25, and trainings that stop and go on."""

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trellis
from safetensors.torch import load_file
from trellis_contracts.attempt import STOP_FILE
from trellis_contracts.events import Event, MetricsEvent
from trellis_testing.engine_runs import EngineRun, compose_job
from trellis_testing.retrieval import make_rows, write_encoder, write_rows
from trellis_train.agents.tooluse.retrieval.bm25 import BM25, K1, B
from trellis_train.agents.tooluse.retrieval.encoder import Encoder, hide_tokens, pool
from trellis_train.agents.tooluse.retrieval.index import ToolIndex
from trellis_train.agents.tooluse.retrieval.loss import symmetric_info_nce
from trellis_train.agents.tooluse.retrieval.queries import BadQueries, Corpus, draw_negatives, read_queries
from trellis_train.agents.tooluse.retrieval.ranking import measure_ranks, rank_of_targets
from trellis_train.agents.tooluse.retrieval.run import RetrievalRun, RunSettings
from trellis_train.agents.tooluse.retrieval.training import STATE_FILE, BadCheckpoint
from trellis_train.engines.retrieval import run_rank
from trellis_train.hooks.event_spool import Spool

#: What a query over all tools may take; measured are some 0.1 ms.
SEARCH_LIMIT_S = 0.010
#: About 20 s of one core.
STEPS = 250


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    return {split: make_rows(split) for split in ("train", "test")}


def test_the_loss_is_that_of_both_directions_by_hand() -> None:
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    tools = torch.tensor([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]])  # the third is a hard negative

    loss, accuracy = symmetric_info_nce(queries, tools, torch.tensor([0, 1]), temperature=0.5)

    # similarities / .5: query 0: 2, 1.2, -2; query 1: 0, 1.6, 0
    to_tool = [
        -math.log(math.exp(2) / (math.exp(2) + math.exp(1.2) + math.exp(-2))),
        -math.log(math.exp(1.6) / (1 + math.exp(1.6) + 1)),
    ]
    # tool 0: 2 against 0; tool 1: 1.6 against 1.2
    to_query = [
        -math.log(math.exp(2) / (math.exp(2) + 1)),
        -math.log(math.exp(1.6) / (math.exp(1.6) + math.exp(1.2))),
    ]
    assert loss.item() == pytest.approx((sum(to_tool) + sum(to_query)) / 4, abs=1e-6)
    assert accuracy.item() == 1.0


def test_queries_for_the_same_tool_are_no_negatives_of_each_other() -> None:
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    tool = torch.tensor([[1.0, 0.0]])

    loss, _ = symmetric_info_nce(queries, tool, torch.tensor([0, 0]))

    assert loss.item() == pytest.approx(0.0, abs=1e-6)


def test_hard_negatives_are_four_other_tools_of_the_category(rows: dict[str, list[dict[str, Any]]]) -> None:
    corpus = Corpus()
    queries = read_queries(rows["train"], corpus, "rows")
    unnamed = [type(query)(query.text, query.tool) for query in queries[:50]]

    for batch in (queries[:50], unnamed):
        drawn = draw_negatives(batch, corpus, corpus.siblings(), 4, seed=1, step=0)
        for query, negatives in zip(batch, drawn, strict=True):
            assert len({*negatives} - {query.tool}) == 4
            assert {corpus.categories[each] for each in negatives} == {corpus.categories[query.tool]}
        assert drawn == draw_negatives(batch, corpus, corpus.siblings(), 4, seed=1, step=0)


def test_the_templates_of_the_test_are_unseen_in_training(rows: dict[str, list[dict[str, Any]]]) -> None:
    templates = {
        split: {part for row in found for part in row["extra_info"]["template"].split("+")}
        for split, found in rows.items()
    }
    corpus = Corpus()
    read_queries(rows["train"], corpus, "train")

    assert templates["train"].isdisjoint(templates["test"])
    assert len(corpus) == 1200


def test_ranks_recall_and_reciprocal_rank() -> None:
    scores = np.array([[3, 2, 1], [1, 2, 3], [1, 1, 0]], dtype=np.float32)

    ranks = rank_of_targets(scores, [0, 0, 1])

    assert ranks.tolist() == [1, 3, 2]  # a tie counts against the right tool
    assert measure_ranks(ranks)["recall@1"] == pytest.approx(1 / 3)
    assert measure_ranks(ranks)["recall@5"] == 1.0
    assert measure_ranks(ranks)["mrr@10"] == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert measure_ranks(np.array([11]))["mrr@10"] == 0.0


def test_bm25_is_the_formula_by_hand() -> None:
    bm25 = BM25(["red car", "red red bus line"])

    scores = bm25.scores("Bus")

    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    assert scores[0] == 0.0
    assert scores[1] == pytest.approx(idf * (K1 + 1) / (1 + K1 * (1 - B + B * 4 / 3)), rel=1e-6)
    assert BM25(["天气预报", "股票价格"]).scores("查天气").argmax() == 0


def test_padding_changes_no_vector() -> None:
    states = torch.arange(12.0).reshape(1, 4, 3)
    mask = torch.tensor([[1, 1, 0, 0]])

    assert pool(states, mask, "mean").tolist() == [[1.5, 2.5, 3.5]]
    assert pool(states, mask, "last").tolist() == [[3.0, 4.0, 5.0]]


def test_hidden_tokens_leave_every_text_with_some() -> None:
    mask = torch.ones(200, 2, dtype=torch.long)

    hidden = hide_tokens(mask, 0.9)

    assert hidden.any(dim=1).all()
    assert hidden.sum() < mask.sum()


def test_a_query_over_1200_tools_is_answered_exactly_and_within_its_time(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((1200, 1024)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ToolIndex([f"tool-{place}" for place in range(1200)], vectors).save(tmp_path)
    index = ToolIndex.load(tmp_path)

    found = index.search(vectors[7], 20)

    exact = np.argsort(-(vectors @ vectors[7]), kind="stable")[:20]
    assert [name for name, _ in found] == [f"tool-{place}" for place in exact]
    taken = []
    for place in range(50):
        started = time.perf_counter()
        index.search(vectors[place])
        taken.append(time.perf_counter() - started)
    assert sorted(taken)[len(taken) // 2] < SEARCH_LIMIT_S


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"prompt": []}, "does not end with a query"),
        ({"extra_info": {"index": 0}}, "extra_info.tool is missing"),
        ({"extra_info": {"tool": "{"}}, "is not a valid tool"),
        ({"reward_model": {"ground_truth": "another"}}, "the reference is 'another'"),
    ],
)
def test_rows_that_name_no_tool_are_told(
    rows: dict[str, list[dict[str, Any]]], change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadQueries, match=f"row 2 of rows: .*{reason}"):
        read_queries([rows["train"][0], {**rows["train"][1], **change}], Corpus(), "rows")


# -- real trainings, on a CPU


class StoppingSpool(Spool):
    """Asks its own attempt to stop at a step."""

    def __init__(self, attempt_dir: str, stop_at: int | None) -> None:
        super().__init__(attempt_dir, "trainer")
        self._stop_file, self._stop_at = Path(attempt_dir) / STOP_FILE, stop_at

    def write(self, event: Event) -> None:
        super().write(event)
        if isinstance(event, MetricsEvent) and event.step == self._stop_at:
            self._stop_file.touch()


class Training:
    """Attempts of one job, in this process."""

    def __init__(self, folder: Path, rows: dict[str, list[dict[str, Any]]], **params: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.params = folder, params
        self.model = write_encoder(folder / "model", rows["train"])
        self.rows = {split: write_rows(found, folder / f"{split}.parquet") for split, found in rows.items()}

    def attempt(
        self, number: int, *, stop_at: int | None = None, resume_from: str | None = None
    ) -> EngineRun:
        """Run one; whether it was stopped must be as planned."""
        run = compose_job(
            self.folder,
            recipe="agent_retrieval",
            model=self.model,
            rows=self.rows["train"],
            validation=self.rows["test"],
            params=self.params,
            attempt=number,
            resume_from=resume_from,
        )
        is_stopped = run_rank(run.spec, StoppingSpool(run.spec.attempt_dir, stop_at))
        assert is_stopped == (stop_at is not None)
        return run


def test_a_resumed_training_ends_with_the_same_weights(
    tmp_path: Path, rows: dict[str, list[dict[str, Any]]]
) -> None:
    few = {"train": rows["train"][:90], "test": rows["test"][:30]}
    params = {"total_steps": 6, "batch_size": 16, "token_dropout": 0.3}
    whole = Training(tmp_path / "whole", few, **params).attempt(1)
    halved = Training(tmp_path / "halved", few, **params)
    stopped = halved.attempt(1, stop_at=3)

    resumed = halved.attempt(2, resume_from=stopped.checkpoint()["path"])

    phases = [(event["phase"], event["step"]) for event in stopped.events("progress")]
    assert phases[phases.index(("validating", 0)) + 1] == ("training", 0)  # not only once a step is done
    assert stopped.checkpoint()["step"] == 3
    assert sorted(resumed.curve("train/loss")) == [4, 5, 6]
    left, right = (
        load_file(Path(run.checkpoint()["hf_path"]) / "model.safetensors") for run in (whole, resumed)
    )
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_computing_activations_again_gives_the_same_weights(
    tmp_path: Path, rows: dict[str, list[dict[str, Any]]]
) -> None:
    few = {"train": rows["train"][:90], "test": rows["test"][:30]}
    params = {"total_steps": 2, "batch_size": 16, "token_dropout": 0.3}

    kept, again = (
        Training(tmp_path / str(flag), few, **params, gradient_checkpointing=flag).attempt(1)
        for flag in (False, True)
    )

    left, right = (
        load_file(Path(run.checkpoint()["hf_path"]) / "model.safetensors") for run in (kept, again)
    )
    for name in left:
        torch.testing.assert_close(left[name], right[name])


def test_a_checkpoint_that_is_not_whole_is_refused(
    tmp_path: Path, rows: dict[str, list[dict[str, Any]]]
) -> None:
    few = {"train": rows["train"][:40], "test": rows["test"][:10]}
    training = Training(tmp_path, few, total_steps=2, batch_size=16)
    stopped = training.attempt(1, stop_at=1)
    state = Path(stopped.checkpoint()["path"]) / STATE_FILE
    state.write_bytes(state.read_bytes()[:1000])

    with pytest.raises(BadCheckpoint, match="cannot be resumed"):
        training.attempt(2, resume_from=stopped.checkpoint()["path"])


def test_too_few_rows_for_a_batch_are_refused(tmp_path: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    few = {"train": rows["train"][:10], "test": rows["test"][:10]}
    run = Training(tmp_path, few)
    path = run.rows["train"].path

    with pytest.raises(BadQueries, match="too few for a batch"):
        RetrievalRun(
            RunSettings.from_values(
                {"model_path": str(run.model), "train_file": str(path), "output_dir": "o", "batch_size": 11}
            ),
            None,
            None,
        )


@pytest.mark.timeout(300)
def test_training_finds_the_right_tool_among_1200_far_more_often(
    tmp_path: Path, rows: dict[str, list[dict[str, Any]]]
) -> None:
    """B9: recall@10 over all tools gains .3 and more, for requests of templates that were never seen."""
    training = Training(
        tmp_path, rows, total_steps=STEPS, learning_rate=5e-3, hard_negatives=2, token_dropout=0.3
    )

    run = training.attempt(1)

    first, last = run.metrics(0), run.metrics(STEPS)
    assert first["eval/tools"] == 1200
    assert last["eval/recall@10"] >= first["baseline/untrained/recall@10"] + 0.3
    assert first["baseline/bm25/recall@10"] > first["baseline/untrained/recall@10"]
    assert [last[f"eval/recall@{k}"] for k in (1, 5, 10, 20)] == sorted(
        last[f"eval/recall@{k}"] for k in (1, 5, 10, 20)
    )
    folder = Path(run.checkpoint()["hf_path"])
    encoder, index = Encoder.load(folder), ToolIndex.load(folder)
    query = encoder.encode([rows["train"][0]["prompt"][0]["content"]]).numpy()[0]
    names = [name for name, _ in index.search(query, 10)]
    assert rows["train"][0]["reward_model"]["ground_truth"] in names


@pytest.mark.slow
def test_a_trained_retriever_is_asked_on_the_command_line_and_from_python(
    tmp_path: Path, rows: dict[str, list[dict[str, Any]]]
) -> None:
    few = {"train": rows["train"][:90], "test": rows["test"][:30]}
    training = Training(tmp_path, few, total_steps=2, batch_size=16)
    folder = Path(training.attempt(1).checkpoint()["hf_path"])
    request = rows["train"][0]["prompt"][0]["content"]
    query = Encoder.load(folder).encode([request]).numpy()[0]
    nearest = ToolIndex.load(folder).search(query, 3)

    command = [sys.executable, "-m", "trellis_cli", "agent", "search"]
    done = subprocess.run(
        [*command, str(folder), request, "how warm?", "--count", "3", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = trellis.search_tools(folder, request, 3)

    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert [each["tool"] for each in first["tools"]] == [name for name, _ in nearest]
    assert len(second["tools"]) == 3
    assert [name for name, _ in found] == [name for name, _ in nearest]
    with pytest.raises(trellis.AgentTrainingFailed, match="has no index of tools"):
        trellis.search_tools(training.model, request)
