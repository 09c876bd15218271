"""The common ways between formats, in columns; says of each row whether it is common enough.

What this module makes of a row is what ``rowwise`` makes of it. Rows about which there is any
doubt (blank texts, numbers, calls of tools, a second question) are left to that module.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from trellis_contracts.row_formats import FORMAT_ROLES, ROLES
from trellis_recipes.data.conversion import DATA_SOURCE
from trellis_recipes.data.row_values import BadRow

from trellis_data.formats.rowwise import TURN_COLUMNS, Extraction, extract_answer
from trellis_data.formats.shapes import EXTRA, MEANS, Reading, Shape
from trellis_data.formats.turns import Turns, interleave, joined, turns_of
from trellis_data.row_texts import is_messages, is_text, is_turns
from trellis_data.sharegpt_roles import SPEAKERS, TURN_NAMES

#: A text that says something to every reader: Python and Arrow differ in what else is blank.
_SAYS = r"[\p{L}\p{N}\p{P}\p{S}\p{M}]"
_SPEAKER_NAMES = pa.array([*SPEAKERS, *sorted(ROLES)])
_SPEAKER_ROLES = pa.array([*SPEAKERS.values(), *sorted(ROLES)])
_ROLE_NAMES = pa.array(sorted(ROLES))
_ROLE_TURNS = pa.array([TURN_NAMES.get(role, role) for role in sorted(ROLES)])


@dataclass(frozen=True)
class Samples:
    """What rows mean; see ``rowwise.Sample``. ``sure`` says which rows this is right for."""

    turns: Turns
    split: np.ndarray
    sure: np.ndarray
    rejected: Turns | None = None
    label: np.ndarray | None = None
    truth: pa.Array | None = None


@dataclass(frozen=True)
class _Wanted:
    """The rows that are read, and what is to become of them."""

    table: pa.Table
    schema: pa.Schema
    extraction: Extraction


def convert_columns(
    table: pa.Table, reading: Reading, target: Shape, schema: pa.Schema, extraction: Extraction
) -> tuple[dict[str, pa.Array], np.ndarray] | None:
    """Convert all rows by columns; return the columns and which rows are right, or None if not supported.

    Pairs that become two rows each are none of this module's: they come as ``chosen`` and ``rejected``.
    """
    reader, writer = _READERS.get(reading.shape), _WRITERS.get(target)
    if reader is None or writer is None:
        return None
    samples = reader(table, reading)
    return None if samples is None else writer(samples, _Wanted(table, schema, extraction))


def _column(table: pa.Table, reading: Reading, role: str) -> tuple[str, pa.Array] | None:
    """Find the column of a role: the one named, else the first of its usual columns that exists."""
    if role in reading.columns:
        names: tuple[str, ...] = (reading.columns[role],)
    else:
        roles = FORMAT_ROLES[MEANS[reading.shape]]
        names = next((each.usual_columns for each in roles if each.name == role), ())
    name = next((each for each in names if each in table.column_names), None)
    return None if name is None else (name, _whole(table.column(name)))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _mask(values: pa.Array) -> np.ndarray:
    found: np.ndarray = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return found


def _says(texts: pa.Array) -> np.ndarray:
    return _mask(pc.match_substring_regex(texts, _SAYS))


def _optional_text(
    table: pa.Table, reading: Reading, role: str
) -> tuple[pa.Array, np.ndarray, np.ndarray] | None:
    """Read an optional text: the texts, which rows have one, and for which rows that is certain."""
    found = _column(table, reading, role)
    size = table.num_rows
    if found is None or pa.types.is_null(found[1].type):
        return pa.nulls(size, pa.string()), np.zeros(size, bool), np.ones(size, bool)
    if not is_text(found[1].type):
        return None
    texts = found[1].cast(pa.string())
    says = _says(texts)
    return texts, says, says | _mask(pc.equal(pc.fill_null(texts, ""), ""))


def _read_prompt(table: pa.Table, reading: Reading) -> tuple[Turns, np.ndarray] | None:
    """Read the turns before the answer, and for which rows they are certain."""
    found = _column(table, reading, "prompt")
    if found is None:
        return None
    name, column = found
    if is_messages(column.type):
        turns, plain = turns_of(column, "role", "content")
        return turns, plain & _known_roles(turns)
    system = _optional_text(table, reading, "system")
    if not is_text(column.type) or system is None:
        return None
    texts = column.cast(pa.string())
    sure = _says(texts) & system[2]
    takes_input = "input" in reading.columns or name == "instruction"
    if MEANS[reading.shape] is MEANS[Shape.ALPACA] and takes_input and name != "input":
        further = _optional_text(table, reading, "input")
        if further is None:
            return None
        both = pc.binary_join_element_wise(texts, further[0], "\n\n")
        texts = pc.if_else(pa.array(further[1]), both, texts)
        sure &= further[2]
    everywhere = np.ones(table.num_rows, bool)
    return interleave([("system", system[0], system[1]), ("user", texts, everywhere)]), sure


def _known_roles(turns: Turns) -> np.ndarray:
    return turns.all_in_row(pc.is_in(turns.roles, value_set=_ROLE_NAMES))


def _read_question(table: pa.Table, reading: Reading) -> Samples | None:
    prompt, answer = _read_prompt(table, reading), _column(table, reading, "answer")
    if prompt is None or answer is None:
        return None
    column = answer[1]
    if pa.types.is_integer(column.type):
        texts = column.cast(pa.string())
        sure = _mask(pc.is_valid(texts))
    elif is_text(column.type):
        texts = column.cast(pa.string())
        sure = _says(texts)
    else:
        return None
    everywhere = np.ones(table.num_rows, bool)
    turns = joined(prompt[0], interleave([("assistant", texts, everywhere)]))
    return Samples(turns, prompt[0].counts, prompt[1] & sure)


def _read_messages(table: pa.Table, reading: Reading) -> Samples | None:
    found = _column(table, reading, "messages")
    if found is None or not is_messages(found[1].type) or _has_leftovers(table):
        return None
    turns, plain = turns_of(found[1], "role", "content")
    split = turns.last_of("assistant")
    return Samples(turns, np.maximum(split, 0), plain & (split >= 0) & _known_roles(turns))


def _has_leftovers(table: pa.Table) -> bool:
    """Return whether an earlier conversion left columns beside the messages that belong to them."""
    return bool({"rejected", "label", "reward_model"} & set(table.column_names))


def _read_turns(table: pa.Table, reading: Reading) -> Samples | None:
    named = reading.columns.get("messages")
    name = named or next((each for each in TURN_COLUMNS if each in table.column_names), None)
    if name is None or name not in table.column_names or _has_leftovers(table):
        return None
    column = _whole(table.column(name))
    system = _optional_text(table, Reading(Shape.PROMPT_ANSWER), "system")
    if not is_turns(column.type) or system is None:
        return None
    turns, plain = turns_of(column, "from", "value")
    places = pc.index_in(turns.roles, value_set=_SPEAKER_NAMES)
    turns = Turns(turns.offsets, _SPEAKER_ROLES.take(places), turns.texts)
    plain &= turns.all_in_row(pc.is_valid(places)) & system[2]
    if EXTRA in table.column_names:
        plain &= _mask(pc.is_null(_whole(table.column(EXTRA))))
    whole = joined(interleave([("system", system[0], system[1])]), turns)
    split = whole.last_of("assistant")
    return Samples(whole, np.maximum(split, 0), plain & (split >= 0))


def _read_pair(table: pa.Table, reading: Reading) -> Samples | None:
    prompt = _read_prompt(table, reading)
    chosen = _read_side(table, reading, "chosen")
    rejected = _read_side(table, reading, "rejected")
    if prompt is None or chosen is None or rejected is None:
        return None
    sure = prompt[1] & chosen[1] & rejected[1]
    return Samples(joined(prompt[0], chosen[0]), prompt[0].counts, sure, rejected=rejected[0])


def _read_labelled(table: pa.Table, reading: Reading) -> Samples | None:
    prompt, completion = _read_prompt(table, reading), _read_side(table, reading, "completion")
    label = _column(table, reading, "label")
    if prompt is None or completion is None or label is None or not pa.types.is_boolean(label[1].type):
        return None
    sure = prompt[1] & completion[1] & _mask(pc.is_valid(label[1]))
    turns = joined(prompt[0], completion[0])
    return Samples(turns, prompt[0].counts, sure, label=_mask(label[1]))


def _read_side(table: pa.Table, reading: Reading, role: str) -> tuple[Turns, np.ndarray] | None:
    """Read the answers to the prompts, and for which rows they are certain.

    An answer is a text, or turns that begin with the assistant's.
    """
    found = _column(table, reading, role)
    if found is None:
        return None
    column = found[1]
    if is_text(column.type):
        texts = column.cast(pa.string())
        return interleave([("assistant", texts, np.ones(len(texts), bool))]), _says(texts)
    if not is_messages(column.type):
        return None
    turns, plain = turns_of(column, "role", "content")
    first, _ = turns.nth(np.zeros(len(turns), np.int64))
    return turns, plain & _known_roles(turns) & _mask(pc.equal(first, "assistant"))


def _read_rl(table: pa.Table, reading: Reading) -> Samples | None:
    prompt, reward = _read_prompt(table, reading), _column(table, reading, "reward_model")
    truth = None if reward is None else _text_field(reward[1], "ground_truth")
    if prompt is None or truth is None:
        return None
    sure = prompt[1] & _mask(pc.is_valid(truth))
    answer = truth
    if "extra_info" in table.column_names:
        solution = _text_field(_whole(table.column("extra_info")), "answer")
        if solution is not None:
            says = _says(solution)
            answer = pc.if_else(pa.array(says), solution, truth)
            sure &= says | _mask(pc.equal(pc.fill_null(solution, ""), ""))
    if EXTRA in table.column_names:
        sure &= _mask(pc.is_null(_whole(table.column(EXTRA))))
    turns = joined(prompt[0], interleave([("assistant", answer, np.ones(table.num_rows, bool))]))
    return Samples(turns, prompt[0].counts, sure, truth=truth)


def _text_field(column: pa.Array, name: str) -> pa.Array | None:
    """Return a text field of a column of objects; None if the objects do not have it."""
    if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
        return None
    values = pc.struct_field(column, name)
    return values.cast(pa.string()) if is_text(values.type) else None


def _as_messages(samples: Samples, wanted: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    sure = samples.sure if samples.label is None else samples.sure & samples.label
    return {"messages": samples.turns.as_messages(wanted.schema.field("messages").type)}, sure


def _as_turns(samples: Samples, wanted: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    turns, size = samples.turns, len(samples.turns)
    roles, texts = turns.nth(np.zeros(size, np.int64))
    is_system = _mask(pc.equal(roles, "system"))
    leads = is_system & (turns.counts > 1) & _says(texts)
    rest = turns.cut(leads.astype(np.int64), turns.counts)
    names = _ROLE_TURNS.take(pc.index_in(rest.roles, value_set=_ROLE_NAMES))
    sure = samples.sure & (~is_system | leads)
    if samples.label is not None:
        sure &= samples.label
    columns = {
        "conversations": rest.as_turns(wanted.schema.field("conversations").type, names),
        "system": pc.if_else(pa.array(leads), texts, pa.scalar(None, pa.string())),
        EXTRA: pa.nulls(size, pa.string()),
    }
    return columns, sure


def _questions(samples: Samples) -> tuple[pa.Array, pa.Array, pa.Array, np.ndarray]:
    """Split one-question conversations into system, prompt and answer, and mark the rows that are such."""
    turns = samples.turns
    counts = turns.counts
    first, system = turns.nth(np.zeros(len(turns), np.int64))
    asker, prompt = turns.nth(counts - 2)
    answerer, answer = turns.nth(counts - 1)
    has_system = _mask(pc.equal(first, "system")) & (counts == 3)
    sure = samples.sure & (has_system | (counts == 2))
    sure &= _mask(pc.equal(asker, "user")) & _mask(pc.equal(answerer, "assistant"))
    if samples.label is not None:
        sure &= samples.label
    none = pa.scalar(None, pa.string())
    return pc.if_else(pa.array(has_system), system, none), prompt, answer, sure


def _extracted(texts: pa.Array, sure: np.ndarray, extraction: Extraction) -> tuple[pa.Array, np.ndarray]:
    """Extract the final answers, and mark the rows that have one."""
    if extraction == "whole":
        return texts, sure
    found: list[str | None] = []
    for text, is_sure in zip(texts.to_pylist(), sure, strict=True):
        try:
            found.append(extract_answer(text, extraction) if is_sure else None)
        except BadRow:
            found.append(None)
    made = pa.array(found, pa.string())
    return made, sure & _mask(pc.is_valid(made))


def _as_question(samples: Samples, wanted: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    system, prompt, solution, sure = _questions(samples)
    solution = solution if samples.truth is None else samples.truth
    answer, sure = _extracted(solution, sure, wanted.extraction)
    columns = {"prompt": prompt, "answer": answer, "system": system}
    return (columns | {"solution": solution} if wanted.extraction != "whole" else columns), sure


def _as_alpaca(samples: Samples, wanted: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    system, prompt, answer, sure = _questions(samples)
    if "input" in wanted.table.column_names:
        further = _whole(wanted.table.column("input"))
        # Where a row has one, the other module finds it in the prompt again.
        if is_text(further.type):
            sure &= _mask(pc.equal(pc.fill_null(further, ""), ""))
    empty = pa.repeat("", len(samples.turns))
    return {"instruction": prompt, "input": empty, "output": answer, "system": system}, sure


def _as_pair(samples: Samples, wanted: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    kind = wanted.schema.field("chosen").type
    turns, size = samples.turns, len(samples.turns)
    prompt = turns.cut(np.zeros(size, np.int64), samples.split)
    chosen = turns.cut(samples.split, turns.counts)
    sides = {"prompt": prompt.as_messages(kind), "chosen": chosen.as_messages(kind)}
    if samples.rejected is None:
        return sides | {"rejected": pa.nulls(size, kind)}, np.zeros(size, bool)
    return sides | {"rejected": samples.rejected.as_messages(kind)}, samples.sure


def _as_labelled(samples: Samples, wanted: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    kind = wanted.schema.field("completion").type
    turns, size = samples.turns, len(samples.turns)
    prompt = turns.cut(np.zeros(size, np.int64), samples.split)
    completion = turns.cut(samples.split, turns.counts)
    columns = {"prompt": prompt.as_messages(kind), "completion": completion.as_messages(kind)}
    if samples.rejected is not None:
        return columns | {"rejected": samples.rejected.as_messages(kind)}, samples.sure
    if samples.label is None:
        return columns | {"label": pa.nulls(size, pa.bool_())}, np.zeros(size, bool)
    return columns | {"label": pa.array(samples.label)}, samples.sure


def _as_rl(samples: Samples, wanted: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    turns, size = samples.turns, len(samples.turns)
    prompt = turns.cut(np.zeros(size, np.int64), samples.split)
    _, answer = turns.nth(samples.split)
    _, question = turns.nth(samples.split - 1)
    sure = samples.sure & (samples.split > 0) & (samples.split == turns.counts - 1)
    if samples.label is not None:
        sure &= samples.label
    truth = samples.truth
    if truth is None:
        truth, sure = _extracted(answer, sure, wanted.extraction)
        sure &= _says(truth)
    kinds = {field.name: field.type for field in wanted.schema}
    columns = {
        "data_source": pa.repeat(DATA_SOURCE, size),
        "prompt": prompt.as_messages(kinds["prompt"]),
        "ability": pa.repeat("general", size),
        "reward_model": pa.StructArray.from_arrays(
            [pa.repeat("rule", size), truth], fields=list(kinds["reward_model"])
        ),
        "extra_info": pa.StructArray.from_arrays([question, answer], fields=list(kinds["extra_info"])),
        EXTRA: pa.nulls(size, pa.string()),
    }
    return columns, sure


def _as_text(samples: Samples, _: _Wanted) -> tuple[dict[str, pa.Array], np.ndarray]:
    return {"text": samples.turns.joined("\n\n")}, samples.sure


_READERS: dict[Shape, Callable[[pa.Table, Reading], Samples | None]] = {
    Shape.ALPACA: _read_question,
    Shape.PROMPT_ANSWER: _read_question,
    Shape.MESSAGES: _read_messages,
    Shape.VERL_SFT: _read_messages,
    Shape.SHAREGPT: _read_turns,
    Shape.PREFERENCE: _read_pair,
    Shape.UNPAIRED_PREFERENCE: _read_labelled,
    Shape.VERL_RL: _read_rl,
}
_WRITERS: dict[
    Shape,
    Callable[[Samples, _Wanted], tuple[dict[str, pa.Array], np.ndarray]],
] = {
    Shape.ALPACA: _as_alpaca,
    Shape.SHAREGPT: _as_turns,
    Shape.MESSAGES: _as_messages,
    Shape.PROMPT_ANSWER: _as_question,
    Shape.PREFERENCE: _as_pair,
    Shape.UNPAIRED_PREFERENCE: _as_labelled,
    Shape.VERL_RL: _as_rl,
    Shape.VERL_SFT: _as_messages,
    Shape.TEXT: _as_text,
}
