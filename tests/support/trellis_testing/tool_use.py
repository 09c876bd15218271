"""Rows on the use of tools and a model that is made for them, small enough to train on while a test waits."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts.recipe import DataFormat
from trellis_train.agents import starter
from trellis_train.agents.tooluse.data.generate import generate
from trellis_train.agents.tooluse.formatting.write import write_rows

from trellis_testing.engine_runs import Rows

FORMATS = {"sft": DataFormat.MESSAGES, "preference": DataFormat.PREFERENCE, "rl": DataFormat.VERL_RL}
#: What every system's text repeats, as the starter's tokenizer takes it for one token each.
_SAID_OFTEN = (
    "You are an assistant that works with tools. Call a tool where it is needed, and only then.",
    "You may call one or more functions to assist with the user query.",
    "You are provided with function signatures within <tools></tools> XML tags:",
    "For each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:",
    '{"name": <function-name>, "arguments": <args-json-object>}',
    '{"type": "function", "function": {"name": "',
    '"parameters": {"type": "object", "properties": {',
    '"additionalProperties": false}}}',
    '{"type": "string", "description": "',
)


@dataclass(frozen=True)
class ToolUse:
    """Generated rows by kind and split, and a model with random weights whose tokenizer learned from them."""

    folder: Path
    model: Path

    def rows(self, kind: str, split: str, count: int) -> Rows:
        """Return ``count`` rows of ``kind`` (sft, preference, rl): the shortest of each task, for speed."""
        lines = (self.folder / kind / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        by_task: dict[str, list[dict[str, Any]]] = {}
        for row in map(json.loads, lines):
            by_task.setdefault(str(row.get("task_type") or row.get("data_source")), []).append(row)
        each = count // len(by_task)
        chosen = [row for rows in by_task.values() for row in sorted(rows, key=_length)[:each]]
        random.Random(0).shuffle(chosen)
        assert len(chosen) == count, f"{len(chosen)} rows of {kind}/{split}, not {count}"
        target = self.folder / f"{kind}-{split}-{count}.jsonl"
        target.write_text("".join(json.dumps(row) + "\n" for row in chosen), encoding="utf-8")
        return Rows.from_json_lines(target, FORMATS[kind])


def make_tool_use(folder: Path, *, seed: int = 42) -> ToolUse:
    """Generate the data, write its rows without distractors, and make the model: about 5 s."""
    generate(folder / "data", seed=seed)
    write_rows(folder / "data", folder / "rows", distractors=0, seed=seed)
    lines = (folder / "rows/sft/train.jsonl").read_text(encoding="utf-8").splitlines()[:300]
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    texts = list(starter.conversation_texts(rows))
    tokenizer = starter.make_tokenizer(texts, phrases=_SAID_OFTEN, vocabulary=1500)
    starter.write_model(folder / "model", tokenizer, seed=seed)
    return ToolUse(folder / "rows", folder / "model")


def _length(row: dict[str, Any]) -> int:
    """Count the characters of a row that a model reads."""
    messages = [*row.get("messages", []), *(row["prompt"] if isinstance(row.get("prompt"), list) else [])]
    return sum(len(message["content"]) for message in messages)
