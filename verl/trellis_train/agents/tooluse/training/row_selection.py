"""Which rows an agent's supervised training learns, as its recipe's parameters say.

In this order: only some kinds of tasks (``focus_tags``), a mix by kind (``weight_*``), drawn by chance or
the most useful ones of each kind (coreset), and rows of earlier runs beside them (replay).
"""

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trellis_contracts.spec import JobSpec

from trellis_train.agents.tooluse.formatting.sampling import (
    TASK_TYPES,
    BadWeights,
    TaskType,
    largest_exact_count,
    quotas,
    sample_by_weights,
)
from trellis_train.agents.tooluse.formatting.task_types import BadDialog, decide_task_type
from trellis_train.agents.tooluse.selection.dialog_items import select_rows
from trellis_train.agents.tooluse.selection.replay import BadBuffer, ReplayBuffer

RECIPE = "agent_sft"
#: Beside the jobs' folders, so that the next job finds it.
REPLAY_FOLDER = "replay"
#: In the job's folder: what was replayed to its first attempt is replayed to all of them.
REPLAYED_FILE = "replayed.json"
_CALL_NAME = re.compile(r'<tool_call>\s*\{\s*"name"\s*:\s*"([^"]+)"')
_BUFFER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
Row = dict[str, Any]


class BadSelection(ValueError):
    """The rows cannot be chosen as asked; says why."""


class NothingSelected(BadSelection):
    """No row is left to learn."""


@dataclass(frozen=True)
class Chosen:
    """The rows to learn, in the order drawn by the seed."""

    new: list[Row]
    #: Of earlier runs, after the new ones.
    replayed: list[Row]

    @property
    def rows(self) -> list[Row]:
        """All of them."""
        return self.new + self.replayed


def describe_row(source: Mapping[str, Any], messages: Sequence[Mapping[str, str]], fallback_id: str) -> Row:
    """Build a row with the fields used for selection: ID, task type and metadata.

    What the dataset does not tell (``task_type``, ``metadata``) is read from the conversation. Raises
    ``BadSelection`` for a kind of task that does not exist.
    """
    metadata = _as_mapping(source.get("metadata"))
    told = source.get("task_type") or metadata.get("task_type")
    spoken = [each for each in messages if each["role"] not in ("system", "developer")]
    said = [each["content"] for each in messages if each["role"] == "assistant"]
    calls = [name for text in said for name in _CALL_NAME.findall(text)]
    goal = next((each["content"] for each in spoken if each["role"] == "user"), "")
    try:
        kind = decide_task_type(
            metadata={**metadata, "task_type": told} if told else metadata,
            tools=calls,
            turns=len(spoken),
            goal=goal,
        )
    except BadDialog as error:
        raise BadSelection(str(error)) from error
    loss = metadata.get("loss")
    return {
        "id": str(source.get("id") or fallback_id),
        "task_type": kind,
        "metadata": {"loss": loss} if isinstance(loss, int | float) else {},
        "messages": [dict(each) for each in messages],
    }


def choose_rows(rows: Sequence[Row], spec: JobSpec, *, is_kept: bool = True) -> Chosen:
    """Choose the rows to train on; without ``is_kept`` (no training) the replay buffer is not changed.

    Raises ``BadSelection``.
    """
    parameters, seed = spec.params, int(spec.params.get("seed") or spec.seed)
    try:
        focused = _focus(_with_own_ids(rows), parameters)
        chosen = (
            _mix(focused, parameters, seed)
            if parameters.get("mix_tasks", True)
            else _draw(focused, parameters, seed)
        )
        replays = bool(chosen and parameters.get("use_online_continual"))
        replayed = _replay(chosen, spec, seed, is_kept=is_kept) if replays else []
    except NothingSelected:
        raise
    except (BadWeights, BadBuffer, ValueError) as error:
        raise BadSelection(str(error)) from error
    if not chosen:
        raise NothingSelected(
            f"no rows left to train on: none of the {len(rows)} rows has one of the selected task types"
        )
    return Chosen(chosen, replayed)


def count_kinds(rows: Sequence[Row]) -> dict[str, int]:
    """Count the rows of each kind of task."""
    return dict(sorted(Counter(str(row["task_type"]) for row in rows).items()))


def _with_own_ids(rows: Sequence[Row]) -> list[Row]:
    """Make ids unique, because rows are distinguished by them: the second row of an id gets a new one."""
    seen: Counter[str] = Counter()
    named = []
    for row in rows:
        seen[row["id"]] += 1
        again = seen[row["id"]]
        named.append(row if again == 1 else {**row, "id": f"{row['id']}#{again}"})
    return named


def _focus(rows: Sequence[Row], parameters: Mapping[str, Any]) -> list[Row]:
    tags = [tag.strip() for tag in str(parameters.get("focus_tags") or "").split(",") if tag.strip()]
    unknown = [tag for tag in tags if tag not in TASK_TYPES]
    if unknown:
        raise BadSelection(f"unknown task type '{unknown[0]}'; choose from {', '.join(TASK_TYPES)}")
    return [row for row in rows if not tags or row["task_type"] in tags]


def _mix(rows: list[Row], parameters: Mapping[str, Any], seed: int) -> list[Row]:
    """Mix rows in the shares of the weights; the share of a kind that is absent goes to the others."""
    limit = parameters.get("max_samples")
    available = Counter(cast("TaskType", row["task_type"]) for row in rows)
    weights = {name: float(parameters[f"weight_{name}"]) for name in TASK_TYPES if available[name]}
    if not any(weights.values()):
        raise NothingSelected(
            f"no rows left to train on: the weights select no task type of the {len(rows)} rows in focus"
        )
    if not parameters.get("use_coreset_selection"):
        count = largest_exact_count(weights, available) if limit is None else int(limit)
        return sample_by_weights(rows, weights, count=count, seed=seed)
    # Kind by kind: the hardest rows are of a few kinds, and would leave nothing of the mix.
    wanted = quotas(weights, available, _coreset_size(parameters))
    chosen = []
    for kind in sorted(wanted):
        of_kind = [row for row in rows if row["task_type"] == kind]
        chosen += select_rows(of_kind, wanted[kind], parameters["coreset_strategy"], seed=seed)
    random.Random(f"{seed}:order").shuffle(chosen)  # noqa: S311 - no secret
    return cast("list[Row]", chosen)


def _draw(rows: list[Row], parameters: Mapping[str, Any], seed: int) -> list[Row]:
    """Draw rows of any kind."""
    if parameters.get("use_coreset_selection"):
        return cast(
            "list[Row]",
            select_rows(rows, _coreset_size(parameters), parameters["coreset_strategy"], seed=seed),
        )
    limit = parameters.get("max_samples")
    return rows if limit is None else rows[: int(limit)]


def _coreset_size(parameters: Mapping[str, Any]) -> int:
    limit = parameters.get("max_samples")
    size = int(parameters["coreset_target_size"])
    return size if limit is None else min(size, int(limit))


def _replay(new: list[Row], spec: JobSpec, seed: int, *, is_kept: bool) -> list[Row]:
    """Return rows of earlier runs; where ``is_kept``, the buffer then holds the new ones too."""
    job_folder = Path(spec.checkpoint_dir).parent
    noted = job_folder / REPLAYED_FILE
    if noted.exists():
        kept: list[Row] = json.loads(noted.read_text(encoding="utf-8"))
        return kept
    name = str(spec.params["continual_buffer"])
    if not _BUFFER_NAME.fullmatch(name):
        raise BadSelection(f"invalid buffer name '{name}': use up to 64 letters, digits, - and _")
    path = job_folder.parent / REPLAY_FOLDER / f"{name}.json"
    buffer = ReplayBuffer.open(
        path,
        size=int(spec.params["continual_buffer_size"]),
        ratio=float(spec.params["continual_replay_ratio"]),
        strategy=spec.params["coreset_strategy"],
        seed=seed,
    )
    replayed = [dict(row) for row in buffer.absorb(new)]
    if not is_kept:
        return replayed
    buffer.save(path)
    job_folder.mkdir(parents=True, exist_ok=True)
    staging = noted.with_suffix(".writing")
    staging.write_text(json.dumps(replayed, ensure_ascii=False), encoding="utf-8")
    staging.replace(noted)
    return replayed


def _as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a row's metadata as a mapping; files may also store it as JSON text."""
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}
