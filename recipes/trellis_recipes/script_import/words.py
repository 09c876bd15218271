"""Splits shell text into commands of words; quotes, comments and continued lines as a shell reads them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

#: Ends of a command; what stands between two of them is one.
_OPERATORS = ("&&", "||", ";;", ";", "|", "&", "\n")
_REDIRECTS = ("<<<", "<<", ">>", ">&", "<&", "&>", ">", "<")
_CLOSING = {"(": ")", "{": "}"}


@dataclass
class Part:
    """A piece of a word: plain text, or what stands behind a ``$``: ``{X:-y}``, ``((1 + 2))``, ``(date)``."""

    text: str
    is_expansion: bool = False
    is_quoted: bool = False


@dataclass
class Word:
    """A word of a command, or the list of words in ``NAME=( ... )``."""

    parts: list[Part] = field(default_factory=list)
    items: list["Word"] | None = None


class Unreadable(ValueError):
    """The text ends inside a quote or a bracket."""


class Reader:
    """Reads a script from its first character to its last."""

    def __init__(self, script: str) -> None:
        self._text = script.replace("\r\n", "\n")
        self._at = 0

    def commands(self) -> Iterator[list[Word]]:
        """Yield the words of each command in order; redirections are left out."""
        command: list[Word] = []
        while self._at < len(self._text):
            if self._skip_blanks():
                continue
            operator = self._take(_OPERATORS) if not self._starts("&>") else None
            if operator is not None:
                if command:
                    yield command
                command = []
            elif self._take(_REDIRECTS):
                self._skip_blanks()
                self._word()
            elif self._peek() in "()":
                # A subshell, or a function's brackets: its commands count as any others.
                self._at += 1
            else:
                word = self._word()
                # The number of a stream, as in "2>&1", is no word of the command.
                if not (self._peek() in ("<", ">") and _is_number(word)):
                    command.append(word)
        if command:
            yield command

    def _skip_blanks(self) -> bool:
        """Move past spaces, continued lines and a comment; whether there was any."""
        start = self._at
        while self._at < len(self._text):
            if self._peek() in " \t":
                self._at += 1
            elif self._starts("\\\n"):
                self._at += 2
            else:
                break
        if self._peek() == "#":
            self._at = self._find("\n")
        return self._at > start

    def _word(self) -> Word:
        word = Word()
        while self._at < len(self._text) and self._peek() not in " \t\n;|&<>()":
            if self._starts("\\\n"):
                break
            self._piece(word, is_quoted=False)
            if self._peek() == "(" and _is_assignment(word):
                word.items = self._items()
                break
        return word

    def _piece(self, word: Word, *, is_quoted: bool) -> None:
        """Read one piece: a quoted text, an expansion, or a single character."""
        character = self._peek()
        if character == "'" and not is_quoted:
            end = self._find("'", self._at + 1)
            self._require(end)
            word.parts.append(Part(self._text[self._at + 1 : end], is_quoted=True))
            self._at = end + 1
        elif character == '"' and not is_quoted:
            self._double_quoted(word)
        elif character == "\\" and self._at + 1 < len(self._text):
            escaped = self._text[self._at + 1]
            keeps = is_quoted and escaped not in '$`"\\\n'
            self._add(word, "\\" + escaped if keeps else escaped.replace("\n", ""), is_quoted)
            self._at += 2
        elif character == "`":
            end = self._find("`", self._at + 1)
            self._require(end)
            word.parts.append(
                Part(f"({self._text[self._at + 1 : end]})", is_expansion=True, is_quoted=is_quoted)
            )
            self._at = end + 1
        elif character == "$":
            self._expansion(word, is_quoted)
        else:
            self._add(word, character, is_quoted)
            self._at += 1

    def _double_quoted(self, word: Word) -> None:
        self._at += 1
        word.parts.append(Part("", is_quoted=True))
        while self._peek() != '"':
            self._require(self._at)
            self._piece(word, is_quoted=True)
        self._at += 1

    def _expansion(self, word: Word, is_quoted: bool) -> None:
        start = self._at + 1
        opening = self._text[start : start + 1]
        if opening in _CLOSING:
            end = self._matching(start)
        else:
            end = start
            while end < len(self._text) and (self._text[end].isalnum() or self._text[end] == "_"):
                end += 1
            if end == start and opening and opening in "@*#?$!-":
                end += 1
        if end == start:
            self._add(word, "$", is_quoted)
        else:
            word.parts.append(Part(self._text[start:end], is_expansion=True, is_quoted=is_quoted))
        self._at = end

    def _matching(self, start: int) -> int:
        """Return the position after the bracket that closes the one at ``start``."""
        depth, opening = 0, self._text[start]
        for at in range(start, len(self._text)):
            depth += (self._text[at] == opening) - (self._text[at] == _CLOSING[opening])
            if depth == 0:
                return at + 1
        raise Unreadable("A bracket is opened and never closed.")

    def _items(self) -> list[Word]:
        """Read the words of ``( ... )``."""
        self._at += 1
        items = []
        while self._peek() != ")":
            self._require(self._at)
            if self._peek() == "\n":
                self._at += 1
            elif not self._skip_blanks():
                before = self._at
                items.append(self._word())
                if self._at == before:
                    self._at += 1
        self._at += 1
        return items

    def _add(self, word: Word, text: str, is_quoted: bool) -> None:
        last = word.parts[-1] if word.parts else None
        if last is not None and not last.is_expansion and last.is_quoted == is_quoted:
            last.text += text
        else:
            word.parts.append(Part(text, is_quoted=is_quoted))

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _starts(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, texts: tuple[str, ...]) -> str | None:
        for text in texts:
            if self._starts(text):
                self._at += len(text)
                return text
        return None

    def _find(self, text: str, start: int | None = None) -> int:
        found = self._text.find(text, self._at if start is None else start)
        return len(self._text) if found < 0 else found

    def _require(self, at: int) -> None:
        if at >= len(self._text):
            raise Unreadable("A quote or a bracket is opened and never closed.")


def _is_number(word: Word) -> bool:
    return len(word.parts) == 1 and word.parts[0].text.isdigit() and not word.parts[0].is_quoted


def _is_assignment(word: Word) -> bool:
    """Tell whether the word so far reads ``NAME=`` or ``NAME+=``."""
    return len(word.parts) == 1 and not word.parts[0].is_quoted and word.parts[0].text.endswith("=")
