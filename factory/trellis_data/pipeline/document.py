"""Pipelines as YAML: read with errors that name the line, written in one canonical form, hashed."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from trellis_contracts.pipeline import Pipeline

from trellis_data.pipeline.problem import PipelineProblem

#: A pipeline is written by a person; a larger file is something else, such as data or an attack by aliases.
_MAX_BYTES = 1_000_000
Model = TypeVar("Model", bound=BaseModel)


class UnreadableDocument(ValueError):
    """A text that is no YAML, or has what is not allowed here."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Document:
    """What a YAML text holds, and where."""

    value: Any
    _node: Any

    def line_of(self, place: tuple[int | str, ...]) -> int:
        """Return the line of the innermost part of ``place`` that is in the text."""
        return 1 if self._node is None else _line_at(self._node, place)


def parse_document(text: str) -> Document:
    """Parse YAML (or JSON) without anchors and repeated keys; raise ``UnreadableDocument`` if invalid."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - made from SafeLoader
    except yaml.YAMLError as error:
        raise UnreadableDocument(_say(error), _line_of(error)) from error
    except RecursionError as error:
        raise UnreadableDocument("Nested too deeply.", None) from error
    return Document(value, node)


def load_pipeline(text: str, name: str = "pipeline") -> Pipeline:
    """Load the pipeline in a YAML (or JSON) text; raise ``PipelineProblem`` that names the bad line."""
    return load_document(text, Pipeline, name=name, kind="pipeline", needs="name and steps")


def load_pipeline_file(path: Path) -> Pipeline:
    """Load the pipeline in a file."""
    return load_pipeline(read_document(path, kind="pipeline"), path.name)


def load_document(text: str, model: type[Model], *, name: str, kind: str, needs: str) -> Model:
    """Load and validate a YAML text written by a person; codes of problems begin with ``kind``."""
    if len(text) > _MAX_BYTES:
        raise PipelineProblem(f"{kind}_too_large", f"{name} has more than {_MAX_BYTES} characters.")
    try:
        found = parse_document(text)
    except UnreadableDocument as error:
        place = f", line {error.line}" if error.line else ""
        raise PipelineProblem(f"{kind}_unreadable", f"{name}{place}: {error}") from error
    if not isinstance(found.value, dict):
        raise PipelineProblem(f"{kind}_unreadable", f"{name}: must be a mapping with {needs}.")
    try:
        return model.model_validate(found.value)
    except ValidationError as error:
        lines = [
            f"{name}, line {found.line_of(each['loc'])}: {'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in error.errors()
        ]
        raise PipelineProblem(f"{kind}_invalid", "\n".join(lines)) from error


def read_document(path: Path, *, kind: str) -> str:
    """Read the text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineProblem(f"{kind}_unreadable", f"{path} cannot be read: {error}") from error


def dump_pipeline(pipeline: Pipeline) -> str:
    """Serialize the pipeline as YAML without default values; loading it gives the same pipeline."""
    return yaml.safe_dump(_plain(pipeline), sort_keys=False, allow_unicode=True, width=110)


def pipeline_hash(pipeline: Pipeline) -> str:
    """Return the SHA-256 of what determines the rows; names and descriptions do not count."""
    decisive = _plain(pipeline)
    decisive.pop("name")
    decisive.pop("description", None)
    text = json.dumps(decisive, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(pipeline: Pipeline) -> dict[str, Any]:
    value = pipeline.model_dump(mode="json", exclude_defaults=True)
    for step in value["steps"]:
        if step.get("name") == step["operator"]:
            del step["name"]  # what is given to a step without a name
    return value


class _Loader(yaml.SafeLoader):
    """YAML without anchors (which can grow without bound) and without keys given twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, KeyError) as error:
            # A month 13, a number of 5,000 digits, `!!int x`: the library lets Python's errors through.
            raise yaml.constructor.ConstructorError(
                None, None, f"'{str(node.value)[:80]}' is no {node.tag.rpartition(':')[2]}", node.start_mark
            ) from error

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key has to be a plain text", key.start_mark
                )
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key.value}' is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _line_of(error: yaml.YAMLError) -> int | None:
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark else None


def _say(error: yaml.YAMLError) -> str:
    return getattr(error, "problem", None) or str(error)


def _line_at(node: Any, place: tuple[int | str, ...]) -> int:
    """Return the line of the innermost part of ``place`` that is in the document."""
    line = int(node.start_mark.line) + 1
    for part in place:
        if isinstance(node, yaml.MappingNode):
            pairs = {key.value: (key, value) for key, value in node.value}
            if part not in pairs:
                return line
            key, node = pairs[part]
            line = int(key.start_mark.line) + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = int(node.start_mark.line) + 1
        else:
            return line
    return line
