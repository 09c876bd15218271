"""Which task a dialog trains: told by its metadata, else by what happens in it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from trellis_train.agents.tooluse.formatting.sampling import TASK_TYPES, TaskType

#: From so many different tools or turns on, a dialog is a plan.
PLAN_TOOLS, PLAN_TURNS = 3, 8
_RETRIEVAL = re.compile(
    r"\b(?:search(?:e[sd]|ing)?|find(?:s|ing)?|retriev(?:e[sd]?|ing|al))\b|搜索|查找|检索|寻找", re.IGNORECASE
)
_TIMING = re.compile(
    r"\b(?:if|when|wait(?:s|ed|ing)?|check(?:s|ed|ing)?|conditions?|conditional(?:ly)?)\b"
    r"|如果|要是|的时候|等待|等到|等我|条件|检查",
    re.IGNORECASE,
)


class BadDialog(ValueError):
    """A dialog cannot be used; says why."""


def decide_task_type(
    *, metadata: Mapping[str, Any] | None, tools: Iterable[str], turns: int, goal: str
) -> TaskType:
    """Determine the task type of a dialog; the first rule that applies decides.

    ``tools`` are the names that are called in it, ``turns`` the number of its messages without the system's.

    1. ``metadata["task_type"]``; 2. three tools or eight turns: planning; 3. the goal says search, find or
    retrieve: retrieval; 4. it says if, when, wait, check or condition: timing; 5. selection. The words
    count in English (whole words) and in Chinese. Raises ``BadDialog`` for a task type that does not exist.
    """
    told = (metadata or {}).get("task_type")
    if told is not None:
        if told not in TASK_TYPES:
            raise BadDialog(f"unknown task type {told!r}; choose from {', '.join(TASK_TYPES)}")
        return cast("TaskType", told)
    if len(set(tools)) >= PLAN_TOOLS or turns >= PLAN_TURNS:
        return "multi_step_planning"
    if _RETRIEVAL.search(goal):
        return "tool_retrieval"
    return "timing_decision" if _TIMING.search(goal) else "tool_selection"
