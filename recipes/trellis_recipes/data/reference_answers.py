"""Finds the answer that a worked solution ends in."""

import re

_GSM8K = re.compile(r"####\s*([^\n]*)")
#: A text is an answer, not an explanation, that is so short and no sentence.
_MOST_CHARACTERS = 40
_MOST_WORDS = 5
#: A point behind a single word, inside a number or of an abbreviation (St. Louis, Washington D.C.) ends none.
_SENTENCE = re.compile(r"[。！？]|\w{3}[.!?]\s|\s\S*[a-z0-9][.!?]$")
#: One of the pieces of an expression: a letter, or something with a digit, an operator or a command of LaTeX.
_TERM = re.compile(r"[A-Za-z]|\S*[\d+\-*/^=<>\\$(){}|%]\S*")
_BRACE = re.compile(r"\\boxed\{|[{}]")


def find_gsm8k_answer(text: str) -> str | None:
    """Return the text after the last ``####`` on its line, or None."""
    matches = _GSM8K.findall(text)
    answer = matches[-1].strip() if matches else ""
    return answer or None


def find_boxed(text: str) -> str | None:
    r"""Return the content of the last complete ``\boxed{...}`` (inner braces balanced), or None."""
    if r"\boxed{" not in text:
        return None
    # In one pass: a text that opens thousands of boxes and closes none must not take minutes.
    last, open_braces = (-1, -1), list[int]()
    for brace in _BRACE.finditer(text):
        if brace.group() != "}":
            # Of a plain brace it does not matter where it stands.
            open_braces.append(-1 if brace.group() == "{" else brace.end())
        elif open_braces and (begin := open_braces.pop()) > last[0]:
            last = (begin, brace.start())
    return text[slice(*last)].strip() or None if last[0] >= 0 else None


def is_checkable(solution: str) -> bool:
    r"""Tell whether responses can equal the answer.

    It follows ``####``, is in ``\boxed{}``, or is all of the text: a few words or an expression.
    """
    if find_gsm8k_answer(solution) or find_boxed(solution):
        return True
    text = solution.strip()
    words = text.split()
    if _SENTENCE.search(text):
        return False
    # Chinese has no spaces: there a single "word" may be a paragraph.
    is_short = len(text) <= _MOST_CHARACTERS or 1 < len(words) <= _MOST_WORDS
    return is_short or all(_TERM.fullmatch(word) for word in words)


def find_reference_answer(solution: str) -> str:
    r"""Extract the answer of a worked solution: the text after ``####``, else in ``\boxed{}``, else all."""
    return find_gsm8k_answer(solution) or find_boxed(solution) or solution.strip()
