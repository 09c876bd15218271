"""A whole training of the encoder, from the settings of a job: measured, reported, stopped and resumed."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trellis_contracts.events import MetricsEvent, Phase, ProgressEvent
from trellis_recipes.retrieval_schema import MIN_TOOLS, load_retrieval_schema

from trellis_train.agents.tooluse.retrieval.encoder import Encoder, EncoderSettings
from trellis_train.agents.tooluse.retrieval.queries import BadQueries, Corpus, Query, load_queries
from trellis_train.agents.tooluse.retrieval.training import (
    MODEL_FOLDER,
    BadCheckpoint,
    RetrievalTrainer,
    TrainingSettings,
    measure_bm25,
    measure_encoder,
    prefixed,
)
from trellis_train.hooks.checkpoints import describe_checkpoint
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool, is_stop_requested


@dataclass(frozen=True)
class RunSettings:
    """What one run is made of."""

    model_path: Path
    train_file: Path
    validation_file: Path | None
    output_dir: Path
    resume_from: Path | None
    device: str
    encoder: EncoderSettings
    training: TrainingSettings
    save_every: int
    validate_every: int

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "RunSettings":
        """Create settings from resolved values by name; ``ValueError`` for an unknown name."""
        schema = load_retrieval_schema()
        unknown = [name for name in values if schema.find(name) is None]
        if unknown:
            raise ValueError(f"Unknown retrieval setting: {', '.join(sorted(unknown))}.")
        known = {**schema.tree, **values}

        def pick(kind: type[Any]) -> Any:
            return kind(**{each.name: known[each.name] for each in fields(kind)})

        def path(name: str) -> Path | None:
            return Path(known[name]) if known[name] else None

        return cls(
            model_path=Path(known["model_path"]),
            train_file=Path(known["train_file"]),
            validation_file=path("validation_file"),
            output_dir=Path(known["output_dir"]),
            resume_from=path("resume_from"),
            device=known["device"],
            encoder=pick(EncoderSettings),
            training=pick(TrainingSettings),
            save_every=known["save_every"],
            validate_every=known["validate_every"],
        )


class RetrievalRun:
    """One attempt; reports to the spool, where there is one."""

    def __init__(self, settings: RunSettings, spool: Spool | None, attempt_dir: str | None) -> None:
        self._settings, self._spool, self._attempt_dir = settings, spool, attempt_dir
        self._corpus = Corpus()
        self._train = load_queries(settings.train_file, self._corpus)
        self._validation: list[Query] = []
        if settings.validation_file is not None:
            self._validation = load_queries(settings.validation_file, self._corpus)
        size = settings.training.batch_size
        if len(self._train) < size:
            raise BadQueries(
                f"{len(self._train)} rows are too few for a batch of {size} queries; reduce batch_size"
            )
        if len(self._corpus) < MIN_TOOLS:
            raise BadQueries(
                f"the rows name {len(self._corpus)} tools, too few for retrieval: at least {MIN_TOOLS} are "
                "needed, because recall@10 is always 1 among fewer"
            )
        self._trainer = self._load()
        self._saved_at: int | None = self._trainer.step if settings.resume_from else None

    def run(self) -> bool:
        """Train to the last step or to a stop; whether it was a stop."""
        trainer, settings = self._trainer, self._settings
        if trainer.step == 0:
            self._measure_baselines()
        is_stopping = False
        self._enter("training")
        while trainer.step < trainer.total_steps and not is_stopping:
            metrics = trainer.train_step()
            self._report(metrics)
            self._enter("training")
            is_last = trainer.step == trainer.total_steps
            is_stopping = self._is_asked_to_stop() and not is_last
            if is_last or _is_due(trainer.step, settings.validate_every):
                self._measure()
            if is_last or is_stopping or _is_due(trainer.step, settings.save_every):
                self._save()
        if not is_stopping:
            self._enter("finished")
        return is_stopping

    def _load(self) -> RetrievalTrainer:
        settings = self._settings
        folder = settings.model_path
        if settings.resume_from is not None:
            folder = settings.resume_from / MODEL_FOLDER
            if not (folder / "config.json").is_file():
                raise BadCheckpoint(
                    f"the checkpoint {settings.resume_from} cannot be resumed: it has no weights"
                )
        encoder = Encoder.load(folder, settings.encoder).to(settings.device)
        trainer = RetrievalTrainer(encoder, self._corpus, self._train, settings.training)
        if settings.resume_from is not None:
            trainer.restore(settings.resume_from)
        return trainer

    def _measure_baselines(self) -> None:
        """Measure the baselines that training has to beat; without validation rows nothing is measured."""
        if not self._validation:
            return
        self._enter("validating")
        untrained = measure_encoder(self._trainer.encoder, self._corpus, self._validation)
        bm25 = measure_bm25(self._corpus, self._validation)
        self._report(
            {
                **prefixed("eval", untrained),
                **prefixed("baseline/untrained", untrained),
                **prefixed("baseline/bm25", bm25),
                "eval/tools": float(len(self._corpus)),
            }
        )

    def _measure(self) -> None:
        if self._validation:
            self._enter("validating")
            found = measure_encoder(self._trainer.encoder, self._corpus, self._validation)
            self._report(prefixed("eval", found))

    def _save(self) -> None:
        if self._saved_at == self._trainer.step:
            return
        self._enter("saving")
        self._settings.output_dir.mkdir(parents=True, exist_ok=True)
        place = self._trainer.save(self._settings.output_dir)
        self._saved_at = self._trainer.step
        if self._spool is not None:
            self._spool.write(describe_checkpoint(place, step=self._trainer.step))

    def _is_asked_to_stop(self) -> bool:
        return self._attempt_dir is not None and is_stop_requested(self._attempt_dir)

    def _enter(self, phase: Phase) -> None:
        if self._spool is not None:
            trainer = self._trainer
            self._spool.write(
                ProgressEvent(time=now(), phase=phase, step=trainer.step, total_steps=trainer.total_steps)
            )

    def _report(self, values: dict[str, float]) -> None:
        if self._spool is not None:
            self._spool.write(MetricsEvent(time=now(), step=self._trainer.step, values=values))
        else:
            print(self._trainer.step, values, flush=True)


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
