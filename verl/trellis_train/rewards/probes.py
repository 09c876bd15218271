"""What a dry run scores: rows drawn from the dataset, and the probes made of them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from trellis_contracts.dry_run import Probe, RecordedRollout
from trellis_contracts.recipe import DataFormat, Text
from trellis_contracts.spec import DataSource
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_recipes.data.row_values import BadRow, RowReader

from trellis_train.data.sources import list_groups, take_rows
from trellis_train.rewards.sample import Message, Sample, plain_row

TITLES = {
    Probe.GOLD: Text(en="Reference solution", zh="参考解答"),
    Probe.ANSWER: Text(en="Answer only", zh="仅答案"),
    Probe.EMPTY: Text(en="Empty response", zh="空回答"),
    Probe.TRUNCATED: Text(en="First half of the solution", zh="解答的前半部分"),
    Probe.REPEATED: Text(en="Solution repeated 3x", zh="解答重复三遍"),
    Probe.FORMAT_ONLY: Text(en="Format without an answer", zh="只有格式没有答案"),
    Probe.WRONG: Text(en="Another row's answer", zh="另一行的答案"),
    Probe.ROLLOUTS: Text(en="Recorded job responses", zh="任务记录的回答"),
}
FORMAT_WITHOUT_ANSWER = "<think>Let me think about this step by step.</think>"


class BadDryRun(ValueError):
    """The dry run cannot be carried out; the message is for the person."""


@dataclass(frozen=True)
class DrawnRow:
    """A row of the dataset: prompt, reference answer, and the reference solution as it is written."""

    number: int
    messages: Sequence[Mapping[str, str]]
    answer: str
    gold: str
    row: Mapping[str, Any]

    def respond(self, response: str) -> Sample:
        """Build the sample of a response to this row's prompt."""
        return Sample(response=response, answer=self.answer, messages=self.messages, row=self.row)


def draw_rows(source: DataSource, count: int, seed: int) -> list[DrawnRow]:
    """Draw rows without replacement, in the dataset's order; ``BadDryRun`` names a row that is bad."""
    try:
        total = sum(group.rows for group in list_groups(source))
        numbers = sorted(random.Random(seed).sample(range(total), min(count, total)))  # noqa: S311
        rows = take_rows(source, numbers)
    except (OSError, pa.ArrowException) as error:
        raise BadDryRun(f"The dataset cannot be read: {error}") from error
    if not rows:
        raise BadDryRun("The dataset is empty.")
    return [_read(source, row, number) for number, row in zip(numbers, rows, strict=True)]


def _read(source: DataSource, row: dict[str, Any], number: int) -> DrawnRow:
    try:
        convert = choose_conversion(source.format, DataFormat.VERL_RL, source.columns)
        converted = convert(row, Place(number, "train"))[0]
        gold = _find_gold(source, row)
    except (BadRow, ValueError) as error:
        raise BadDryRun(f"Row {number + 1}: {error}.") from error
    answer = str(converted["reward_model"]["ground_truth"])
    info = converted.get("extra_info") or {}
    return DrawnRow(
        number=number,
        messages=[dict(message) for message in converted["prompt"]],
        answer=answer,
        gold=answer if gold is None else gold,
        row={**plain_row(info), "data_source": converted["data_source"]},
    )


def _find_gold(source: DataSource, row: dict[str, Any]) -> str | None:
    """Return the reference solution as written; None if the row has only an answer."""
    reader = RowReader(source.format, source.columns)
    if source.format is DataFormat.PROMPT_ANSWER:
        return reader.answer(row)
    if source.format is DataFormat.MESSAGES:
        turns = [turn["content"] for turn in reader.conversation(row) if turn["role"] == "assistant"]
        return turns[-1]
    # verl's own preparation of GSM8K keeps the worked solution under this name.
    solution = (row.get("extra_info") or {}).get("answer")
    return solution if isinstance(solution, str) and solution.strip() else None


def make_probes(
    rows: Sequence[DrawnRow], rollouts: Sequence[RecordedRollout]
) -> dict[Probe, list[tuple[int, Sample]]]:
    """Make every probe with its samples and the numbers of their rows (of rollouts: their position)."""
    probes = {
        Probe.GOLD: [(row.number, row.respond(row.gold)) for row in rows],
        Probe.ANSWER: [(row.number, row.respond(row.answer)) for row in rows],
        Probe.EMPTY: [(row.number, row.respond("")) for row in rows],
        Probe.TRUNCATED: [(row.number, row.respond(row.gold[: len(row.gold) // 2])) for row in rows],
        Probe.REPEATED: [(row.number, row.respond("\n".join([row.gold] * 3))) for row in rows],
        Probe.FORMAT_ONLY: [(row.number, row.respond(FORMAT_WITHOUT_ANSWER)) for row in rows],
        Probe.WRONG: list(_wrong_answers(rows)),
    }
    if rollouts:
        probes[Probe.ROLLOUTS] = [
            (position, _as_sample(rollout, rows)) for position, rollout in enumerate(rollouts)
        ]
    return {probe: samples for probe, samples in probes.items() if samples}


def _wrong_answers(rows: Sequence[DrawnRow]) -> list[tuple[int, Sample]]:
    """Pair each row with the solution of the next one that has a different answer; none if all are equal."""
    found = []
    for place, row in enumerate(rows):
        others = (rows[(place + step) % len(rows)] for step in range(1, len(rows)))
        other = next((each for each in others if each.answer != row.answer), None)
        if other is not None:
            found.append((row.number, row.respond(other.gold)))
    return found


def _as_sample(rollout: RecordedRollout, rows: Sequence[DrawnRow]) -> Sample:
    source = rows[0].row.get("data_source", "dataset") if rows else "dataset"
    return Sample(
        response=rollout.response,
        answer=rollout.answer,
        messages=[{"role": "user", "content": rollout.prompt}],
        row={"data_source": source},
    )


@dataclass(frozen=True)
class LiveResponse:
    """A response that the policy wrote in a run, whole."""

    messages: Sequence[Message]
    response: str
    answer: str
    row: Mapping[str, Any] = field(default_factory=dict)
    tokens: int | None = None
    #: What each term gave in the run, by name, unweighted.
    earned: Mapping[str, float] = field(default_factory=dict)

    def respond(self, response: str, tokens: int | None = None) -> Sample:
        """Make a sample with another response to the same prompt."""
        return Sample(
            response=response,
            answer=self.answer,
            messages=self.messages,
            row=self.row,
            response_tokens=tokens,
        )


def make_live_probes(responses: Sequence[LiveResponse]) -> dict[Probe, list[Sample]]:
    """Make probes from a policy's own responses, which are also kept (``ROLLOUTS``) for comparison.

    ``WRONG`` is the response to another prompt whose reference answer differs: what still earns its reward
    there has nothing to do with the prompt.
    """
    probes = {
        Probe.ROLLOUTS: [each.respond(each.response, each.tokens) for each in responses],
        Probe.EMPTY: [each.respond("", 0) for each in responses],
        Probe.TRUNCATED: [
            each.respond(each.response[: len(each.response) // 2], _times(each.tokens, 0.5))
            for each in responses
        ],
        Probe.REPEATED: [
            each.respond("\n".join([each.response] * 3), _times(each.tokens, 3)) for each in responses
        ],
        Probe.FORMAT_ONLY: [each.respond(FORMAT_WITHOUT_ANSWER) for each in responses],
        Probe.WRONG: list(_swap_responses(responses)),
    }
    return {probe: samples for probe, samples in probes.items() if samples}


def _swap_responses(responses: Sequence[LiveResponse]) -> Iterator[Sample]:
    for place, each in enumerate(responses):
        others = (responses[(place + step) % len(responses)] for step in range(1, len(responses)))
        other = next((one for one in others if one.answer != each.answer), None)
        if other is not None:
            yield each.respond(other.response, other.tokens)


def _times(tokens: int | None, factor: float) -> int | None:
    return None if tokens is None else round(tokens * factor)
