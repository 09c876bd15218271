"""Finds the answer in what a model wrote. No function raises on any text."""

import re

from trellis_recipes.data.reference_answers import find_boxed, find_gsm8k_answer

from trellis_train.evaluate.numbers import NUMBER, find_numbers, read_number
from trellis_train.rewards.answers import THINK_END, after_thinking

_THINK_BEGIN = "<think>"
#: What people put around a final answer.
_MARKUP = re.compile(r"\*\*|__|`|\\text\w*\{|\\mathrm\{|\\\(|\\\)|\\\[|\\\]")
_PHRASE = re.compile(r"(?:answer\s+is|answer\s*:|答案(?:是|为|：|:))[\s:：]*", re.IGNORECASE)
_FINAL_PHRASE = re.compile(r"final\s+answer\s+is[\s:]*", re.IGNORECASE)
_HOPE = re.compile(r"\.?\s*I hope it is correct.*", re.IGNORECASE | re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s+([^\s${}]+)")
_MATH_SPAN = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_OPERATOR = re.compile(r"\s*(?:[-+*/×÷^\u2212·]|x\s*\d|\\times|\\cdot)")
#: An answer is the rest of its sentence; a point inside a number ends none.
_SENTENCE_END = re.compile(r"[.。!?](?=\s|$)|\n")


def answer_part(output: str) -> str:
    """Return the output after the thinking; empty if it ends while thinking."""
    if output.rfind(_THINK_BEGIN) > output.rfind(THINK_END):
        return ""
    return after_thinking(output)


def gsm8k_strict(text: str) -> str | None:
    r"""Return the number after the last ``####`` or in the last ``\boxed{}``, whichever is later; or None."""
    marked = find_gsm8k_answer(text)
    boxed = find_boxed(text)
    if marked is not None and boxed is not None:
        marked, boxed = (None, boxed) if text.rfind(r"\boxed{") > text.rfind("####") else (marked, None)
    found = marked if marked is not None else boxed
    return None if found is None else _first_number(found)


def gsm8k_flexible(text: str) -> str | None:
    """Return the strict answer, else the number after "the answer is", else the last number; or None."""
    strict = gsm8k_strict(text)
    if strict is not None:
        return strict
    phrases = list(_PHRASE.finditer(text))
    if phrases:
        sentence = _sentence(_MARKUP.sub("", text[phrases[-1].end() :]))
        found = _first_number(sentence)
        if found is not None:
            return found
    return last_number(text)


def last_number(text: str) -> str | None:
    """Return the last number of the text as it is written, or None."""
    numbers = [number for number in find_numbers(_MARKUP.sub(" ", text)) if read_number(number) is not None]
    return numbers[-1] if numbers else None


def math_answer(text: str) -> str | None:
    r"""Return the last ``\boxed{}``'s content, else what follows "final answer is", ``####`` or "answer is".

    That is how the reference solutions, the four examples of Lewkowycz et al. (2022, appendix D) and
    models that were asked for a box end. None where there is no such mark.
    """
    boxed = find_boxed(text) or _last_group(_BARE_BOX, text)
    if boxed is not None:
        return boxed
    for pattern in (_FINAL_PHRASE, None, _PHRASE):
        found = find_gsm8k_answer(text) if pattern is None else _after(pattern, text)
        if found is not None:
            return found
    return None


def choice_letter(text: str, choices: list[str]) -> str | None:
    """Return the letter of the choice that the text selects, or None.

    In this order: in a box, after "the answer is", alone or at the beginning ("B", "(B)", "B. carbon"),
    the choice's own words, and the last letter in brackets or bold. A bare "A" inside a sentence is an
    article, and no answer.
    """
    letters = "".join(chr(ord("A") + number) for number in range(len(choices)))
    for found in (find_boxed(text), _after(_PHRASE, text)):
        letter = None if found is None else _leading_letter(found, letters) or _by_words(found, choices)
        if letter is not None:
            return letter
    return _leading_letter(text, letters) or _by_words(text, choices) or _marked_letter(text, letters)


def _leading_letter(text: str, letters: str) -> str | None:
    bare = _MARKUP.sub("", text).strip().lstrip("$ ")
    marked = re.match(rf"(?:option|choice)?\s*[(\[]?([{letters}])(?:[)\].:,]|\s*$|\s*\n|\}}|\$)", bare, re.I)
    if marked is not None and not (marked.group(1).islower() and not _is_alone(marked.group(), bare)):
        return marked.group(1).upper()
    return None


def _is_alone(found: str, text: str) -> bool:
    """Tell whether it is not a word of a sentence: in brackets, or with nothing after it."""
    return len(found.strip()) == len(text.strip()) or found.strip()[-1] in ")]"


def _by_words(text: str, choices: list[str]) -> str | None:
    said = _plain_words(text)
    same = [number for number, choice in enumerate(choices) if _plain_words(choice) == said]
    return chr(ord("A") + same[0]) if said and len(same) == 1 else None


def _plain_words(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).replace("$", "").strip().rstrip(".").lower().split())


def _marked_letter(text: str, letters: str) -> str | None:
    found = re.findall(rf"\(([{letters}])\)|\*\*\(?([{letters}])\)?[.:]?\*\*", text)
    return next(filter(None, found[-1])) if found else None


def _first_number(text: str) -> str | None:
    """Return the first number, unless it starts a calculation: ``3 + 4 = 7 apples`` gives 7."""
    shown = _MARKUP.sub("", text).strip()
    leading = NUMBER.match(shown)
    if leading is None or _OPERATOR.match(shown, leading.end()):
        shown = shown.rpartition("=")[2]
    for number in find_numbers(shown):
        if read_number(number) is not None:
            return number
    return None


def _after(pattern: re.Pattern[str], text: str) -> str | None:
    """Return what follows the pattern's last match: its first formula, else the rest of the sentence."""
    matches = list(pattern.finditer(text))
    if not matches:
        return None
    rest = _HOPE.sub("", text[matches[-1].end() :])
    begin = rest.lstrip(" *_:")
    span = _MATH_SPAN.match(begin)
    if span is not None:
        return next(filter(None, span.groups())).strip() or None
    return _sentence(rest).strip().strip("*`").rstrip(".").strip() or None


def _sentence(text: str) -> str:
    shown = text.lstrip()
    end = _SENTENCE_END.search(shown)
    return shown[: end.start()] if end else shown


def _last_group(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.findall(text)
    return found[-1].rstrip(".,") or None if found else None
