"""Rows as the supervised trainer learns them: ``python -m trellis_train.data.token_view``.

The chat template, the tokens and the mask are those of verl's own dataset, which trains on the same rows.
Loading it takes seconds, so one process answers task after task (``trellis_data.warm_process``).
"""

import json
import os
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.data_tasks import (
    EXIT_BAD_REQUEST,
    FAILURE_FILE,
    REQUEST_FILE,
    RESULT_FILE,
    TaskFailure,
    TokensTask,
)
from trellis_contracts.recipe import DataFormat
from trellis_contracts.row_formats import CONVERSIONS
from trellis_contracts.token_view import TokenRow, TokenSegment, TokenView
from trellis_data.layout import Layout
from trellis_data.versions.records import StoreProblem
from trellis_data.versions.store import Store
from trellis_data.versions.version_rows import read_rows
from trellis_data.warm_process import serve
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_recipes.data.row_values import BadRow

from trellis_train.data.message_weights import WEIGHED_MESSAGES, weigh

_FILE = "rows.parquet"
#: Nothing is cut before it is shown.
_UNBOUNDED = 2**31 - 1
#: Tokens of a row whose text is shown; all are counted.
_SHOWN_TOKENS = 20_000
_MAX_PROBLEM = 500


class CannotShow(Exception):
    """These rows cannot be shown; says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def carry_out(folder: Path) -> int:
    """Carry out the task of a folder; the exit status."""
    asked = json.loads((folder / REQUEST_FILE).read_bytes())
    try:
        task = TokensTask.model_validate(asked["request"])
        store = Store(Path(asked["store"]))
        version = store.version(asked["version"])
        table = read_rows(store, version, task.split, task.offset, task.limit)
        view = view_rows(
            table.to_pylist(),
            store.tree(version.commit.tree).layout,
            Path(asked["model_dir"]),
            folder,
            first=task.offset,
            split=task.split,
            max_length=task.max_length,
        )
    except (CannotShow, StoreProblem) as problem:
        failure = TaskFailure(code=problem.code, message=problem.message)
        (folder / FAILURE_FILE).write_text(failure.model_dump_json(), encoding="utf-8")
        return EXIT_BAD_REQUEST
    (folder / RESULT_FILE).write_text(view.model_dump_json(), encoding="utf-8")
    return 0


def view_rows(
    rows: Sequence[dict[str, Any]],
    layout: Layout,
    model: Path,
    work: Path,
    *,
    first: int,
    split: str,
    max_length: int | None,
) -> TokenView:
    """Return the rows as the model's trainer sees them; the first has position ``first`` in its split."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    viewer = _Documents if layout.format is DataFormat.TEXT else _Conversations
    numbered = list(enumerate(rows, start=first))
    shown = list(viewer(layout, model, work, split, max_length).show(numbered)) if numbered else []
    view = TokenView(rows=shown, max_length=max_length)
    if layout.format is DataFormat.PREFERENCE:
        view.note = "Supervised fine-tuning trains on the chosen answers."
        view.note_code = "chosen_is_learned"
    return view


class _Conversations:
    """Rows that become conversations, of which the assistant's turns are learned."""

    def __init__(self, layout: Layout, model: Path, work: Path, split: str, max_length: int | None) -> None:
        if layout.format not in CONVERSIONS[DataFormat.MESSAGES]:
            raise CannotShow(
                "format_not_trainable",
                f"Supervised fine-tuning needs conversations, but these rows have the format "
                f"'{layout.format.value}'; convert them first.",
            )
        self._convert = choose_conversion(layout.format, DataFormat.MESSAGES, layout.columns)
        self._dataset_class, _, self._settings = _engine()
        self._tokenizer = _load(model, _stamp_of(model))
        if not self._tokenizer.chat_template:
            raise CannotShow("model_without_chat_template", "The model has no chat template.")
        self._file, self._split, self._max_length = work / _FILE, split, max_length

    def show(self, rows: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[TokenRow]:
        """Show each row, in order."""
        places: dict[int, int] = {}
        problems: dict[int, BadRow] = {}
        conversations: list[dict[str, Any]] = []
        for number, row in rows:
            try:
                found = self._convert(row, Place(number, self._split))
            except BadRow as error:
                problems[number] = error
                continue
            places[number] = len(conversations)
            conversations += found[:1]
        dataset = self._open(conversations) if conversations else None
        for number, _ in rows:
            yield (
                _unusable(number, str(problems[number]), problems[number].code)
                if number in problems
                else self._show(dataset, places[number], number)
            )

    def _open(self, conversations: list[dict[str, Any]]) -> Any:
        """Open the conversations with a subclass of verl's dataset that remembers where their turns end."""

        class Watched(weigh(self._dataset_class)):  # type: ignore[misc]
            turns: list[tuple[str, int]]

            def _process_single_message(
                self, index: int, message: dict[str, Any], *more: Any, **named: Any
            ) -> Any:
                made = super()._process_single_message(index, message, *more, **named)
                self.turns.append((message["role"], len(made[0])))
                return made

        pq.write_table(
            pa.Table.from_pylist(conversations, pa.schema([("messages", WEIGHED_MESSAGES)])), self._file
        )
        config = {
            **self._settings,
            "messages_key": "messages",
            "pad_mode": "no_padding",
            "truncation": "right",
            "max_length": _UNBOUNDED,
        }
        return Watched([str(self._file)], self._tokenizer, config)

    def _show(self, dataset: Any, place: int, number: int) -> TokenRow:
        dataset.turns = []
        try:
            item = dataset[place]
        except Exception as error:  # noqa: BLE001 - templates raise what they like, and training would too
            return _unusable(number, f"{type(error).__name__}: {error}", "template_failed")
        ids, mask = item["input_ids"].tolist(), [bool(each) for each in item["loss_mask"].tolist()]
        roles = [role for role, length in dataset.turns for _ in range(length)]
        return _describe(number, self._tokenizer, ids, roles, mask, self._max_length)


class _Documents:
    """Texts, every token of which is learned."""

    def __init__(self, layout: Layout, model: Path, work: Path, split: str, max_length: int | None) -> None:
        del work
        self._convert = choose_conversion(layout.format, DataFormat.TEXT, layout.columns)
        self._tokenizer = _load(model, _stamp_of(model))
        if self._tokenizer.eos_token_id is None:
            raise CannotShow("model_without_end", "The model's tokenizer has no end-of-text token.")
        # A text is never cut: what does not fit into one block is learned in the next.
        del max_length
        self._split = split

    def show(self, rows: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[TokenRow]:
        """Show each row, in order."""
        from trellis_train.data.documents import tokenize_documents

        for number, row in rows:
            try:
                text = self._convert(row, Place(number, self._split))[0]["text"]
            except BadRow as error:
                yield _unusable(number, str(error), error.code)
                continue
            ids = tokenize_documents(self._tokenizer, [text])[0]
            yield _describe(number, self._tokenizer, ids, [None] * len(ids), [True] * len(ids), None)


@cache
def _engine() -> tuple[type[Any], Any, dict[str, Any]]:
    """Load verl's dataset class, the function that loads its tokenizer, and verl's data settings."""
    from trellis_train.data.lean_verl import load_dataset_class

    return load_dataset_class()


@lru_cache(maxsize=1)
def _load(model: Path, stamp: tuple[tuple[str, int, int], ...]) -> Any:
    """Load the tokenizer of a folder; the last one is cached while its files match ``stamp``."""
    del stamp
    load_tokenizer = _engine()[1]
    try:
        return load_tokenizer(str(model))
    except Exception as error:
        message = f"The model's tokenizer cannot be read: {type(error).__name__}: {error}"
        raise CannotShow("tokenizer_unreadable", message[:_MAX_PROBLEM]) from error


def _stamp_of(model: Path) -> tuple[tuple[str, int, int], ...]:
    """Return a stamp that changes with any file of a folder."""
    if not model.is_dir():
        raise CannotShow("tokenizer_unreadable", "The model's folder no longer exists.")
    found = [(path.name, path.stat()) for path in sorted(model.iterdir())]
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in found)


def _unusable(number: int, problem: str, code: str) -> TokenRow:
    return TokenRow(
        row=number,
        segments=[],
        token_count=0,
        trained_count=0,
        is_truncated=False,
        problem=problem.strip()[:_MAX_PROBLEM],
        problem_code=code,
    )


def _describe(
    number: int,
    tokenizer: Any,
    ids: list[int],
    roles: Sequence[str | None],
    mask: Sequence[bool],
    max_length: int | None,
) -> TokenRow:
    """Split the sequence into runs of the same role that are entirely trained or entirely not trained."""
    segments: list[TokenSegment] = []
    start = 0
    for end in range(1, len(ids) + 1):
        if end < len(ids) and (roles[end], mask[end]) == (roles[start], mask[start]):
            continue
        shown = ids[start : max(start, min(end, _SHOWN_TOKENS))]
        segments.append(
            TokenSegment(
                text=tokenizer.decode(shown, skip_special_tokens=False, clean_up_tokenization_spaces=False)
                + ("" if len(shown) == end - start else "…"),
                role=roles[start],
                token_count=end - start,
                is_trained=mask[start],
            )
        )
        start = end
    kept = mask if max_length is None else mask[:max_length]
    return TokenRow(
        row=number,
        segments=segments,
        token_count=len(ids),
        trained_count=sum(kept),
        is_truncated=len(kept) < len(ids),
    )


if __name__ == "__main__":
    serve(carry_out)
