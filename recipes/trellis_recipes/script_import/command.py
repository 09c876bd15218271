"""Finds the command that starts verl in a script, and the settings on its line."""

from dataclasses import dataclass, field

from trellis_contracts.recipe import Engine

from trellis_recipes.script_import.variables import Unknown, Variables
from trellis_recipes.script_import.words import Reader, Word

#: Programs of verl, by the module that is started.
PROGRAMS = {
    "verl.trainer.main_ppo": Engine.VERL_PPO,
    "verl.trainer.main_ppo_sync": Engine.VERL_PPO,
    "verl.trainer.sft_trainer": Engine.VERL_SFT,
    "verl.trainer.sft_trainer_ray": Engine.VERL_SFT,
    "verl.trainer.fsdp_sft_trainer": Engine.VERL_SFT,
}
_OPENING, _CLOSING = {"if", "for", "while", "until", "case"}, {"fi", "done", "esac"}
_KEYWORDS = {
    "then",
    "else",
    "elif",
    "do",
    "export",
    "local",
    "declare",
    "readonly",
    "!",
    "{",
    "}",
    "time",
    "in",
}


@dataclass
class Command:
    """The line that starts verl: its program, its arguments, and those whose value is not known."""

    program: str = ""
    arguments: list[str] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    #: Further lines that start verl; only the first one is read.
    others: int = 0


def find_command(script: str) -> Command | None:
    """Find the first command that runs one of verl's known programs, else any other verl module."""
    variables, depth, found = Variables(), 0, None
    for words in Reader(script).commands():
        first = _plain(words[0])
        while words and (first in _OPENING or first in _CLOSING or first in _KEYWORDS):
            depth += (first in _OPENING) - (first in _CLOSING)
            words = words[1:]
            first = _plain(words[0]) if words else ""
        while words and variables.assign(words[0], is_certain=depth <= 0):
            words = words[1:]
        command = _read(words, variables) if words else None
        if command is None:
            continue
        if found is None or (found.program not in PROGRAMS and command.program in PROGRAMS):
            found = command
        elif command.program in PROGRAMS:
            found.others += 1
    return found


def _read(words: list[Word], variables: Variables) -> Command | None:
    command = Command()
    for word in words:
        try:
            texts = variables.expand(word)
        except Unknown as error:
            if command.program:
                command.unknown.append((_written(word), str(error)))
            continue
        for text in texts:
            program = command.program or _program(text)
            if command.program:
                command.arguments.append(text)
            command.program = program
    return command if command.program else None


def _program(text: str) -> str:
    """Return the verl module that a word names, or an empty string."""
    name = text.removesuffix(".py").strip("./").replace("/", ".")
    is_module = text.endswith(".py") or "/" not in text
    if name in PROGRAMS or any(name.endswith(f".{program}") for program in PROGRAMS):
        return next(program for program in PROGRAMS if name == program or name.endswith(f".{program}"))
    tail = name.rpartition(".")[2]
    is_trainer = "main_" in f".{tail}" or tail.endswith("_trainer")
    return name if is_module and is_trainer and "." in name and "=" not in name else ""


def _plain(word: Word) -> str:
    return word.parts[0].text if len(word.parts) == 1 and not word.parts[0].is_expansion else ""


def _written(word: Word) -> str:
    """Return the word as it is written in the script, for messages to users."""
    return "".join(f"${part.text}" if part.is_expansion else part.text for part in word.parts)
