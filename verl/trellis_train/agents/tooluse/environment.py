"""The environment ``toolbox``: 1,200 simulated tools, and what people ask of them as training rows."""

from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema

from trellis_train.agents.environments import Answer, BadRequest, Made
from trellis_train.agents.tooluse.data.generate import TOOLS_FILE, generate
from trellis_train.agents.tooluse.data.simulator import BadTools, Toolbox, load_tools
from trellis_train.agents.tooluse.data.words import SPLITS
from trellis_train.agents.tooluse.formatting.write import write_rows

ROWS_FOLDER = "rows"
#: The platform's names of splits.
_SPLITS = {"train": "train", "dev": "eval", "test": "test"}
#: Datasets beside the main one, which is of prompts for reinforcement learning.
_FURTHER = ("sft", "preference", "retrieval")


def make(folder: Path, parameters: dict[str, Any]) -> Made:
    """Write the tools, the generated data, and the rows that trainers read."""
    seed = parameters["seed"]
    manifest = generate(folder, seed=seed)
    counts = write_rows(folder, folder / ROWS_FOLDER, distractors=parameters["distractors"], seed=seed)
    datasets = {_SPLITS[split]: f"{ROWS_FOLDER}/rl/{split}.jsonl" for split in SPLITS}
    for name in _FURTHER:
        for split in SPLITS:
            datasets[f"{name}/{_SPLITS[split]}"] = f"{ROWS_FOLDER}/{name}/{split}.jsonl"
    files = manifest["rows"]
    return Made(
        counts={
            "tools": files[TOOLS_FILE],
            "dialogs": sum(files[f"agent_sft/{split}.jsonl"] for split in SPLITS),
            "benchmark": sum(files[f"agent_benchmark/{split}.jsonl"] for split in SPLITS),
            "tool_queries": sum(files[f"agent_retrieval/{split}.jsonl"] for split in SPLITS),
            "pairs": sum(counts[f"preference/{split}.jsonl"] for split in SPLITS),
        },
        tools=[
            ToolSchema(name=tool["name"], description=tool["description"], parameters=tool["parameters"])
            for tool in load_tools(folder / TOOLS_FILE).values()
        ],
        datasets=datasets,
    )


def call(folder: Path, tool: ToolSchema, arguments: dict[str, Any]) -> Answer:
    """Return the simulator's result, as in a dialog or an evaluation."""
    try:
        toolbox = Toolbox(load_tools(folder / TOOLS_FILE).values())
    except BadTools as error:
        raise BadRequest(str(error)) from error
    result = toolbox.call(tool.name, arguments)
    code = result.get("error", {}).get("code")
    return Answer(result, len(result["items"]) if "items" in result else None, code)
