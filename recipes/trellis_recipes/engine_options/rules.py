"""Reads the classified options of the engines: one YAML file each, rules in order, the first match counts."""

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import Field, model_validator
from trellis_contracts.recipe import Strict

FOLDER = Path(__file__).parent
#: Why options of a kind are refused; a rule may also give a sentence of its own.
REASONS = {
    "address": "it specifies an address the run would connect to or listen on",
    "code": "it specifies code the engine would run with the platform's permissions",
    "command": "it is a command that would run on the machine",
    "file": ("it specifies a file or folder, and runs only access files managed by the platform"),
    "template": "it is a template, which the engine would execute; the model's own is used",
    "unknown": "its text is not one that the platform knows; numbers, true/false and known choices pass",
    "vllm": "vLLM's options are listed one by one, and this one is not among them",
}
#: Options refused by what they are called, wherever an engine has them.
_NAMES: dict[str, re.Pattern[str]] = {
    "code": re.compile(
        r"(^|_)(cls|class|fn|func|function|lib|module|plugin)$|_plugins?$|_processors$"
        r"|^_(target|partial|args|convert|recursive)_$|^(trust_remote_code|custom_async_server)$"
    ),
    "command": re.compile(r"(^|_)(cmd|command)$"),
    "file": re.compile(r"(^|_)(path|file|dir|folder)s?$"),
    "address": re.compile(r"(^|_)(url|uri|endpoint)$"),
    "template": re.compile(r"(^|_)template$"),
}
Kind = Literal["integer", "integers", "limits", "names", "number", "numbers", "switch"]


class Rule(Strict):
    """What some options take: a kind of value, one of some choices, or nothing at all."""

    keys: list[str] = Field(min_length=1)
    takes: Kind | None = None
    choices: list[str] = Field(default_factory=list)
    #: Choices that the engine has and the platform does not offer, with the reason.
    elsewhere: dict[str, str] = Field(default_factory=dict)
    #: Whether one text may hold several choices, with commas between them.
    is_list: bool = False
    refused: str | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if sum((self.takes is not None, bool(self.choices), self.refused is not None)) != 1:
            raise ValueError(f"A rule takes values, lists choices or refuses, one of these: {self.keys}")
        return self

    def matches(self, key: str) -> bool:
        """Tell whether the dotted key is one of the rule's."""
        return _compile(tuple(self.keys)).fullmatch(key) is not None


class RuleFile(Strict):
    """The rules of an engine, and the versions of it that they were written for."""

    engine: str
    versions: list[str] = Field(default_factory=list)
    rules: list[Rule]


@cache
def load_rules(engine: str) -> RuleFile:
    """Load the classified options of ``verl``, ``vllm``, ``trl`` or ``retrieval``."""
    return RuleFile.model_validate(yaml.safe_load((FOLDER / f"{engine}.yaml").read_text(encoding="utf-8")))


@lru_cache(maxsize=8192)
def find_rule(engine: str, key: str) -> Rule | None:
    """Return the first rule that matches a dotted key, else a refusal based on its name, else None."""
    rule = next((rule for rule in load_rules(engine).rules if rule.matches(key)), None)
    if rule is not None and rule.refused is not None:
        return rule
    for part in key.split("."):
        for category, names in _NAMES.items():
            if names.search(part):
                return Rule(keys=[key], refused=category)
    return rule


@cache
def _compile(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Compile all keys into one pattern: ``*.x`` is ``x`` at any depth, ``x.*`` a mapping and all below."""
    alternatives = []
    for key in keys:
        name = key.removeprefix("*.").removesuffix(".*")
        above = r"(?:.*\.)?" if key.startswith("*.") else ""
        below = r"(?:\..*)?" if key.endswith(".*") else ""
        alternatives.append(above + ".*".join(re.escape(part) for part in name.split("*")) + below)
    return re.compile("|".join(alternatives))
