"""One row of one format as rows of another: what the conversion in columns must agree with.

Reads with the readers that training uses, so that a row means the same in both places; only messages
are read whole here, with calls of tools.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from trellis_recipes.data.conversion import DATA_SOURCE
from trellis_recipes.data.reference_answers import (
    find_boxed,
    find_gsm8k_answer,
    find_reference_answer,
)
from trellis_recipes.data.row_values import BadRow, Cell, Row, RowReader

from trellis_data.formats.messages import RichMessage, from_turns, rich_messages_in, to_turns
from trellis_data.formats.shapes import EXTRA, MEANS, Reading, Shape

Extraction = Literal["auto", "whole", "gsm8k", "boxed"]
_EXTRACTORS: dict[str, Callable[[str], str | None]] = {
    "auto": find_reference_answer,
    "whole": str,
    "gsm8k": find_gsm8k_answer,
    "boxed": find_boxed,
}
#: Where ShareGPT's turns lie.
TURN_COLUMNS = ("conversations", "conversation", "messages")


@dataclass
class Sample:
    """What a row means, whatever its format."""

    messages: list[RichMessage]
    #: Where in ``messages`` the answer begins that is to be learned.
    split: int
    rejected: list[RichMessage] | None = None
    label: bool | None = None
    truth: str | None = None
    text: str | None = None


def extract_answer(text: str, how: Extraction) -> str:
    """Extract the final answer of a solution; raise ``BadRow`` if it has none of that kind."""
    found = _EXTRACTORS[how](text)
    if found is None or not found.strip():
        marks = {"gsm8k": " (####)", "boxed": r" (\boxed{})"}
        raise BadRow(f"the answer has no final answer{marks.get(how, '')}", "no_final_answer")
    return found


class RowConverter:
    """Converts rows one by one."""

    def __init__(self, reading: Reading, target: Shape, extraction: Extraction) -> None:
        self._shape = reading.shape
        self._reader = RowReader(MEANS[reading.shape], reading.columns, rich_messages_in)
        self._columns = reading.columns
        self._target = target
        self._extraction = extraction

    def convert(self, row: Row) -> list[dict[str, Any]]:
        """Convert a row to rows with the target's columns; raise ``BadRow`` if that is impossible."""
        sample = self._read(row)
        if sample.text is not None and self._target is not Shape.TEXT:
            raise BadRow("plain text has no prompt and no answer", "no_prompt")
        return _WRITERS[self._target](self, sample, row)

    def _read(self, row: Row) -> Sample:
        reader = self._reader
        match self._shape:
            case Shape.ALPACA | Shape.PROMPT_ANSWER:
                prompt = reader.prompt(row)
                answer = {"role": "assistant", "content": reader.answer(row)}
                return Sample([*prompt, answer], len(prompt))
            case Shape.MESSAGES | Shape.VERL_SFT:
                return self._with_leftovers(_dialogue(reader.conversation(row)), row)
            case Shape.SHAREGPT:
                return self._with_leftovers(self._read_turns(row), row)
            case Shape.PREFERENCE:
                prompt, chosen, rejected = reader.pair(row)
                return Sample([*prompt, *chosen], len(prompt), rejected=rejected)
            case Shape.UNPAIRED_PREFERENCE:
                prompt = reader.prompt(row)
                completion = reader.completion(row, "completion", prompt)
                return Sample([*prompt, *completion], len(prompt), label=reader.label(row))
            case Shape.VERL_RL:
                return self._read_rl(row)
            case Shape.TEXT:
                return Sample([], 0, text=reader.text(row))

    def _read_turns(self, row: Row) -> Sample:
        names = (self._columns["messages"],) if "messages" in self._columns else TURN_COLUMNS
        name = next((each for each in names if row.get(each) is not None), names[0])
        messages = from_turns(Cell(name, row.get(name)), _extra_of(row))
        system = row.get("system")
        if isinstance(system, str) and system.strip():
            messages.insert(0, {"role": "system", "content": system})
        if not any(message["role"] == "assistant" for message in messages):
            raise BadRow(f"'{name}' has no turn of the assistant", "no_answer")
        return _dialogue(messages)

    def _read_rl(self, row: Row) -> Sample:
        prompt = rich_messages_in(self._reader.require(row, "prompt"))
        reward_model = self._reader.require(row, "reward_model")
        truth = reward_model.value.get("ground_truth") if isinstance(reward_model.value, Mapping) else None
        if not isinstance(truth, str):
            raise BadRow(f"'{reward_model.column}' holds no text as 'ground_truth'", "no_answer")
        information = row.get("extra_info")
        solution = information.get("answer") if isinstance(information, Mapping) else None
        answer = solution if isinstance(solution, str) and solution.strip() else truth
        after = _extra_of(row).get("after") or []
        messages = [*prompt, {"role": "assistant", "content": answer}, *after]
        return Sample(messages, len(prompt), truth=truth)

    def _with_leftovers(self, sample: Sample, row: Row) -> Sample:
        """Add what an earlier conversion to messages left in other columns."""
        if self._target is Shape.PREFERENCE and row.get("rejected") is not None:
            sample.rejected = self._reader_of_answers(row, "rejected", sample)
        if isinstance(row.get("label"), bool):
            sample.label = row["label"]
        reward_model = row.get("reward_model")
        if isinstance(reward_model, Mapping) and isinstance(reward_model.get("ground_truth"), str):
            sample.truth = reward_model["ground_truth"]
        return sample

    def _reader_of_answers(self, row: Row, name: str, sample: Sample) -> list[RichMessage]:
        prompt = sample.messages[: sample.split]
        found: list[RichMessage] = RowReader(
            MEANS[Shape.PREFERENCE], {name: name}, rich_messages_in
        ).completion(row, name, prompt)
        return found

    def _as_messages(self, sample: Sample, row: Row) -> list[dict[str, Any]]:  # noqa: ARG002 - one signature
        if sample.label is False:
            raise BadRow("the response is labeled as undesirable", "unwanted_answer")
        return [{"messages": sample.messages}]

    def _as_turns(self, sample: Sample, row: Row) -> list[dict[str, Any]]:
        messages = self._as_messages(sample, row)[0]["messages"]
        system = None
        if messages[0]["role"] == "system" and len(messages) > 1 and (messages[0]["content"] or "").strip():
            system, messages = messages[0]["content"], messages[1:]
        turns, left = to_turns(messages)
        return [{"conversations": turns, "system": system, EXTRA: _json(left)}]

    def _question(self, sample: Sample) -> tuple[str | None, str, str]:
        """Return the system prompt, prompt and answer of a conversation with one question."""
        if sample.label is False:
            raise BadRow("the response is labeled as undesirable", "unwanted_answer")
        messages = sample.messages
        rest = messages[1:] if messages[0]["role"] == "system" else messages
        if [message["role"] for message in rest] != ["user", "assistant"]:
            raise BadRow("the conversation has more than one question", "many_turns")
        if any(set(message) - {"role", "content"} or message["content"] is None for message in messages):
            raise BadRow("the conversation has names or calls of tools", "has_tools")
        system = messages[0]["content"] if len(rest) < len(messages) else None
        return system, rest[0]["content"], rest[1]["content"]

    def _as_question(self, sample: Sample, row: Row) -> list[dict[str, Any]]:  # noqa: ARG002
        system, prompt, solution = self._question(sample)
        if sample.truth is not None:
            solution = sample.truth
        made = {"prompt": prompt, "answer": solution, "system": system}
        if self._extraction != "whole":
            made |= {"answer": extract_answer(solution, self._extraction), "solution": solution}
        return [made]

    def _as_alpaca(self, sample: Sample, row: Row) -> list[dict[str, Any]]:
        system, prompt, answer = self._question(sample)
        further = row.get("input")
        if isinstance(further, str) and further.strip() and prompt.endswith(f"\n\n{further}"):
            prompt = prompt.removesuffix(f"\n\n{further}")
        else:
            further = ""
        return [{"instruction": prompt, "input": further, "output": answer, "system": system}]

    def _as_pair(self, sample: Sample, row: Row) -> list[dict[str, Any]]:  # noqa: ARG002
        if sample.rejected is None:
            raise BadRow("no rejected response", "no_rejected")
        prompt, chosen = sample.messages[: sample.split], sample.messages[sample.split :]
        return [{"prompt": prompt, "chosen": chosen, "rejected": sample.rejected}]

    def _as_labelled(self, sample: Sample, row: Row) -> list[dict[str, Any]]:  # noqa: ARG002
        prompt, completion = sample.messages[: sample.split], sample.messages[sample.split :]
        made = {"prompt": prompt, "completion": completion, "label": sample.label}
        if sample.rejected is not None:
            return [{**made, "label": True}, {**made, "completion": sample.rejected, "label": False}]
        if sample.label is None:
            raise BadRow("the response has no label", "no_label")
        return [made]

    def _as_rl(self, sample: Sample, row: Row) -> list[dict[str, Any]]:  # noqa: ARG002
        if sample.label is False:
            raise BadRow("the response is labeled as undesirable", "unwanted_answer")
        prompt, answer = sample.messages[: sample.split], sample.messages[sample.split]
        if not prompt:
            raise BadRow("the conversation starts with the assistant, so there is no prompt", "no_prompt")
        if answer["content"] is None:
            raise BadRow("the last assistant turn is a tool call", "no_text")
        truth = sample.truth
        if truth is None:
            truth = extract_answer(answer["content"], self._extraction)
        after = sample.messages[sample.split + 1 :]
        return [
            {
                "data_source": DATA_SOURCE,
                "prompt": prompt,
                "ability": "general",
                "reward_model": {"style": "rule", "ground_truth": truth},
                "extra_info": {"question": prompt[-1]["content"], "answer": answer["content"]},
                EXTRA: _json({"after": after} if after else {}),
            }
        ]

    def _as_text(self, sample: Sample, row: Row) -> list[dict[str, Any]]:  # noqa: ARG002
        if sample.text is not None:
            return [{"text": sample.text}]
        return [{"text": "\n\n".join(message["content"] or "" for message in sample.messages)}]


_WRITERS: dict[Shape, Callable[[RowConverter, Sample, Row], list[dict[str, Any]]]] = {
    Shape.ALPACA: RowConverter._as_alpaca,
    Shape.SHAREGPT: RowConverter._as_turns,
    Shape.MESSAGES: RowConverter._as_messages,
    Shape.PROMPT_ANSWER: RowConverter._as_question,
    Shape.PREFERENCE: RowConverter._as_pair,
    Shape.UNPAIRED_PREFERENCE: RowConverter._as_labelled,
    Shape.VERL_RL: RowConverter._as_rl,
    Shape.VERL_SFT: RowConverter._as_messages,
    Shape.TEXT: RowConverter._as_text,
}


def _dialogue(messages: list[RichMessage]) -> Sample:
    last = max(number for number, message in enumerate(messages) if message["role"] == "assistant")
    return Sample(messages, last)


def _extra_of(row: Row) -> Mapping[str, Any]:
    """Parse the extra column, which holds what an earlier conversion could not represent."""
    text = row.get(EXTRA)
    if not isinstance(text, str):
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _json(value: Mapping[str, Any]) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None
