"""What the proofs of Link Search share: a small database, a model taught on it, and runs with their logs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts.recipe import DataFormat
from trellis_testing.agent_starter import teach
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_train.agents.environments import make
from trellis_train.agents.linksearch.demonstrations import phrases, write_demonstrations
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.starter import conversation_texts, make_tokenizer, write_model

PARAMETERS = {"profiles": 60, "train": 24, "eval": 5, "seed": 1, "most_constraints": 1}
QUERIES, ROLLOUTS, TURNS = 4, 4, 4
PARAMS: dict[str, Any] = {
    "max_turns": TURNS,
    "detailed_logging": True,
    "batch_size": QUERIES,
    "mini_batch_size": QUERIES,
    "micro_batch_size": 8,
    "group_size": ROLLOUTS,
    "save_every": 0,
}


@dataclass(frozen=True)
class Searcher:
    """A database with its queries, and a model that searches it more or less well."""

    environment: Path
    model: Path

    def rows(self, split: str) -> Rows:
        return Rows.from_json_lines(self.environment / "rows" / f"{split}.jsonl", DataFormat.VERL_RL)

    def train(
        self, folder: Path, ray: Mapping[str, str], *, validation: Rows | None = None, **params: Any
    ) -> EngineRun:
        """A run of the recipe; what it has no rows to measure with, it does not measure."""
        unmeasured = {"validate_every": 0, "validate_before": False, "validation_rows": 0}
        job = compose_job(
            folder,
            recipe="linksearch",
            model=self.model,
            rows=self.rows("train"),
            validation=validation,
            params={**PARAMS, **({} if validation else unmeasured), **params},
            environment=self.environment,
        )
        return run_engine(job, environment=ray)


def make_searcher(folder: Path) -> Searcher:
    """About 20 s on two cores."""
    environment, options = folder / "environment", Options(max_turns=TURNS)
    make("linksearch", environment, PARAMETERS)
    demonstrations = folder / "demonstrations.jsonl"
    write_demonstrations(demonstrations, [environment], options, [environment / "eval.jsonl"], seed=0)
    rows = [json.loads(line) for line in demonstrations.read_text().splitlines()]
    words = phrases(options, environment / "profiles.db")
    tokenizer = make_tokenizer(conversation_texts(rows), phrases=words, vocabulary=700)
    write_model(folder / "untaught", tokenizer, seed=0)
    teach(folder / "untaught", rows, folder / "model", steps=120)
    return Searcher(environment, folder / "model")


def read_logs(run: EngineRun) -> dict[int, list[dict[str, Any]]]:
    """The log of every rollout by step; 0 is the validation before training."""
    root = Path(run.spec.checkpoint_dir).parent / "rollout_logs"
    found: dict[int, list[dict[str, Any]]] = {}
    for path in sorted(root.glob("step_*/query_*/rollout_*.json")):
        found.setdefault(int(path.parts[-3].removeprefix("step_")), []).append(json.loads(path.read_text()))
    return found


def of_split(logs: list[dict[str, Any]], split: str) -> list[dict[str, Any]]:
    return [log for log in logs if log["split"] == split]
