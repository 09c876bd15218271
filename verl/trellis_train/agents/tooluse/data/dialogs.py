"""Dialogs by seed: requests, calls, the results of the simulator, and replies that tell what came of them."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from trellis_train.agents.tooluse.data.requests import Request, frame, frame_plan, make_request, say_needs
from trellis_train.agents.tooluse.data.simulator import answer_of, simulate
from trellis_train.agents.tooluse.data.tools import Tool, Tools
from trellis_train.agents.tooluse.data.words import SPLITS, Language, Split, say_measure
from trellis_train.agents.tooluse.formatting.sampling import DEFAULT_TASK_WEIGHTS, TaskType, quotas

#: Dialogs of each split.
COUNTS: dict[Split, int] = {"train": 4000, "dev": 500, "test": 500}
FEWEST_TURNS, MOST_TURNS = 6, 12
#: Every so manyth dialog is in Chinese.
CHINESE_EVERY = 4
_DISTRACTORS_OF_PLANS = 2
_SHARE_OF_FOLLOW_UPS = 0.6


def make_dialogs(tools: Tools, *, seed: int) -> Iterator[dict[str, Any]]:
    """Generate the rows of ``agent_sft`` by split, with task types in their default weights."""
    number = 0
    for split in SPLITS:
        types = task_types_of(split, COUNTS[split], seed)
        for task_type in types:
            language: Language = "zh" if number % CHINESE_EVERY == CHINESE_EVERY - 1 else "en"
            # A generator for each: what one dialog draws changes nothing about the others.
            draw = random.Random(f"{seed}:agent_sft:{number}")  # noqa: S311 - no secret
            dialog = _Dialog(draw, tools, split, language)
            _WRITERS[task_type](dialog)
            yield dialog.row(f"agent_sft-{number:05d}", task_type)
            number += 1


def task_types_of(split: Split, count: int, seed: int) -> list[TaskType]:
    """Return a task type for each dialog of a split, in shuffled order."""
    wanted = quotas(DEFAULT_TASK_WEIGHTS, dict.fromkeys(DEFAULT_TASK_WEIGHTS, count), count)
    types = [task_type for task_type, number in wanted.items() for _ in range(number)]
    random.Random(f"{seed}:types:{split}").shuffle(types)  # noqa: S311 - no secret
    return types


def offer(draw: random.Random, tools: Tools, needed: list[Tool], *, distractors: int) -> list[str]:
    """Return names of the tools that a dialog may use: those needed among similar others."""
    chosen = {tool.name for tool in needed}
    first = needed[0]
    alike = draw.sample(tools.on_same_object(first), 5) + draw.sample(tools.of_same_action(first), 3)
    draw.shuffle(alike)
    others = [*alike[: distractors - 1], draw.choice(tools.all), *alike[distractors - 1 :]]
    names = list(chosen)
    for other in others:
        if len(names) < len(chosen) + distractors and other.name not in names:
            names.append(other.name)
    # From a set of one order, then mixed by the seed: the bytes are the same in every process.
    names.sort()
    draw.shuffle(names)
    return names


def choose_plan(draw: random.Random, tools: Tools, steps: int) -> list[Tool]:
    """Choose different tools of one category, some of which continue with what the previous one made."""
    category = draw.choice(list(tools.by_category))
    pool = list(tools.by_category[category])
    draw.shuffle(pool)
    plan: list[Tool] = []
    while len(plan) < steps:
        follow_ups = [tool for tool in pool if plan and can_follow(plan[-1], tool)]
        if follow_ups and draw.random() < _SHARE_OF_FOLLOW_UPS:
            plan.append(follow_ups[0])
        else:
            plan.append(pool[0])
        pool.remove(plan[-1])
    return plan


def can_follow(first: Tool, second: Tool) -> bool:
    """Tell whether the second tool can work on the object whose number the first one returns."""
    return first.noun == second.noun and first.shape in ("items", "confirmed") and "id" in second.required


@dataclass
class _Dialog:
    """A dialog that is being written."""

    draw: random.Random
    tools: Tools
    split: Split
    language: Language
    turns: list[dict[str, Any]] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    offered: list[str] = field(default_factory=list)
    category: str = ""
    answer: str = ""

    def row(self, name: str, task_type: TaskType) -> dict[str, Any]:
        if not FEWEST_TURNS <= len(self.turns) <= MOST_TURNS:
            raise AssertionError(f"{name} has {len(self.turns)} turns")
        return {
            "id": name,
            "split": self.split,
            "language": self.language,
            "goal": self.turns[0]["content"],
            "tools": self.offered,
            "turns": self.turns,
            "metadata": {
                "task_type": task_type,
                "category": self.category,
                "templates": self.templates,
                "answer": self.answer,
            },
        }

    # -- what stands in it ---------------------------------------------------------------------

    def choose(self) -> Tool:
        """Choose one tool, offered among others."""
        tool = self.draw.choice(self.tools.all)
        self.category = tool.category
        self.offered = offer(self.draw, self.tools, [tool], distractors=4)
        return tool

    def request(self, tool: Tool, *, number: str | None = None) -> Request:
        made = make_request(self.draw, tool, self.language, self.split, number=number)
        self.templates.append(made.template)
        return made

    def say(self, role: str, path: str, **slots: str) -> None:
        """Append a turn in a wording of ``path``."""
        self.turns.append({"role": role, "content": self.word(path, **slots)})

    def word(self, path: str, **slots: str) -> str:
        text, name = frame(self.draw, path, self.language, self.split, **slots)
        self.templates.append(name)
        return text

    def run(self, requests: list[Request]) -> list[dict[str, Any]]:
        """Append an assistant turn with the calls and a turn for each result; return the results."""
        self.turns.append(
            {
                "role": "assistant",
                "content": self.word("before_call"),
                "calls": [request.call for request in requests],
            }
        )
        results = [simulate(request.tool.row, request.arguments) for request in requests]
        for request, result in zip(requests, results, strict=True):
            text = json.dumps(result, ensure_ascii=False)
            self.turns.append({"role": "tool", "name": request.tool.name, "content": text})
        return results

    def reply(self, told: list[tuple[Tool, dict[str, Any]]]) -> None:
        """Append an assistant turn that reports the results of calls."""
        texts = []
        for tool, result in told:
            self.answer = answer_of(tool.row, result)
            texts.append(
                self.word(
                    f"replies.{tool.shape}",
                    answer=self.answer,
                    count=str(result.get("count", "")),
                    measure=say_measure(tool.row["returns"]["measure"], self.language),
                )
            )
        glue = " " if self.language == "en" else ""
        self.turns.append({"role": "assistant", "content": glue.join(texts)})

    def carry_out(self, request: Request) -> None:
        """Call, result and reply."""
        result = self.run([request])[0]
        self.reply([(request.tool, result)])

    def part(self) -> None:
        """Say thanks and the reply to it."""
        self.say("user", "thanks")
        self.say("assistant", "welcome")


# -- one tool is right ------------------------------------------------------------------------------


def _select(dialog: _Dialog) -> None:
    tool = dialog.choose()
    request = dialog.request(tool)
    form = dialog.draw.random()
    if form < 0.5:
        dialog.say("user", "frames", request=request.text)
        dialog.carry_out(request)
        dialog.part()
    elif form < 0.8:
        dialog.say("user", "vague", request=request.bare)
        dialog.say("assistant", "ask_back", missing=say_needs(tool, dialog.language))
        dialog.say("user", "give", detail=request.details)
        dialog.carry_out(request)
    else:
        second = make_request(dialog.draw, tool, dialog.language, dialog.split)
        dialog.templates.append(second.template)
        dialog.say("user", "twice", request=request.text, second=second.text)
        results = dialog.run([request, second])
        dialog.reply([(tool, result) for result in results])
        dialog.part()


# -- several steps ----------------------------------------------------------------------------------


def _plan(dialog: _Dialog) -> None:
    steps = dialog.draw.randint(3, 5)
    plan = choose_plan(dialog.draw, dialog.tools, steps)
    dialog.category = plan[0].category
    dialog.offered = offer(dialog.draw, dialog.tools, plan, distractors=_DISTRACTORS_OF_PLANS)
    requests: list[Request] = []
    results: list[dict[str, Any]] = []
    for place, tool in enumerate(plan):
        number = None
        if place and can_follow(plan[place - 1], tool):
            number = _number_in(results[-1])
        requests.append(make_request(dialog.draw, tool, dialog.language, dialog.split, number=number))
        results.append(simulate(tool.row, requests[-1].arguments))
    text, names = frame_plan(dialog.draw, requests, dialog.language, dialog.split)
    dialog.turns.append({"role": "user", "content": text})
    dialog.templates += names
    for request in requests:
        dialog.run([request])
    dialog.reply([(plan[-1], results[-1])])
    if len(dialog.turns) + 2 <= MOST_TURNS and dialog.draw.random() < 0.5:
        dialog.part()


def _number_in(result: dict[str, Any]) -> str:
    return str(result["items"][0]["id"] if "items" in result else result["id"])


# -- to call or not to call -------------------------------------------------------------------------


def _time(dialog: _Dialog) -> None:
    tool = dialog.choose()
    request = dialog.request(tool)
    form = dialog.draw.randrange(4)
    if form == 0:
        dialog.say("user", "if_then", request=request.text)
        dialog.carry_out(request)
        dialog.part()
    elif form == 1:
        dialog.say("user", "asked_only", request=request.bare)
        dialog.say("assistant", "explained", needs=say_needs(tool, dialog.language))
        dialog.say("user", "frames", request=request.text)
        dialog.carry_out(request)
    else:
        dialog.say("user", "hold", request=request.text)
        dialog.say("assistant", "noted")
        if form == 2:
            dialog.say("user", "go")
            dialog.carry_out(request)
        else:
            dialog.say("user", "never_mind")
            dialog.say("assistant", "left")
            dialog.part()


# -- the tool is looked for first -------------------------------------------------------------------


def _retrieve(dialog: _Dialog) -> None:
    tool = dialog.choose()
    request = dialog.request(tool)
    dialog.say("user", "wanted_tools", request=request.text)
    dialog.say("assistant", "tool_named", tool=tool.name, about=tool.description)
    dialog.say("user", "use_it")
    dialog.carry_out(request)


_WRITERS: dict[TaskType, Callable[[_Dialog], None]] = {
    "tool_selection": _select,
    "multi_step_planning": _plan,
    "timing_decision": _time,
    "tool_retrieval": _retrieve,
}
