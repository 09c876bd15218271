"""A file for every rollout, for those who want to read what their agent did: ``rollout_logs/step_N/...``."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trellis_contracts.agents import Trajectory
from trellis_data.atomic_files import write_atomically

from trellis_train.agents.episode.transcript import Transcript
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.rubric import Rubric
from trellis_train.agents.linksearch.scoring import FirstTry, Score

_OF_TURNS = ("role", "tokens", "is_trained", "duration_s")
_UNSAFE = re.compile(r"[^\w.-]+")


def log_path(folder: Path, *, step: int, query_id: str, session: int) -> Path:
    """Return the path of a rollout's log; ``query_id`` may hold anything."""
    name = _UNSAFE.sub("_", query_id).strip(".")[:100] or "unnamed"
    return folder / f"step_{step}" / f"query_{name}" / f"rollout_{session}.json"


def describe_rollout(
    *,
    query: dict[str, Any],
    transcript: Transcript,
    trajectory: Trajectory,
    rubric: Rubric,
    first: FirstTry,
    score: Score,
    options: Options,
    mask: list[int],
) -> dict[str, Any]:
    """Return everything known about a rollout in JSON form; nothing is shortened."""
    turns = [turn.model_dump(mode="json") for turn in trajectory.turns]
    return {
        **query,
        "mode": options.mode,
        "stop_reason": trajectory.stop_reason,
        "began_at": transcript.began_at.isoformat(),
        "duration_s": trajectory.duration_s,
        "conversation": [{"role": turn["role"], "content": turn["text"]} for turn in turns],
        "turns": [
            {name: turn[name] for name in ("role", "tokens", "is_trained", "duration_s")} for turn in turns
        ],
        "tool_calls": [
            {"turn": number, **call}
            for number, turn in enumerate((t for t in turns if t["role"] == "assistant"), start=1)
            for call in turn["calls"]
        ],
        "predicted_handles": rubric.predicted_handles,
        "gold_handles": rubric.gold_handles,
        "rubric": asdict(rubric),
        "first_try": asdict(first),
        "reward": score.total,
        "reward_outcome": score.outcome,
        "reward_parts": score.parts,
        "reward_weights": asdict(options.weights),
        "mask": {"ones": sum(mask), "zeros": len(mask) - sum(mask), "sampled": sum(transcript.mask)},
        "tokens": {
            "prompt": len(transcript.prompt_ids),
            "response": len(transcript.response_ids),
            "sampled": sum(transcript.mask),
        },
    }


def write_log(path: Path, content: dict[str, Any]) -> None:
    """Write a log file atomically."""
    write_atomically(path, json.dumps(content, ensure_ascii=False, indent=1))
