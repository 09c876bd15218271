"""A pretrained model for the proofs, and data that it learns from within a few steps on a CPU."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis_api.core.settings import Settings
from trellis_contracts.recipe import DataFormat
from trellis_data.samples.preferences import Pair, unpair
from trellis_data.samples.tickets import TEAMS, Ticket, make_tickets
from trellis_tools.proof import MODEL_VARIABLE
from trellis_workers.models.sources import bring

from trellis_testing.engine_runs import EngineRun, Rows, compose_job

DEFAULT = "smollm2-135m-instruct"
SEED = 1
#: Rows held out, and prompts that RL is measured on.
VALIDATION_ROWS = 32
#: The form that the instruction of a ticket asks for; its group is what `regex` compares with the answer.
FORM = r'\{"(team)": "(?:billing|delivery|technical|account)"\}'


@dataclass(frozen=True)
class Pretrained:
    """A model folder and the same rows in the formats of the recipes: for training, and held out."""

    model: Path
    lessons: tuple[Rows, Rows]
    documents: tuple[Rows, Rows]
    pairs: tuple[Rows, Rows]
    labelled: tuple[Rows, Rows]
    forms: tuple[Rows, Rows]

    def compose(
        self, folder: Path, recipe: str, rows: tuple[Rows, Rows], params: Mapping[str, Any]
    ) -> EngineRun:
        """Compose a job on the model, with the preset for models of its size on a CPU; nothing is run yet."""
        return compose_job(
            folder,
            recipe=recipe,
            model=self.model,
            rows=rows[0],
            validation=rows[1],
            params=params,
            seed=SEED,
            preset="cpu-small",
        )


def make_pretrained(folder: Path) -> Pretrained:
    """Fetch the model that `TRELLIS_PROOF_MODEL` names, and write the data.

    A folder is taken as it is; another name is looked up in the catalogue and fetched as the platform does.
    """
    tickets = make_tickets(SEED)
    parts = {"train": tickets["rl_train"], "validation": tickets["rl_validation"][:VALIDATION_ROWS]}

    def write(name: str, data_format: DataFormat, make: Any) -> tuple[Rows, Rows]:
        train, validation = (
            _write(folder / f"{name}_{part}.jsonl", data_format, [row for each in rows for row in make(each)])
            for part, rows in parts.items()
        )
        return train, validation

    return Pretrained(
        model=fetch(os.environ.get(MODEL_VARIABLE) or DEFAULT, folder),
        lessons=write("lessons", DataFormat.PROMPT_ANSWER, _as_lesson),
        documents=write("documents", DataFormat.TEXT, _as_document),
        pairs=write("pairs", DataFormat.PREFERENCE, _as_pair),
        labelled=write("labelled", DataFormat.UNPAIRED_PREFERENCE, _as_labelled),
        forms=write("forms", DataFormat.PROMPT_ANSWER, _as_form),
    )


def fetch(name: str, folder: Path) -> Path:
    """Return a model folder as it is, or fetch a model of the catalogue as the platform does."""
    if Path(name).is_dir():
        return Path(name).resolve()
    target = folder / "model"
    bring(
        Settings(data_root=folder),
        {"kind": "catalogue", "name": name},
        folder=target,
        staging=folder / "staging",
        report=lambda stage, **_: print(f"{name}: {stage}"),
    )
    return target


def _write(path: Path, data_format: DataFormat, rows: list[dict[str, Any]]) -> Rows:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Rows.from_json_lines(path, data_format)


def _wrong_answer(ticket: Ticket) -> str:
    """Return the answer with the next team's name, which is wrong."""
    return json.dumps({"team": TEAMS[(TEAMS.index(ticket.team) + 1) % len(TEAMS)]})


def _as_lesson(ticket: Ticket) -> list[dict[str, Any]]:
    return [{"prompt": ticket.prompt, "answer": ticket.answer}]


def _as_document(ticket: Ticket) -> list[dict[str, Any]]:
    return [{"text": f"{ticket.message} {ticket.answer}"}]


def _pair(ticket: Ticket) -> Pair:
    return Pair(ticket.prompt, chosen=ticket.answer, rejected=_wrong_answer(ticket))


def _as_pair(ticket: Ticket) -> list[dict[str, Any]]:
    return [asdict(_pair(ticket))]


def _as_labelled(ticket: Ticket) -> list[dict[str, Any]]:
    return unpair([_pair(ticket)])


def _as_form(ticket: Ticket) -> list[dict[str, Any]]:
    return [{"prompt": ticket.prompt, "answer": "team"}]
