"""Finds the answer that a worked solution ends in."""

import re

_GSM8K = re.compile(r"####\s*([^\n]*)")
#: Chinese sentences have no spaces, but more characters than a word.
_LONGEST_WORD = 20
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
    r"""Tell whether responses can equal the answer: it follows ``####``, is in ``\boxed{}``, or a word."""
    is_word = len(solution.split()) == 1 and len(solution.strip()) <= _LONGEST_WORD
    return is_word or bool(find_gsm8k_answer(solution) or find_boxed(solution))


def find_reference_answer(solution: str) -> str:
    r"""Extract the answer of a worked solution: the text after ``####``, else in ``\boxed{}``, else all."""
    return find_gsm8k_answer(solution) or find_boxed(solution) or solution.strip()
