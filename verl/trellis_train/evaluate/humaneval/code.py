"""Finds the program in what a model wrote, whether it chats or goes on with the prompt. Executes nothing."""

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from trellis_train.evaluate.extraction import answer_part

#: What ends a completion of a base model: the next thing at the left margin (Chen et al. 2021, section 2.1).
STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
#: Possessive where it repeats, so that long rows of marks take no longer than other text.
_FENCE = re.compile(
    r"^([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]*+)[^\n]*+\n(.*?)(?:^[ \t]*+\2[ \t]*+$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PYTHON = re.compile(r"|py|python\d?|python3\.\d+|ipython\d?", re.IGNORECASE)
_FUTURE = re.compile(r"^from __future__ import [^\n]*\n?", re.MULTILINE)
#: Where code may begin after words.
_CODE_LINE = re.compile(r"^(?:(?:async def|def|class|from|import)\b|@)", re.MULTILINE)
_MOST_BEGINNINGS = 50


@dataclass(frozen=True)
class Found:
    """Code of an answer, as it was written, and the program that it makes with the prompt."""

    code: str
    program: str


def find_program(output: str, prompt: str, function: str) -> Found | None:
    """Find the program that defines ``function``; None if the output contains no code.

    In this order: the output goes on with the prompt, where it begins with white space; the last fenced block
    that defines the function, with the other blocks that it needs; the same without a fence, between words;
    a block, or all of the output, that is the function's body. Code with an error counts where there is
    nothing better: it fails its tests.
    """
    text = answer_part(output) if "<think>" in output or "</think>" in output else output
    if not text.strip():
        return None
    blocks = _list_blocks(text)
    for found in _attempts(text, blocks, prompt, function):
        if found is not None:
            return found
    if blocks:
        return Found(blocks[-1], _join(prompt, blocks[-1]))
    if _goes_on(text):
        return Found(cut_at_stops(text), prompt + cut_at_stops(text))
    return None


def cut_at_stops(text: str) -> str:
    """Cut the text before the first stop sequence."""
    ends = [place for stop in STOPS if (place := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def _attempts(text: str, blocks: list[str], prompt: str, function: str) -> Iterator[Found | None]:
    if _goes_on(text):
        yield _as_body(cut_at_stops(text), prompt, function)
    for block in reversed(blocks):
        others = [other for other in blocks if other is not block]
        yield _as_function(block, prompt, function, others)
    for code in _list_passages(text):
        yield _as_function(code, prompt, function, [])
    for block in reversed(blocks):
        yield _as_body(block, prompt, function)
    yield _as_body(cut_at_stops(text), prompt, function)


def _goes_on(text: str) -> bool:
    """Tell whether it begins as the body of a function that was started before it."""
    return text.lstrip("\r\n").startswith((" ", "\t")) and not _FENCE.match(text.lstrip())


def _list_blocks(text: str) -> list[str]:
    """List the contents of fenced Python blocks, including a last one that was not closed."""
    blocks = []
    for margin, _, language, code in _FENCE.findall(text):
        if _PYTHON.fullmatch(language) and code.strip():
            blocks.append(re.sub(f"^{margin}", "", code, flags=re.MULTILINE) if margin else code)
    return blocks


def _list_passages(text: str) -> Iterator[str]:
    """Yield code between prose, each passage as far as it can be parsed."""
    end = 0
    for place in list(_CODE_LINE.finditer(text))[:_MOST_BEGINNINGS]:
        if place.start() >= end and (code := _parsable(text[place.start() :])) is not None:
            end = place.start() + len(code)
            yield code


def _as_function(code: str, prompt: str, function: str, others: list[str]) -> Found | None:
    """Parse as code that defines the function by itself."""
    lines = _parsable(code)
    if lines is None or not _defines(ast.parse(lines), function):
        return None
    needed = [other for other in others if _is_needed(other, lines, function)]
    code = "\n\n".join([*needed, lines])
    return Found(code, _join(prompt, code))


def _as_body(code: str, prompt: str, function: str) -> Found | None:
    """Parse as what follows the prompt, also where the indentation of its first or all lines is lost."""
    stripped = code.strip("\n")
    ways = (code, "    " + stripped.lstrip(), textwrap.indent(stripped, "    "))
    programs = [_parsable(prompt + body) or "" for body in ways]
    program = max(programs, key=lambda each: len(each.splitlines()))
    if len(program) <= len(prompt) or not _defines(ast.parse(program), function):
        return None
    return Found(program[len(prompt) :], program)


def _join(prompt: str, code: str) -> str:
    """Join the prompt (a function without body) and code that defines the function again.

    ``from __future__`` imports come first, as Python requires.
    """
    futures = "".join(line.rstrip("\n") + "\n" for line in _FUTURE.findall(code))
    return f"{futures}{prompt}\n\n{_FUTURE.sub('', code)}\n"


def _parsable(code: str) -> str | None:
    """Return the code before its first unparsable line (prose, a cut-off end); None if nothing is left."""
    lines = code.splitlines(keepends=True)
    while lines:
        try:
            stray = _find_stray_return(ast.parse("".join(lines)))
        except SyntaxError as error:
            stray = min(error.lineno or len(lines), len(lines))
        except (ValueError, RecursionError, MemoryError):  # null bytes, nesting without end
            return None
        if stray is None:
            return "".join(lines)
        del lines[max(0, stray - 1) :]
    return None


def _find_stray_return(node: ast.AST) -> int | None:
    """Return the line of a ``return`` outside of functions, which the parser accepts."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            return child.lineno
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            found = _find_stray_return(child)
            if found is not None:
                return found
    return None


def _defines(module: ast.Module, function: str) -> bool:
    """Tell whether the function's last definition returns, yields or raises; assignments count too."""
    is_defined = False
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == function:
            ends = (ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)
            is_defined = any(isinstance(node, ends) for node in ast.walk(statement))
        elif function in _assigned(statement):
            is_defined = True
    return is_defined


def _is_needed(other: str, code: str, function: str) -> bool:
    """Tell whether another block defines names that the code uses and does not define."""
    try:
        module = ast.parse(other)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    given = {name for statement in module.body for name in _names_of(statement)}
    if function in given:
        return False
    tree = ast.parse(code)
    own = {name for statement in tree.body for name in _names_of(statement)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return bool(given & used - own)


def _names_of(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    return _assigned(statement)


def _assigned(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Assign):
        return set()
    return {target.id for target in statement.targets if isinstance(target, ast.Name)}
