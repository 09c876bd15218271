"""Supervised training for real: held-out loss falls, packing changes nothing, a resumed run ends alike."""

import hashlib
import json
import math
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.tensor import DTensor
from trellis_api.jobs.alarms.detector import observe
from trellis_api.jobs.alarms.watch import Watch
from trellis_contracts.recipe import DataFormat
from trellis_testing.adapters import expect_only_the_adapter_learned
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_testing.proof_report import report_proof
from trellis_testing.watched_metrics import watched_metrics
from trellis_train.starter.__main__ import main as make_starter

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]
proves_sft, proves_cpt = pytest.mark.proves("sft"), pytest.mark.proves("cpt")
STEPS = 18
#: 450 rows for training are 14 steps an epoch: a checkpoint inside the epoch, and one at its end.
INSIDE, END_OF_EPOCH = 7, 14
PARAMS: dict[str, Any] = {
    "total_steps": STEPS,
    "batch_size": 32,
    "validate_every": 6,
    "validation_rows": 50,
    "learning_rate": 2e-3,
    "save_every": INSIDE,
}
#: Alarms that an exploding run raises.
EXPLOSIONS = {"loss_not_finite", "loss_exploding", "grad_norm_exploding"}
#: What the trainer learns and measures; times are left out.
MEASURED = ("train/loss", "train/grad_norm", "train/lr", "train/global_tokens", "val/loss")


class SupervisedRuns:
    """Every run is made when it is first asked for, and once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_starter(["--model", str(folder / "model"), "--data", str(folder / "data"), "--seed", "0"])
        self._lessons = Rows.from_json_lines(folder / "data" / "sft.jsonl", DataFormat.PROMPT_ANSWER)
        self._documents = _write_documents(folder / "data")
        self.get = cache(self._make)

    def _make(self, name: str, recipe: str, **params: Any) -> EngineRun:
        return run_engine(self.compose(name, recipe, **params))

    def compose(
        self, name: str, recipe: str, *, attempt: int = 1, resume_from: str | None = None, **params: Any
    ) -> EngineRun:
        return compose_job(
            self._folder / name,
            recipe=recipe,
            model=self._folder / "model",
            rows=self._documents if recipe == "cpt" else self._lessons,
            params={**PARAMS, **params},
            seed=3,
            attempt=attempt,
            resume_from=resume_from,
        )


def _write_documents(folder: Path) -> Rows:
    """The lessons as running text, several to a document."""
    lines = [json.loads(line) for line in (folder / "sft.jsonl").read_text().splitlines()]
    sentences = [f"{row['prompt']} {row['answer']}" for row in lines]
    documents = [{"text": "\n".join(sentences[start : start + 4])} for start in range(0, len(sentences), 4)]
    path = folder / "documents.jsonl"
    path.write_text("\n".join(json.dumps(document) for document in documents))
    return Rows.from_json_lines(path, DataFormat.TEXT)


#: Blocks of documents are longer than single lessons: fewer to a step, fewer documents held out.
BLOCKS = {"max_length": 64, "batch_size": 16, "validation_rows": 12}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> SupervisedRuns:
    return SupervisedRuns(tmp_path_factory.mktemp("supervised"))


@pytest.fixture(scope="module")
def full(runs: SupervisedRuns) -> EngineRun:
    return runs.get("sft_full", "sft")


@pytest.fixture(scope="module")
def control(runs: SupervisedRuns) -> EngineRun:
    return runs.get("sft_control", "sft", learning_rate=0, total_steps=6, save_every=0)


def held_out(run: EngineRun) -> list[float]:
    return list(run.curve("val/loss").values())


def expect_lower_loss(name: str, run: EngineRun, control: EngineRun, *, by: float) -> None:
    """The loss on rows held out ends below that of a run which learns nothing."""
    before, after = held_out(control)[-1], held_out(run)[-1]
    report_proof(name, measure="held-out loss", control=before, trained=after, seconds=run.seconds)
    assert after < before - by


@proves_sft
def test_full_fine_tuning_lowers_the_held_out_loss(full: EngineRun, control: EngineRun) -> None:
    assert list(full.curve("val/loss")) == [6, 12, 18]
    expect_lower_loss("sft", full, control, by=1.0)
    assert full.curve("val/perplexity")[STEPS] == pytest.approx(math.exp(held_out(full)[-1]))


@proves_sft
def test_an_adapter_lowers_it_too_and_leaves_the_base_alone(runs: SupervisedRuns, control: EngineRun) -> None:
    run = runs.get("sft_lora", "sft", lora_rank=8, learning_rate=1e-2, save_every=0)

    expect_lower_loss("sft with LoRA", run, control, by=0.5)
    expect_only_the_adapter_learned(Path(run.checkpoint()["path"]), Path(run.spec.model.path))


@proves_sft
def test_packed_and_padded_conversations_give_the_same_losses(runs: SupervisedRuns, full: EngineRun) -> None:
    """No attention from one conversation to another, and nothing of padding in the mean."""
    padded = runs.get("sft_padded", "sft", packing=False, micro_batch_size=8, save_every=0)

    assert full.config["model"]["use_remove_padding"] is True
    assert padded.config["model"]["use_remove_padding"] is False
    for key in ("train/loss", "val/loss", "train/grad_norm"):
        for step, value in full.curve(key).items():
            # Rounding differs, and grows with the steps.
            if step <= 6:
                assert padded.curve(key)[step] == pytest.approx(value, rel=1e-3), (key, step)


@proves_cpt
def test_continued_pre_training_lowers_the_perplexity_of_held_out_documents(runs: SupervisedRuns) -> None:
    run = runs.get("cpt", "cpt", **BLOCKS, save_every=0)
    control = runs.get("cpt_control", "cpt", **BLOCKS, learning_rate=0, total_steps=6, save_every=0)

    expect_lower_loss("cpt", run, control, by=1.0)
    assert run.curve("val/perplexity")[STEPS] < control.curve("val/perplexity")[6] / math.e
    assert Path(run.checkpoint()["hf_path"]).is_dir()


@proves_sft
def test_an_absurd_learning_rate_raises_an_alarm_and_a_good_one_does_not(
    runs: SupervisedRuns, full: EngineRun
) -> None:
    absurd = runs.get("sft_absurd", "sft", learning_rate=1.0, total_steps=12, validate_every=0, save_every=0)

    assert alarms_of(absurd) & EXPLOSIONS, absurd.curve("train/loss")
    assert alarms_of(full) == set(), full.curve("train/loss")


@pytest.mark.proves("sft")
def test_a_run_logs_what_alarms_watch(full: EngineRun) -> None:
    for key in watched_metrics(full.spec.engine, "sft", full.config):
        steps = (6, 12, 18) if key.startswith("val/") else range(1, STEPS + 1)
        assert list(full.curve(key)) == list(steps), key
        assert all(map(math.isfinite, full.curve(key).values())), key


def alarms_of(run: EngineRun) -> set[str]:
    """What the rules say to the events in the run's own spool, in the order in which it wrote them."""
    watch, changes = Watch(), []
    for event in run.events("metrics"):
        values = {key: float(value) for key, value in event["values"].items()}
        changes += observe(watch, [(event["step"], values)])
    return {change.code for change in changes if change.kind == "raised"}


@proves_sft
@pytest.mark.parametrize("step", [INSIDE, END_OF_EPOCH])
def test_a_resumed_run_ends_bit_by_bit_like_one_never_stopped(
    step: int, runs: SupervisedRuns, full: EngineRun
) -> None:
    """Inside an epoch and at its end: what was measured, the weights and the optimizer."""
    folder = Path(full.checkpoint(STEPS)["path"])
    expected = _hash_states(folder)
    assert len(expected) >= 3
    start = full.checkpoint(step)["path"]
    shutil.rmtree(folder)

    resumed = run_engine(runs.compose("sft_full", "sft", attempt=1 + step, resume_from=start))

    for key in MEASURED:
        after = {at: value for at, value in full.curve(key).items() if at > step}
        assert resumed.curve(key) == after, key
    assert _hash_states(folder) == expected


def _hash_states(folder: Path) -> dict[str, str]:
    """Of the weights and of the optimizer's state, wherever they lie in the checkpoint.

    verl's files hold pickles, whose bytes depend on which equal strings were one object: what is
    compared is every tensor's bytes and every other value.
    """
    files = [*folder.rglob("*.safetensors"), *folder.rglob("model_*.pt"), *folder.rglob("optim_*.pt")]
    return {str(path.relative_to(folder)): _hash_file(path) for path in files}


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    if path.suffix == ".safetensors":
        digest.update(path.read_bytes())
    else:
        _add(digest, torch.load(path, map_location="cpu", weights_only=False))
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add a tree of dicts, lists, tensors (sharded ones by this rank's part) and plain values."""
    if isinstance(value, dict):
        for key, below in value.items():
            digest.update(repr(key).encode())
            _add(digest, below)
    elif isinstance(value, list | tuple):
        for below in value:
            _add(digest, below)
    elif isinstance(value, torch.Tensor):
        local = value.to_local() if isinstance(value, DTensor) else value
        digest.update(f"{local.dtype} {tuple(local.shape)}".encode())
        digest.update(local.reshape(-1).view(torch.uint8).numpy().tobytes())
    else:
        digest.update(repr(value).encode())
