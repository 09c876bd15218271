"""Works out a script's variables: assignments, defaults, lists and arithmetic, as far as the text says."""

import ast
import operator
import re
from collections.abc import Callable

from trellis_recipes.script_import.words import Part, Reader, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_PARAMETER = re.compile(r"(\w+|[@*#])(\[[@*]\])?(?:(:?[-=?+])(.*))?", re.DOTALL)
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}
#: A number in a script is a size or a count.
_MAX_NUMBER = 10**15


class Unknown(ValueError):
    """The text does not say the value; the message names what would."""


class Variables:
    """What the script has assigned so far; an unknown value raises where it is used."""

    def __init__(self) -> None:
        self._lists: dict[str, list[str]] = {}
        self._texts: dict[str, str | Unknown] = {"HOME": "~"}

    def assign(self, word: Word, *, is_certain: bool = True) -> bool:
        """Take ``NAME=value`` in; False where the word is none. A known value stays if this is uncertain."""
        first = word.parts[0] if word.parts else None
        match = (
            _ASSIGNMENT.fullmatch(first.text)
            if first and not (first.is_expansion or first.is_quoted)
            else None
        )
        if match is None or first is None:
            return False
        name, adds, rest = match.groups()
        if not is_certain and not isinstance(self._texts.get(name, Unknown()), Unknown):
            return True
        if word.items is not None:
            before = self._lists.get(name, []) if adds else []
            self._lists[name] = before + [text for item in word.items for text in self._expand_known(item)]
            return True
        try:
            value: str | Unknown = self.text(Word([Part(rest), *word.parts[1:]]))
            before_text = self._texts.get(name, "") if adds else ""
            value = before_text if isinstance(before_text, Unknown) else f"{before_text}{value}"
        except Unknown as error:
            value = error
        self._texts[name] = value
        return True

    def expand(self, word: Word) -> list[str]:
        """Expand a word like a shell: a list gives several words, an empty argument list none."""
        if len(meaningful := [part for part in word.parts if part.text or part.is_expansion]) == 1:
            only = meaningful[0]
            if only.is_expansion:
                match = _PARAMETER.fullmatch(_inner(only.text))
                if only.text in ("@", "*") or only.text.startswith(("{@", "{*")):
                    return []
                if match and match[1] in self._lists:
                    return list(self._lists[match[1]])
                if not only.is_quoted:
                    return self.text(word).split()
        return [self.text(word)]

    def text(self, word: Word) -> str:
        """Return the word as one string; raises ``Unknown``."""
        return "".join(self._part(part) if part.is_expansion else part.text for part in word.parts)

    def _expand_known(self, word: Word) -> list[str]:
        """Expand items of a list; one that is not known is left out, since nothing could be done with it."""
        try:
            return self.expand(word)
        except Unknown:
            return []

    def _part(self, part: Part) -> str:
        if part.text.startswith("(("):
            return str(self._calculate(part.text[2:-2]))
        if part.text.startswith("("):
            raise Unknown(f"what the command '{part.text[1:-1].strip()[:60]}' would print is not known")
        match = _PARAMETER.fullmatch(_inner(part.text))
        if match is None:
            raise Unknown(f"'${part.text}' is a form of expansion that is not read")
        name, _, form, default = match.groups()
        value = self._texts.get(name)
        if name in self._lists:
            value = " ".join(self._lists[name])
        if form in (":+", "+"):
            return "" if value is None else self._default(default)
        if value is None or (value == "" and form and form.startswith(":")):
            if form in (":-", "-", ":=", "="):
                return self._default(default)
            if name in ("@", "*", "#"):
                return ""
            raise Unknown(f"the script does not set '{name}'")
        if isinstance(value, Unknown):
            if form in (":-", ":="):
                return self._default(default)
            raise value
        return value

    def _default(self, text: str | None) -> str:
        """Expand a default value, which may contain quotes and variables."""
        words = [word for command in Reader(text or "").commands() for word in command]
        return " ".join(self.text(word) for word in words)

    def _calculate(self, expression: str) -> int:
        """Evaluate whole numbers, the four operations and variables; anything else raises ``Unknown``."""
        plain = re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda match: match[1] or match[2], expression).replace(
            "/", "//"
        )
        try:
            return self._evaluate(ast.parse(plain.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
            raise Unknown(f"'{expression.strip()}' is not worked out") from None

    def _evaluate(self, node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            value = node.value
        elif isinstance(node, ast.Name):
            value = int(self._part(Part(node.id, is_expansion=True)))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = -self._evaluate(node.operand)
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            value = _ARITHMETIC[type(node.op)](self._evaluate(node.left), self._evaluate(node.right))
        else:
            raise ValueError("not arithmetic of whole numbers")
        if abs(value) > _MAX_NUMBER:
            raise ValueError("too large")
        return value


def _inner(text: str) -> str:
    return text[1:-1] if text.startswith("{") else text
